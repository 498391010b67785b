"""Shapley values of scores: which feature of a row moves its score, and by how much.

`explanation` has what users get, `values` computes it.
"""
