"""
Watching, stopping and resuming a fit
=====================================

A callback receives the model after every epoch; here it records the test error.
``Checkpoint`` writes the model to a file, so that a fit that was killed can be resumed.
(``max_seconds=`` and Ctrl-C end any fit soon and keep the best model.)
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

import slimsvm
from slimsvm import BSCA, SVC, Checkpoint

n_rows = 4_000  # tests: 400
X, y = make_moons(2 * n_rows, noise=0.25, random_state=0)
X_train, y_train, X_test, y_test = X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


class TestErrors:
    """The test error after every epoch."""

    def __init__(self):
        self.errors = []

    def setup(self, estimator, context):
        """Before the fit."""

    def teardown(self, estimator, context):
        """After the fit."""

    def on_fit_task_begin(self, estimator, context):
        """Before an epoch."""

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        """After an epoch."""
        if context.task_name == "iteration":
            self.errors.append(100 * (1 - fitted_estimator.score(X_test, y_test)))


# %%
# The first fit ends after five epochs, as if it had been killed. The second reads the
# file and does five more.

file = Path(tempfile.mkdtemp()) / "run.slim"
before, after = TestErrors(), TestErrors()
clf = SVC(C=10, gamma=2, solver=BSCA(30, epochs=5, finish=False), random_state=0)
clf.set_callbacks(Checkpoint(file), before).fit(X_train, y_train)

clf = slimsvm.load(file).set_params(warm_start=True)
clf.set_callbacks(after).fit(X_train, y_train)

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(range(1, 6), before.errors, "o-", label="first fit")
ax.plot(range(6, 11), after.errors, "s--", label="after the file was read")
ax.set(
    xlabel="epoch",
    ylabel="test error (%)",
    xticks=range(1, 11),
    title="BSCA with 30 vectors",
)
ax.legend()
