"""
More rows than memory
=====================

``Blocks`` are made of functions, each of which returns some of the rows. A pass over the
rows calls one after another. Memory holds one block and the model, however many rows there
are. The result is the same, bit for bit, as with all rows in one array.
"""

import numpy as np

from slimsvm import SVC, Blocks
from slimsvm.datasets import checkerboard
from slimsvm.plots import DecisionSurfaceDisplay

n_rows = 20_000  # tests: 500


def block(seed):
    """What would be read from a file."""
    X, y = checkerboard(n_rows, random_state=seed)
    return X.astype(np.float32), y


X, y = Blocks.with_labels([lambda seed=seed: block(seed) for seed in range(5)])
clf = SVC(C=1, gamma=10, max_basis=60, random_state=0).fit(X, y)
print(X, clf.n_basis_)

# %%
# ``Blocks.from_parquet("folder", label="y")`` reads Parquet files,
# ``slimsvm.datasets.read_libsvm_blocks`` LIBSVM text.

X_test, y_test = checkerboard(5_000, random_state=99)
display = DecisionSurfaceDisplay.from_estimator(clf, X_test, y_test, max_points=500)
display.ax_.set_title(
    f"{X.shape[0]:,} rows, test error {100 * (1 - clf.score(X_test, y_test)):.1f} %"
)
