"""
A structure of your own
=======================

The labels are leaves of a tree. A wrong leaf of the right branch is half as bad as a leaf
of another branch. A class with three methods describes this; training, kernels, small
models and certificates come from the library.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import ConfusionMatrixDisplay

import slimsvm
from slimsvm.tasks import ExampleTask


class Taxonomy(ExampleTask):
    """Leaves of a tree; the loss is the share of the right leaf's path that is missed."""

    def __init__(self, paths):
        self.paths = paths
        self.n_outputs = 1 + max(node for path in paths.values() for node in path)

    def features(self, y):
        """One row for each example: 1 for every node on the path."""
        row = np.zeros((1, self.n_outputs))
        row[0, list(self.paths[y])] = 1.0
        return row

    def loss(self, y, other):
        """The share of the path that is missed."""
        right, wrong = set(self.paths[y]), set(self.paths[other])
        return len(right - wrong) / len(right)

    def labels(self, n_rows):
        """All leaves."""
        return sorted(self.paths)


task = Taxonomy({"cat": (0, 2), "dog": (0, 3), "oak": (1, 4), "rose": (1, 5)})
print(slimsvm.check_task(task, ["cat", "dog", "oak", "rose"]))

# %%
# Animals are close to each other, and so are plants. Errors stay within the branch.

n_rows = 240  # tests: 80
rng = np.random.default_rng(0)
leaves = np.array(["cat", "dog", "oak", "rose"])[rng.integers(0, 4, n_rows + 400)]
centres = {"cat": (0, 0), "dog": (1.5, 0.5), "oak": (3, 3), "rose": (4.5, 3)}
X = np.array([centres[leaf] for leaf in leaves]) + rng.normal(size=(len(leaves), 2))
clf = slimsvm.StructuredSVM(task, C=1, gamma=0.3).fit(X[:n_rows], leaves[:n_rows])

figure, ax = plt.subplots(figsize=(5.6, 4.8), layout="constrained")
ConfusionMatrixDisplay.from_predictions(
    leaves[n_rows:], clf.predict(X[n_rows:]), cmap="Blues", colorbar=False, ax=ax
)
ax.set_title(f"mean loss {-clf.score(X[n_rows:], leaves[n_rows:]):.3f}, gap {clf.gap_:.0e}")
