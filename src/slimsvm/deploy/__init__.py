"""Models where there is no scikit-learn: prediction with NumPy alone, and the other forms a model is shipped in.

Nothing here trains, and nothing here imports the kernels or the solvers: a model is what its file says.
"""
