"""
Sets that contain the right class
=================================

With ``calibration_size=0.2`` a fifth of the rows is held out, and ``predict_set`` returns
a set of classes. The probability that a set misses the right class is at most alpha,
whatever the model is. Difficult rows get larger sets.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from slimsvm import SVC

n_rows = 1_500  # tests: 300
X, y = make_blobs(2 * n_rows, centers=[[0, 0], [2.2, 0], [1.1, 2]], random_state=0)
X_train, y_train, X_test, y_test = X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]
clf = SVC(gamma=0.5, calibration_size=0.2, random_state=0).fit(X_train, y_train)

# %%
# On the left the sets for alpha = 0.1: where classes overlap there are two or three. On
# the right what is promised and what was found, and how many classes a set has. (The
# promise is one over the draw of all rows: one model may miss a little more or less.)

figure, axes = plt.subplots(1, 2, figsize=(8.6, 4.6), layout="constrained")
sizes = clf.predict_set(X_test, alpha=0.1).sum(axis=1)
for size, marker in enumerate("x.o*"):
    if (sizes == size).any():
        rows = X_test[sizes == size]
        axes[0].scatter(*rows.T, s=8 + 12 * size, marker=marker, label=f"sets of {size}")
axes[0].set(
    xlabel="feature 0", ylabel="feature 1", title="Test rows by the size of their set"
)
axes[0].legend()

alphas = np.linspace(0.01, 0.4, 40)
sets = [clf.predict_set(X_test, alpha=alpha) for alpha in alphas]
missed = [1 - each[np.arange(len(y_test)), y_test].mean() for each in sets]
axes[1].plot(alphas, alphas, "--", color="black", label="promised, at most")
axes[1].plot(alphas, missed, label="sets without the right class")
axes[1].set(xlabel="alpha", ylabel="share of test rows")
other = axes[1].twinx()
sizes = [each.sum(axis=1).mean() for each in sets]
other.plot(alphas, sizes, "-.", color="C1", label="classes in a set")
other.set_ylabel("classes in a set, mean")
handles = [*axes[1].get_lines(), *other.get_lines()]
axes[1].legend(handles=handles, loc="upper center")
