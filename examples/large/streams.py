"""
A stream that drifts
====================

``partial_fit`` learns from a chunk and does not keep its rows. A budget of vectors keeps
the model small. Here the classes rotate slowly, and a model that was trained only once
becomes outdated.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from slimsvm import BSGD, SVC

n_chunks = 60  # tests: 8


def chunk(number):
    """Two hundred rows of moons, turned by three degrees for each chunk before."""
    X, y = make_moons(200, noise=0.2, random_state=number)
    angle = np.deg2rad(3 * number)
    return (X - [0.5, 0.25]) @ [
        [np.cos(angle), -np.sin(angle)],
        [np.sin(angle), np.cos(angle)],
    ], y


stream = SVC(C=1, gamma=1, solver=BSGD(50), random_state=0)
once = SVC(C=1, gamma=1).fit(*chunk(0))
errors = {"partial_fit, 50 vectors": [], f"fitted once, {once.n_basis_} vectors": []}
stream.partial_fit(*chunk(0), classes=[0, 1])
for number in range(1, n_chunks):
    X, y = chunk(number)
    for values, clf in zip(errors.values(), (stream, once)):
        values.append(100 * (1 - clf.score(X, y)))
    stream.partial_fit(X, y)

figure, ax = plt.subplots(figsize=(8.5, 4.2), layout="constrained")
for style, (name, values) in zip(("-", "--"), errors.items()):
    ax.plot(range(1, n_chunks), values, style, label=name)
ax.set(xlabel="chunk", ylabel="error on the next chunk (%)", ylim=(0, None))
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
