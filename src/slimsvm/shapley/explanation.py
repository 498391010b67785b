"""The result of `explain`: Shapley values in the form that shap's plots take."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Explanation:
    """Shapley values of rows: ``base_values + values.sum(axis=1)`` are the scores.

    Attributes
    ----------
    values : float64 ndarray of shape (n_rows, n_features), or (n_rows, n_features, n_outputs)
        What each feature adds to the score.
    base_values : float64 ndarray of shape (n_rows,), or (n_rows, n_outputs)
        The score if all features are absent, the same for all rows.
    data : ndarray of shape (n_rows, n_features)
        The rows as they were given, unscaled.
    feature_names : list of str or None
    output_names : list of str or None
        For several outputs: the classes, or pairs of them.
    standard_errors : float64 ndarray of the shape of ``values``, or None
        For values that are means over sampled permutations; None if the values are exact.

    Examples
    --------
    >>> import slimsvm
    >>> model = slimsvm.SVR(gamma=1.0).fit([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0.0, 2.0, 1.0])
    >>> found = model.explain([[1.0, 0.0]])
    >>> found.values.shape, bool(abs(found.base_values + found.values.sum(axis=1) - model.predict([[1.0, 0.0]])) < 1e-9)
    ((1, 2), True)
    """

    values: Array
    base_values: Array
    data: Array
    feature_names: list[str] | None = None
    output_names: list[str] | None = None
    standard_errors: Array | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Explanation:
        """Those of some rows: an integer, a slice, or an array of integers or truth values."""
        rows = [rows] if isinstance(rows, int | np.integer) else rows
        errors = None if self.standard_errors is None else self.standard_errors[rows]
        return replace(self, values=self.values[rows], base_values=self.base_values[rows], data=self.data[rows],
                       standard_errors=errors)  # fmt: skip

    def of(self, output: int | str) -> Explanation:
        """Those of one output: its number, or its name in ``output_names``.

        Raises
        ------
        ValueError
            There is only one, or none of that name or number.
        """
        if self.values.ndim == 2:
            raise ValueError(f"output must be None where there is one output, found {output!r}")
        names = self.output_names or []
        at = names.index(output) if isinstance(output, str) and output in names else output
        if not isinstance(at, int | np.integer) or not 0 <= at < self.values.shape[2]:
            raise ValueError(f"output must be one of {', '.join(names)}, or its number; found {output!r}")
        errors = None if self.standard_errors is None else self.standard_errors[:, :, at]
        return replace(self, values=self.values[:, :, at], base_values=self.base_values[:, at], output_names=None,
                       standard_errors=errors)  # fmt: skip

    def to_shap(self) -> Any:
        """The same as a ``shap.Explanation``, for the plots of shap.

        Raises
        ------
        ImportError
            shap is not installed.
        """
        try:
            from shap import Explanation as ShapExplanation
        except ImportError as error:
            raise ImportError("shap is not installed: pip install shap") from error
        return ShapExplanation(self.values, base_values=self.base_values, data=self.data,
                               feature_names=self.feature_names, output_names=self.output_names,
                               error_std=self.standard_errors)  # fmt: skip
