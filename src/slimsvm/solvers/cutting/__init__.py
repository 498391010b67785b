"""Cutting planes: the dual of any loss raised by exact or sampled cuts of all examples or of each.

loop              the cutting-plane loop, with one slack for all examples
cut_solvers       its solvers `ExactCuts`, `UniformCuts` and `ViolatedCuts`
example_slacks    exact cuts with a slack for each example
frank_wolfe       `BCFW`: block-coordinate Frank-Wolfe
plane_store       the planes of both in memory, and the scores of the rows
explicit_weights  when a linear machine is kept as weights of its features
"""
