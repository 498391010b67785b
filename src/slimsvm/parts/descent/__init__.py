"""Basis vectors and coefficients moved together, batch by batch.

batch_gradient   the gradient of a batch in vectors, coefficients and feature scales, and Adam's step along it
basis_descent    sizes of steps, batches and schedule
first_basis      where a descent starts, and on which rows
vector_descent   sweeps over the rows, and the finish: a run
"""
