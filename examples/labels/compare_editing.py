"""
Editing methods, compared
=========================

A tenth of the labels is wrong. Every wrong row becomes a support vector, so the model
grows with the noise. Editors remove rows before training. The ramp loss and
cross-training do so during training.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from slimsvm import SVC, Condense, CrossTrainedSVC, CrossTraining, EditedNN, MultiEdit
from slimsvm.plots import DecisionSurfaceDisplay

n_rows = 1_500  # tests: 300
X, y = make_moons(n_rows, noise=0.2, random_state=0)
X_test, y_test = make_moons(5_000, noise=0.2, random_state=1)
wrong = slice(0, n_rows, 10)
y[wrong] = 1 - y[wrong]


def edited(*editors):
    """Train on the rows that remain after all editors."""
    rows = X, y
    for editor in editors:
        rows = editor.fit_resample(*rows)
    return SVC(C=1, gamma=2).fit(*rows)


models = {
    "SVC()": SVC(C=1, gamma=2).fit(X, y),
    "EditedNN": edited(EditedNN()),
    "MultiEdit, Condense": edited(MultiEdit(random_state=0), Condense(random_state=0)),
    "CrossTraining": edited(CrossTraining(gamma=2, random_state=0)),
    "CrossTrainedSVC": CrossTrainedSVC(gamma=2, random_state=0).fit(X, y),
    'loss="ramp"': SVC(C=1, gamma=2, loss="ramp").fit(X, y),
}
figure, axes = plt.subplots(3, 2, figsize=(8, 11), layout="constrained")
for ax, (name, clf) in zip(axes.flat, models.items(), strict=True):
    DecisionSurfaceDisplay.from_estimator(
        clf, X, y, grid_resolution=101, max_points=400, ax=ax
    )
    error = 100 * (1 - clf.score(X_test, y_test))
    ax.set_title(f"{name}\n{clf.n_basis_} vectors, test error {error:.1f} %")
    handles, names = ax.get_legend_handles_labels()
    ax.get_legend().remove()
figure.legend(handles, [*names[:-1], "vectors"], loc="outside upper center", ncols=3)
