"""The only place with compiled code: flat functions on arrays.

Every compiled function is a module-level ``@njit(cache=True, nogil=True)`` function on arrays and int codes, so that
the disk cache of `slimsvm.numerics.compiling` keeps it and a second process compiles nothing. Threads are ours
(`slimsvm.numerics.threads`), over fixed tiles reduced in a fixed order: the same bits whatever the number of threads.
"""
