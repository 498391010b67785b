"""Vectors that are added while training.

principal_directions  rows seen along a few directions, where vectors are sought
newton_pursuit        subspace pursuit by Newton's method
over_all_rows         coefficients over all rows of what was found on a sample
"""
