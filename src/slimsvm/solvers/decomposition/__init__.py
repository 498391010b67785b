"""Decomposition: duals with one variable per row, solved block by block to the optimum.

dual          the dual of two classes, of regression and of one class
row_set       the dual over some rows, solved by pairs or single rows
leap          all free rows of a working set moved at a time
interior      an interior-point method for all rows, where pairs take too many steps
growing_lines lines of the kernel matrix, made where they are needed
kernel_cache  blocks of the kernel matrix over the active rows
kernel_table  kernel values between rows that come and go, for `online` and `balls`
one_vs_one    several classes by the problems of all pairs
exact         `Exact`: the exact kernel SVM
block_ascent  dual points improved by blocks of rows, for certificates
"""
