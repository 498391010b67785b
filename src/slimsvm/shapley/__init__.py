"""Shapley values of scores: which feature of a row moves its score, and by how much.

explanation (what users get), plain_scores (the model as sums over vectors), product_kernels (exact), permutations
(sampled), explaining (which of these, and what is explained).
"""
