"""
Why a row has its score
=======================

``explain`` splits a score among the features, by exact Shapley values: a millisecond a
row, with no sampling. One row is drawn as bars, many rows as a swarm of points for each
feature.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import slimsvm
from slimsvm.plots import ExplanationDisplay

n_rows = 569  # tests: 100
data = load_breast_cancer(as_frame=True)
X, y = data.data[:n_rows], data.target_names[data.target[:n_rows]]
model = make_pipeline(StandardScaler(), slimsvm.SVC(max_basis=20, random_state=0)).fit(X, y)
found = slimsvm.explain(model, X, background=X[::20])

# %%
# The first row. Scores above 0 are those of the second class:

print(model.classes_.tolist(), model.predict(X[:1]).tolist())
ExplanationDisplay.from_explanation(found[0], max_features=8)

# %%
# All rows: each point is a row, its colour the value of the feature.

ExplanationDisplay.from_explanation(found, max_features=8)
