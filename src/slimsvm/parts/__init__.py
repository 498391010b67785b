"""What the algorithms in `solvers` are made of; a part knows no algorithm.

problem, run, solver   what a solver is given, what it looks like at work, and the one iteration loop
reports, rounding      what is said of a fit at its end, and what rounding can do to a bound
objectives, certificate  objectives of models, and bounds that no model can be under
checks, progress, resuming, chunks  parameters, the bar, fits that were cut off, rows that come in chunks
cuts         cutting planes: cuts, oracles, the QP, the loop
dual_ascent  duals with one variable per row: working sets, kernel values, steps
span         the convex problem over a fixed basis: Newton's method, or exact cuts
descent      basis vectors and coefficients moved together
pursuit      vectors added while training, for `CPSP`
budgeted     steps row by row on a model of bounded size
balls        the smallest ball around all rows
"""
