"""
Several classes
===============

Handwritten digits of 8 by 8 pixels. ``SVC()`` trains an SVM for each pair of classes,
as scikit-learn does. With ``max_basis=60`` all pairs share 60 vectors.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import train_test_split

from slimsvm import SVC

n_rows = 1_797  # tests: 400
X, y = (each[:n_rows] for each in load_digits(return_X_y=True))
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
clf = SVC(C=10, gamma=0.3, max_basis=60, random_state=0).fit(X_train, y_train)
predicted = clf.predict(X_test)

# %%
# The confusion matrix, and the first digits that it gets wrong.

figure, ax = plt.subplots(figsize=(6, 5.4), layout="constrained")
ConfusionMatrixDisplay.from_predictions(
    y_test, predicted, cmap="Blues", colorbar=False, ax=ax
)
ax.set_title(
    f"{clf.n_basis_} vectors, {(predicted != y_test).sum()} errors on {len(y_test)} rows"
)

wrong = (predicted != y_test).nonzero()[0][:5]
figure, axes = plt.subplots(
    1, len(wrong), figsize=(1.4 * len(wrong), 2), layout="constrained"
)
for ax, i in zip(axes, wrong):
    ax.set_axis_off()
    ax.imshow(X_test[i].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{y_test[i]}, taken\nfor {predicted[i]}", fontsize="medium")
