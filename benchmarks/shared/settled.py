"""Which of the peers' sets have decided a default of ours by rows that train there, and by no others.

These defaults are C = 5, the search for C and γ, the steps that learn scales, and those of `LearnedAxes`.
"""

BY_TRAINING_ROWS = frozenset({
    "generated 10 features", "generated 30 classes", "checkerboard", "cod-rna", "adult", "phoneme", "magic", "twonorm",
    "ring", "spambase", "page-blocks0", "sylva", "satimage", "segment", "kc1",
})  # fmt: skip
