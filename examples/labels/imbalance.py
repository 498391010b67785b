"""
A rare class
============

One row in thirty is positive, and the classes overlap. The plain SVM finds few of
them. Class weights move the threshold. ``loss="f1"`` and ``loss="roc_auc"`` optimise the
measure itself.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.metrics import f1_score, precision_score, recall_score, roc_auc_score

from slimsvm import SVC

n_rows = 2_000  # tests: 400
X, y = make_classification(
    n_rows + 5_000,
    n_features=8,
    n_informative=5,
    weights=[0.965],
    flip_y=0.01,
    class_sep=0.7,
    random_state=3,
)
X_train, y_train, X_test, y_test = X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]

models = {
    "SVC()": SVC(),
    'class_weight="balanced"': SVC(class_weight="balanced"),
    'loss="f1"': SVC(loss="f1", C=100),
    'loss="roc_auc"': SVC(loss="roc_auc"),
}
measures = {"precision": precision_score, "recall": recall_score, "F1": f1_score}
found = {}
for name, clf in models.items():
    clf.fit(X_train, y_train)
    values = {
        key: measure(y_test, clf.predict(X_test), zero_division=0)
        for key, measure in measures.items()
    }
    found[name] = values | {
        "ROC area": roc_auc_score(y_test, clf.decision_function(X_test))
    }

figure, ax = plt.subplots(figsize=(9, 4.4), layout="constrained")
for k, (name, values) in enumerate(found.items()):
    bars = ax.bar(
        [place + 0.2 * (k - 1.5) for place in range(4)],
        list(values.values()),
        0.19,
        label=name,
    )
    ax.bar_label(bars, fmt="%.2f", fontsize="small")
ax.set_xticks(range(4), found["SVC()"])
ax.set(ylabel="on the test rows", ylim=(0, 1.05))
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
