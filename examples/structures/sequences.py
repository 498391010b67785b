"""
Sequences
=========

Every row has a label, and labels depend on their neighbours. ``SequenceSVM`` learns
scores of rows with any kernel, and scores of transitions between labels. A classifier of
single rows cannot use the neighbours.
"""

import matplotlib.pyplot as plt
import numpy as np

from slimsvm import SVC, SequenceSVM

n_sequences = 60  # tests: 12
rng = np.random.default_rng(0)
states = ["sleep", "walk", "run"]
stay = np.array([[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8]])
centres = np.array([[0.0, 0.0], [1.5, 0.5], [2.5, 2.0]])


def draw(length=60):
    """A chain of states, and two noisy measurements of each."""
    y = [rng.integers(3)]
    for _ in range(length - 1):
        y.append(rng.choice(3, p=stay[y[-1]]))
    return centres[y] + rng.normal(size=(length, 2)), np.array(states)[y]


X, y = zip(*[draw() for _ in range(n_sequences)])
X_test, y_test = zip(*[draw() for _ in range(40)])
chain = SequenceSVM(C=1, gamma=0.2, max_basis=30, random_state=0).fit(list(X), list(y))
alone = SVC(gamma=0.2, max_basis=30, random_state=0).fit(np.vstack(X), np.concatenate(y))
found = {
    "SVC, each row alone": [alone.predict(each) for each in X_test],
    "SequenceSVM": chain.predict(list(X_test)),
}

# %%
# One test sequence: the truth and both predictions.

place = {name: k for k, name in enumerate(states)}
figure, axes = plt.subplots(3, 1, figsize=(9, 5), sharex=True, layout="constrained")
for ax, (name, labels) in zip(axes, ({"truth": y_test} | found).items(), strict=True):
    ax.step(range(60), [place[label] for label in labels[0]], where="mid")
    wrong = np.mean(np.concatenate(labels) != np.concatenate(y_test))
    ax.set_title(
        name if name == "truth" else f"{name}: {100 * wrong:.1f} % of the test rows wrong",
        fontsize="medium",
    )
    ax.set_yticks(range(3), states)
    ax.set_ylabel("state")
axes[-1].set_xlabel("row of the sequence")

# %%
# The learned scores of transitions: running does not follow sleeping.

figure, ax = plt.subplots(figsize=(4.8, 4), layout="constrained")
largest = np.abs(chain.transitions_).max()
image = ax.imshow(chain.transitions_, cmap="PuOr", vmin=-largest, vmax=largest)
ax.set_xticks(range(3), chain.classes_)
ax.set_yticks(range(3), chain.classes_)
ax.set(xlabel="next label", ylabel="label")
figure.colorbar(image, ax=ax, label="score of the transition")
