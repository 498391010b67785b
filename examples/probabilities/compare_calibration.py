"""
Probabilities, compared
=======================

Do 70 % of the rows with a probability of 70 % belong to the class? There are four ways to
a probability: the logistic function of the score without any calibration,
``probability=True`` (no further fits), scikit-learn's ``CalibratedClassifierCV`` (five
fits), and the logistic loss, whose scores are log odds.
"""

import matplotlib.pyplot as plt
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss

from slimsvm import SVC

n_rows = 1_000  # tests: 200
X, y = make_classification(
    n_rows + 4_000,
    n_features=10,
    n_informative=4,
    n_clusters_per_class=3,
    flip_y=0.15,
    class_sep=0.8,
    random_state=0,
)
X_train, y_train, X_test, y_test = X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]

plain = SVC(C=10, gamma=0.1).fit(X_train, y_train)
probabilities = {
    "scores squashed": expit(3 * plain.decision_function(X_test)),
    "probability=True": SVC(C=10, gamma=0.1, probability=True)
    .fit(X_train, y_train)
    .predict_proba(X_test)[:, 1],
    "CalibratedClassifierCV": CalibratedClassifierCV(SVC(C=10, gamma=0.1), cv=5)
    .fit(X_train, y_train)
    .predict_proba(X_test)[:, 1],
    'loss="logistic"': SVC(C=1, gamma=0.1, loss="logistic")
    .fit(X_train, y_train)
    .predict_proba(X_test)[:, 1],
}

figure, ax = plt.subplots(figsize=(7.5, 5.4), layout="constrained")
for marker, (name, found) in zip("os^D", probabilities.items()):
    label = f"{name}: log loss {log_loss(y_test, found):.3f}"
    CalibrationDisplay.from_predictions(
        y_test, found, n_bins=10, name=label, marker=marker, ax=ax
    )
ax.set(
    xlabel="predicted probability of class 1", ylabel="share of class 1 among these rows"
)
