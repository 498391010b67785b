"""Certificates of fitted models."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from slimsvm import tasks
from slimsvm.estimators._shared.input_checks import check_limit
from slimsvm.model import columns_between
from slimsvm.parts.certificate import Certificate, certify
from slimsvm.parts.problem import Problem
from slimsvm.rows import Rows, as_rows

if TYPE_CHECKING:
    from slimsvm.model import KernelExpansion


class Certified:
    """Mixin of estimators whose model is bounded by the rows and labels alone."""

    def certificate(self: Any, X, y, sample_weight=None, max_seconds=None) -> Certificate:
        """Bound the gap between the model and the exact SVM of this kernel and C. It uses only the model, not the fit.

        One pass costs n² kernel evaluations.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The training rows.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or None, default=None
            As in ``fit``.
        max_seconds : float or None, default=None
            Time limit; the bound so far is then returned.

        Returns
        -------
        Certificate
            ``objective`` is the model's, and no model has one below ``lower_bound``; both are in float64.
            ``gap`` is the largest share by which the objective could be lowered.

        Raises
        ------
        NotFittedError
            Before ``fit``.
        ValueError
            A value in X or y is out of range.

        Examples
        --------
        >>> from slimsvm import SVC
        >>> from sklearn.datasets import load_breast_cancer
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> SVC(max_basis=10).fit(X, y).certificate(X, y).gap < 0.5
        True
        """
        check_is_fitted(self, "model_")
        if self._objects is not None and self._objects.are_vectors:
            raise ValueError(
                "a certificate needs the kernel's values between all rows, and a model of few texts, lists or other "
                "objects keeps those alone: train it with kernel='precomputed' on the matrix of these values"
            )
        X, y = self._check_X(X, reset=False, y=y)
        limit = check_limit("max_seconds", max_seconds, integer=False)
        X, y, weights, index = self._weighted_rows(X, y, sample_weight)
        model = self.model_
        if not model.kernel.has_features:
            positions = np.arange(len(y)) if index is None else index
            if not np.isin(model.basis, positions).all():
                raise ValueError(
                    "sample_weight is 0 for rows of the model, but their kernel values with other rows are needed"
                )
            model = replace(model, basis=np.searchsorted(positions, model.basis))
        task, examples, centre = self._encode(y, weights)
        if self._takes_targets and task.n_outputs != model.coef.shape[1]:
            raise ValueError(f"y must have the targets of the fit, {model.coef.shape[1]}; found {task.n_outputs}")
        return self._certify(X, task, examples, model.shifted(-centre), limit)

    def _certify(
        self: Any, X: Any, task: tasks.Task, examples: tasks.Examples, model: KernelExpansion, max_seconds: float | None
    ) -> Certificate:
        """The certificate of a model for the problem that was trained."""
        C: Any = getattr(self, "C_", self.C)
        C = 1.0 if np.ndim(C) else C  # of pairs of classes that differ in it the task has it
        columns = None if isinstance(X, Rows) else columns_between(model, X)
        if columns is not None:
            X, model = columns.narrow(X), replace(model, basis=columns.narrow(model.basis))
        problem = Problem(
            rows=as_rows(X),
            examples=examples,
            task=task,
            kernel=model.kernel,
            C=C,
            intercept=str(getattr(self, "intercept_kind_", self.intercept)) if task.has_threshold else "none",
            random_state=0,
            memory_limit=int(1e6 * self.memory_limit),
            n_jobs=self.n_jobs,
            verbose=int(self.verbose),
            settings=self._settings,
        )
        return certify(problem, replace(model, dtype="float64"), max_seconds=max_seconds)
