"""Duals with one variable per row, solved block by block.

dual            the dual of two classes, of regression and of one class
active_rows     the rows whose dual variables can still move
smo             the dual over a working set, by steps on pairs or single rows, and Newton steps on all free variables
interior_point  a method for all rows, where pairs take too many steps
kernel_values   all stores of kernel values: the active rows', rows that come and go, rows computed where needed
one_vs_one      several classes by the problems of all pairs, one after another
pair_sets       the same from one kernel matrix
block_ascent    dual points improved by blocks of rows, for certificates
sweeps          two classes of sparse rows with the linear kernel
"""
