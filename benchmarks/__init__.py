"""The benchmarks: each paper's tables and figures, and the library beside other packages.

They run from a checkout of the sources, ``python -m benchmarks NAME``, and no wheel has them. `command_line` knows the
names. A benchmark is a module, or a folder whose module ``command`` it is; benchmarks know nothing of each other, and
what several of them need lives in `shared`.
"""
