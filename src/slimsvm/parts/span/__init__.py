"""Over a fixed basis: the convex problem in a model's coefficients.

whitened_span      coordinates in the span of a basis, the rows in them, and products with them
row_passes         passes over the rows
newton_direction   Newton's direction for the smoothed problem
smoothed_newton    Newton's method on smoothed losses, to a certified gap
best_coefficients  which method a task takes; exact cuts, for losses that cannot be smoothed; pair by pair by dual
                   coordinate ascent, for hinge losses
"""
