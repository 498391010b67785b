"""Enclosing balls: the L2-loss SVM as the smallest ball around all rows.

enclosing_ball  the problem, the search for rows outside of the ball, the smallest ball by growing a core set
"""
