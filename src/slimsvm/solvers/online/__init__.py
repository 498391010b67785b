"""Online training: one row after the other, without a budget.

lasvm_chunks  what one chunk of rows leaves to the next
lasvm         `LASVM`
"""
