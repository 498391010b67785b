"""Budgeted training: row by row, with no more points in the model than the budget has.

box_dual          the box-constrained dual, what a budgeted fit leaves behind, and plain ascent where the budget has
                  room for all rows
epochs            epochs of compiled steps, their reports, the finish
one_class         one class: the C at which ν comes out
budgeted_solver   what `BSCA` and `BSGD` share: parameters, checks, rows that come in chunks
"""
