"""The parts that the algorithms in `solvers` are made of; a part knows no algorithm.

problem      what a solver is given, and checks of it and of parameters
run          what a solver looks like at work, the fit that it returns, and what is reported of it at the end
solver       the one iteration loop and its bar
rounding, certificate  what is sure of a fit: bounds that no model can be under
resuming     fits that were cut off and rows that come in chunks
values_of_C  the search along C that every choice of C makes
cuts         cutting planes: cuts, oracles, the QP, the loop
dual_ascent  duals with one variable per row: working sets, kernel values, steps
span         the convex problem over a fixed basis: Newton's method, or exact cuts
descent      basis vectors and coefficients moved together
principal_directions  rows of many features seen along a few directions, for both of the above and below
pursuit      vectors added while training, for `CPSP`
budgeted     steps row by row on a model of bounded size
enclosing_ball  the smallest ball around all rows
"""
