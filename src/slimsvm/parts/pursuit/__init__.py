"""Vectors that are added while training.

newton_pursuit        subspace pursuit by Newton's method
over_all_rows         coefficients over all rows of what was found on a sample
"""
