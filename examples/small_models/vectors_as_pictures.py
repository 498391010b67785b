"""
Vectors as pictures
===================

The vectors of a small model are learned: they are prototypes, not training rows.
``VectorsDisplay`` shows them as images, or as lines across the features.
"""

from sklearn.datasets import load_digits, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slimsvm import SVC, Refine
from slimsvm.plots import VectorsDisplay

n_rows = 1_797  # tests: 400
X, y = (each[:n_rows] for each in load_digits(return_X_y=True))
digits = SVC(C=10, gamma=0.001, solver=Refine(30), random_state=0).fit(X, y)
VectorsDisplay.from_estimator(digits, shape=(8, 8))

# %%
# Without a shape, each vector is a line from feature to feature, in the colour of the
# class that it speaks for. A large coefficient makes it opaque. The pipeline's scaling is
# undone: values are those of the table.

wine = load_wine(as_frame=True)
names = wine.target_names[wine.target]
model = make_pipeline(StandardScaler(), SVC(max_basis=9, random_state=0)).fit(
    wine.data, names
)
VectorsDisplay.from_estimator(model)
