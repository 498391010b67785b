"""
How many vectors are enough?
============================

``max_basis="auto"`` tries numbers of vectors on held-out rows. It keeps the smallest
number with which the error grows by no more than a quarter of a percentage point.
``SizePathDisplay`` draws what it tried.
"""

from slimsvm import SVC
from slimsvm.datasets import checkerboard
from slimsvm.plots import SizePathDisplay

n_rows = 8_000  # tests: 500
X, y = checkerboard(n_rows, random_state=0)
clf = SVC(C=1, gamma=10, max_basis="auto", random_state=0).fit(X, y)
SizePathDisplay.from_estimator(clf)

# %%
# The exact SVM of all rows has many times as many vectors:

print(f"{clf.n_basis_} vectors; the exact SVM has {SVC(C=1, gamma=10).fit(X, y).n_basis_}")
