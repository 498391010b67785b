"""`slimsvm.explain`."""

from __future__ import annotations

from typing import Any

from slimsvm.estimators._shared.explained import explained
from slimsvm.shapley.explanation import Explanation


def explain(
    model: Any, X: Any, background: Any = None, *, n_permutations: int = 100, random_state: Any = 0
) -> Explanation:
    """Explain scores of a fitted model, or of a pipeline of scalers and a model; see the estimator's ``explain``.

    Parameters
    ----------
    model : SVC, SVR or another estimator of slimsvm, fitted, or a Pipeline of scalers and one
        As in `slimsvm.save`.
    X : array-like of shape (n_rows, n_features), or a sparse matrix
        Unscaled rows, as the pipeline takes them.
    background, n_permutations, random_state
        See `SVC.explain`.

    Returns
    -------
    Explanation

    Raises
    ------
    TypeError, ValueError
        As in `SVC.explain` and `slimsvm.save`.

    Examples
    --------
    >>> import slimsvm
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_iris(return_X_y=True)
    >>> pipeline = make_pipeline(StandardScaler(), slimsvm.SVC(max_basis=10, random_state=0)).fit(X, y)
    >>> slimsvm.explain(pipeline, X[:5], background=X[::10]).values.shape
    (5, 4, 3)
    """
    return explained(model, X, background, n_permutations, random_state)
