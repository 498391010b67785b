"""Learned bases: models of few vectors that are found, or moved, while training.

batch_gradient        the gradient of a batch in vectors, coefficients and feature scales
adam                  the optimiser's step along it
basis_descent         batches and schedule of a descent on vectors and coefficients
first_basis           where such a descent starts
refine                `Refine`: that descent
principal_directions  rows seen along a few directions, where vectors are sought
closing_descent       the vectors of a pursuit moved together at its end
pursuit               subspace pursuit by Newton's method
cpsp                  `CPSP`: cutting-plane subspace pursuit
machines              which problem each machine of a search solves, and by which solver
trials                what a search for few vectors goes by: parts, sizes, statistics
compact               `Compact`: the fewest vectors that do as well as the exact machine
"""
