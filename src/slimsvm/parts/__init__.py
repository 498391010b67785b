"""The parts that the algorithms in `solvers` are made of; a part knows no algorithm.

problem, run, solver   what a solver is given, what it looks like at work, and the one iteration loop
reports, rounding, certificate  objectives, what is said of a fit at its end, and bounds that no model can be under
checks, progress, resuming  parameters, the bar, fits that were cut off and rows that come in chunks
cuts         cutting planes: cuts, oracles, the QP, the loop
dual_ascent  duals with one variable per row: working sets, kernel values, steps
span         the convex problem over a fixed basis: Newton's method, or exact cuts
descent      basis vectors and coefficients moved together
principal_directions  rows of many features seen along a few directions, for both of the above and below
pursuit      vectors added while training, for `CPSP`
budgeted     steps row by row on a model of bounded size
balls        the smallest ball around all rows
"""
