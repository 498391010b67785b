"""Budgeted training: row by row, with no more points in the model than the budget has.

box_dual          the box-constrained dual, what a budgeted fit leaves behind, and plain ascent where the budget has
                  room for all rows
epochs            epochs of compiled steps, their reports, the finish
one_class         one class: the C at which ν comes out
chunks            steps on rows that come in chunks, also of one class
budgeted_solver   the parameters and checks that `BSCA` and `BSGD` share
"""
