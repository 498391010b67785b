"""A plot of the learned scale of every feature."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from slimsvm.docstrings import described
from slimsvm.estimators._shared.input_checks import check_at_least
from slimsvm.plots.drawing import DRAWING, PALETTE, axes_for, label, last_step, names_of_features

Array = np.ndarray


class MetricDisplay:
    """γ of every feature, the largest on top.

    Make it by `from_estimator`. Along a feature with a large γ the kernel falls fast. The unit of γ is one over the
    square of the feature's unit (for the Laplacian kernel, one over the unit), so compare only scaled features.

    Attributes
    ----------
    gamma : float64 ndarray of shape (n_features,)
    feature_names : list of str
    ax_, figure_ : matplotlib's Axes and Figure
        After `plot`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.preprocessing import scale
    >>> from slimsvm import SVC
    >>> from slimsvm.plots import MetricDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = SVC(gamma="learn", max_basis=10, random_state=0).fit(scale(X), y)
    >>> display = MetricDisplay.from_estimator(clf)                  # doctest: +SKIP
    """

    def __init__(self, gamma, feature_names):
        self.gamma, self.feature_names = gamma, feature_names

    @classmethod
    @described(DRAWING)
    def from_estimator(
        cls, estimator: Any, *, feature_names: Any = None, max_features: int = 20, ax: Any = None
    ) -> MetricDisplay:
        """Take γ from the kernel of a fitted estimator, and draw it.

        Parameters
        ----------
        estimator : fitted estimator, or pipeline that ends in one
            Its γ must be an array, as after ``gamma="learn"``. In a pipeline, γ refers to the scaled features.
        feature_names : list of str, default=None
            None takes the names that the estimator has seen, or numbers.
        max_features : int, default=20
            Largest number of features to draw; those with the largest γ are drawn.
        ax

        Returns
        -------
        MetricDisplay

        Raises
        ------
        ValueError
            The kernel has no γ for every feature, or ``max_features`` or ``feature_names`` is wrong.
        ImportError
        """
        check_is_fitted(estimator)
        kernel = getattr(last_step(estimator), "kernel_", None)
        gamma = getattr(kernel, "gamma", None)
        if gamma is None or np.ndim(gamma) != 1:
            raise ValueError(f"the kernel has no gamma for every feature, as gamma='learn' gives it: found {kernel!r}")
        gamma = np.asarray(gamma, dtype=np.float64)
        seen = getattr(estimator, "feature_names_in_", None)
        names = names_of_features(seen if feature_names is None else feature_names, len(gamma))
        return cls(gamma, names).plot(ax, max_features=max_features)

    @described(DRAWING)
    def plot(self, ax: Any = None, *, max_features: int = 20) -> MetricDisplay:
        """Draw a bar for each feature.

        Parameters
        ----------
        ax
        max_features : int, default=20
            Largest number of features to draw; those with the largest γ are drawn.

        Returns
        -------
        MetricDisplay
        """
        check_at_least("max_features", max_features, 1)
        order = np.argsort(-self.gamma, kind="stable")[:max_features]
        ax = axes_for(ax, (6.4, 1.2 + 0.3 * len(order)))
        self.ax_, self.figure_ = ax, ax.figure
        places, values = np.arange(len(order)), self.gamma[order]
        ax.barh(places, values, color=PALETTE[0])
        ax.set_yticks(places, [label(self.feature_names[f]) for f in order])
        ax.invert_yaxis()
        ax.set(xlabel="γ of the feature")
        if len(order) < len(self.gamma):
            ax.set_title(f"{len(order)} of {len(self.gamma)} features", fontsize="medium")
        return self
