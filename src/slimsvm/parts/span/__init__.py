"""Over a fixed basis: the convex problem in a model's coefficients.

whitened_span      coordinates in the span of a basis, and products with them
span_rows, row_passes  the rows in these coordinates, and passes over them
newton_direction   Newton's direction for the smoothed problem
smoothed_newton    Newton's method on smoothed losses, to a certified gap
best_coefficients  which method a task takes; exact cuts, for losses that cannot be smoothed; pair by pair by dual
                   coordinate ascent, for hinge losses
"""
