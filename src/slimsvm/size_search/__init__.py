"""The fewest vectors that do as well as the exact SVM: a search that fits other solvers.

reduced_models        which problem each fit solves; vectors moved until a model over them is near to the exact one
trials       statistics of rows held out: which sizes are good enough, and what a search takes
size_search  the search for a size on a part of the rows
compact      `Compact`: the search, and the model of all rows
"""
