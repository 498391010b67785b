"""
Effects of single columns
=========================

``Additive`` is a sum of kernels of one column each. The model is then a sum of curves,
and ``CurvesDisplay`` draws what each column adds to the prediction, whatever the other
columns are.
"""

from sklearn.datasets import load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slimsvm import SVR
from slimsvm.kernels import Additive
from slimsvm.plots import CurvesDisplay

n_rows = 442  # tests: 120
X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X, y = X[:n_rows], y[:n_rows]
model = make_pipeline(StandardScaler(), SVR(kernel=Additive(0.2), C=100, epsilon=10)).fit(
    X, y
)
CurvesDisplay.from_estimator(model, X, max_columns=6)
