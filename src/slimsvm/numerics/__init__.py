"""The only place with compiled code: flat functions on arrays.

Every compiled function is a module-level function on arrays and int codes: ``@njit(cache=True, nogil=True)`` where
Python calls it, so that the disk cache of `slimsvm.numerics.compiling` keeps it and a second process compiles nothing,
and ``@njit(nogil=True)`` where only compiled code does. Numba compiles a function once more for a literal 0 or True
among its arguments: ``np.int64(0)`` and ``np.bool_(True)`` spare that where it is a long one. Threads are ours
(`slimsvm.numerics.threads`), over fixed tiles reduced in a fixed order: the same bits whatever the number of threads.
"""
