"""Enclosing balls: the L2-loss SVM as the smallest ball around all rows.

enclosing_ball  the problem, and the search for rows outside of the ball
smallest_ball   the smallest ball, by growing a core set
"""
