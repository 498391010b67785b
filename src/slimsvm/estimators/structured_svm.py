"""Structured outputs of the user's own kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from slimsvm.estimators._shared import with_shared_parameters
from slimsvm.estimators._shared.around_fit import afresh, with_callbacks
from slimsvm.estimators._shared.input_checks import (
    check_limit,
    check_one_array,
    check_sample_weight,
    offsets_of,
    stack_sequences,
)
from slimsvm.estimators._shared.kernel_estimator import KernelEstimator
from slimsvm.parts.certificate import Certificate
from slimsvm.tasks import Examples, Task
from slimsvm.tasks.example_task import as_objects, copied

Array = np.ndarray


@with_shared_parameters
class StructuredSVM(KernelEstimator):
    """Structural SVM with any kernel for a task of your own.

    Minimises ½‖w‖² + C Σ_examples ω max_ŷ [Δ(y, ŷ) − ⟨w, Ψ(x, y) − Ψ(x, ŷ)⟩]. The task gives Δ, Ψ and the search for
    ŷ. The kernel scores rows; only the task decides what the rows of an example mean together.

    Parameters
    ----------
    task : Task
        An object of a class of your own, derived from `slimsvm.tasks.ExampleTask`, or any other task of
        `slimsvm.tasks`. `slimsvm.check_task` checks it.
    C : float or "validate", default=1.0
        Weight of one example's loss. "validate" tries 0.1, 1, … 1000, takes the value with the lowest error on a fifth
        of the examples (of at least ten; of rows for losses over all rows), which are held out, and trains on all
        examples with it.
    kernel
        There is no precomputed kernel of examples.
    degree, gamma, coef0
    tol : float, default=1e-3
        For cutting-plane solvers: the allowed error in mean loss. The objective is then within 1 % of the optimum, too,
        by the solver's ``tol_relative``. It holds for an `ExampleTask` whatever the number of rows. Up to 2,000 rows
        other tasks go on to a gap of 1e-10 of the objective, as `SVC` does.
    verbose, max_iter, random_state
    solver
        "refine", "cpsp" and all kinds of cuts can train every task.
    max_basis : int or None, default=None
        Largest number of learned vectors, for solvers that have such a limit.
    intercept, max_seconds, precision, memory_limit, n_jobs, warm_start

    Attributes
    ----------
    plain_ : ndarray of shape (n_plain,)
        The task's plain parameters, learned.
    n_basis_, basis_vectors_, basis_coef_, intercept_, objective_, lower_bound_, gap_, status_, history_, model_, C_
    validation_

    References
    ----------
    Tsochantaridis, Joachims, Hofmann, Altun: Large Margin Methods for Structured and Interdependent Output Variables,
    JMLR 2005.
    Yu, Joachims: Training Structural SVMs with Kernels Using Sampled Cuts, KDD 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm import StructuredSVM
    >>> from slimsvm.tasks import ExampleTask
    >>> class Grades(ExampleTask):
    ...     n_outputs = 4
    ...     def features(self, y):
    ...         return np.eye(4)[[y]]
    ...     def loss(self, y, other):
    ...         return abs(y - other)
    ...     def labels(self, n_rows):
    ...         return range(4)
    >>> X, y = np.arange(20.0)[:, None], np.arange(20) // 5
    >>> clf = StructuredSVM(Grades(), C=10.0, gamma=0.1).fit(X, y)
    >>> clf.predict([[1.0], [18.0]])
    array([0, 3])
    """

    _y_numeric = False

    def __init__(
        self, task=None, *, C=1.0, kernel="rbf", degree=3, gamma="scale", coef0=0.0, tol=1e-3, verbose=False,
        max_iter=-1, random_state=None, solver="auto", max_basis=None, intercept="regularized", max_seconds=None,
        precision="auto", memory_limit=2000, n_jobs=None, warm_start=False,
    ):  # fmt: skip
        self.task, self.C, self.kernel, self.degree, self.gamma, self.coef0 = task, C, kernel, degree, gamma, coef0
        self.tol, self.verbose, self.max_iter, self.random_state = tol, verbose, max_iter, random_state
        self.solver, self.max_basis, self.intercept, self.max_seconds = solver, max_basis, intercept, max_seconds
        self.precision, self.memory_limit, self.n_jobs, self.warm_start = precision, memory_limit, n_jobs, warm_start

    @with_callbacks
    @afresh
    def fit(self, X, y, lengths=None, structure=None, sample_weight=None):
        """Train.

        Parameters
        ----------
        X : list of array-likes or sparse matrices (n_rows, n_features); or one of shape (n_rows, n_features)
            The rows of each example; or all of them one after another, with ``lengths``, or without if every row is an
            example.
        y : list
            The input of the task's ``encode``: for an `ExampleTask`, one labelling per example.
        lengths : array-like of shape (n_examples,) or None, default=None
            Number of rows of each example, if X is one array.
        structure : list or None, default=None
            For an `ExampleTask`: one object for each example, which its methods get as ``structure``.
        sample_weight : array-like of shape (n_examples,) or None, default=None
            Positive weights of the examples' losses.

        Raises
        ------
        ValueError
            A parameter or an example is invalid; the message names it.
        """
        rows, examples = self._problem(X, y, lengths, structure, sample_weight, reset=True)
        weights = None
        if sample_weight is not None and examples.n_examples > 1:
            weights = examples.weights[examples.example_of_rows()]
        self._solve(rows, np.asarray(examples.labels), examples, self.task, weights)
        return self

    @property
    def plain_(self) -> Array:
        """The task's plain parameters, learned."""
        check_is_fitted(self, "model_")
        return self.model_.plain

    def decision_function(self, X, lengths=None):
        """Scores of every row, without plain parameters.

        Parameters
        ----------
        X, lengths
            As in `fit`.

        Returns
        -------
        list of float64 ndarrays (n_rows, n_outputs), or one of shape (n_rows, n_outputs)
            In the form of X.
        """
        rows, offsets = self._rows(X, lengths, reset=False)
        scores = self.model_.scores(rows, n_jobs=self.n_jobs)
        return np.split(scores, offsets[1:-1]) if offsets is not None and lengths is None else scores

    def predict(self, X, lengths=None, structure=None):
        """The best labelling of every example.

        Parameters
        ----------
        X, lengths, structure
            As in `fit`.

        Returns
        -------
        list, or ndarray of shape (n_rows,) where every row is an example
            Labellings in the task's form.
        """
        examples, predicted = self._predicted(X, lengths, structure)
        if self.task.has_object_labels:
            return np.array(predicted.tolist()) if examples.offsets is None else list(map(copied, predicted))
        if examples.offsets is None or lengths is not None:
            return predicted
        return np.split(predicted, examples.offsets[1:-1])

    def score(self, X, y, lengths=None, structure=None, sample_weight=None):
        """Minus the task's mean error of the predictions: higher is better, and 0 means no error.

        Parameters
        ----------
        X, y, lengths, structure, sample_weight
            As in `fit`.
        """
        check_is_fitted(self, "model_")
        rows, examples = self._problem(X, y, lengths, structure, sample_weight, reset=False)
        scores = self.model_.scores(rows, n_jobs=self.n_jobs)
        return -float(self.task.error(self.task.decode(scores, self.model_.plain, examples), examples))

    def certificate(self, X, y, sample_weight=None, max_seconds=None, lengths=None, structure=None) -> Certificate:
        """Bound the gap between the model and the best one of this kernel and C. It uses only the model, not the fit.

        The bound comes from exact cuts; the first one is taken at the model.

        Parameters
        ----------
        X, y, sample_weight, lengths, structure
            The training examples, as in `fit`.
        max_seconds
        """
        check_is_fitted(self, "model_")
        limit = check_limit("max_seconds", max_seconds, integer=False)
        rows, examples = self._problem(X, y, lengths, structure, sample_weight, reset=False)
        return self._certify(rows, self.task, examples, self.model_, limit)

    # -- examples to rows ---------------------------------------------------------------------------------------

    def _problem(self, X, y, lengths, structure, sample_weight, reset: bool) -> tuple[Any, Examples]:
        """All rows in one array, and the task's examples."""
        self._check_task()
        rows, offsets = self._rows(X, lengths, reset)
        labels = list(y) if self.task.has_object_labels else y
        weights = check_sample_weight(sample_weight, len(labels), "example" if self.task.decomposes else "row")
        if structure is None:
            examples = self.task.encode(labels, weights)
        elif self.task.has_object_labels:
            examples = self.task.encode(labels, weights, structure=structure)
        else:
            raise ValueError(f"structure is for tasks derived from ExampleTask, found {type(self.task).__name__}")
        if examples.n_rows != rows.shape[0]:
            raise ValueError(f"y is for {examples.n_rows} rows, X has {rows.shape[0]}")
        if offsets is not None:
            own = np.arange(examples.n_rows + 1) if examples.offsets is None else examples.offsets
            if len(own) != len(offsets):
                raise ValueError(f"y has {len(own) - 1} examples, X has {len(offsets) - 1}")
            if np.any(own != offsets):
                e = int(np.argmax(own != offsets)) - 1
                found = np.diff(own)[e], np.diff(offsets)[e]
                raise ValueError(f"example {e}: y is for {found[0]} rows, X has {found[1]}")
        return rows, examples

    def _predicted(self, X, lengths, structure) -> tuple[Examples, Any]:
        rows, offsets = self._rows(X, lengths, reset=False)
        n = rows.shape[0]
        n_examples = n if offsets is None else len(offsets) - 1
        per_example = {} if structure is None else {"structure": as_objects(list(structure))}
        if structure is not None and len(structure) != n_examples:
            raise ValueError(f"structure must have one entry per example: {n_examples}, found {len(structure)}")
        examples = Examples(np.zeros(n, np.int8), np.ones(n_examples), offsets, per_example=per_example)
        scores = self.model_.scores(rows, n_jobs=self.n_jobs)
        return examples, self.task.decode(scores, self.model_.plain, examples)

    def _check_task(self) -> None:
        if not isinstance(self.task, Task):
            hint = "; a file holds no Python: say set_params(task=...) after loading" if self.task is None else ""
            raise ValueError(f"task must be an object of a class derived from slimsvm.tasks.ExampleTask or Task, found "
                             f"{self.task!r}{hint}")  # fmt: skip

    def _rows(self, X: Any, lengths: Any, reset: bool) -> tuple[Any, Array | None]:
        """All rows in one array, and the positions where examples begin; None if every row is an example."""
        if not reset:
            check_is_fitted(self, "model_")
        self._check_task()
        if reset and self._is_precomputed:
            raise ValueError("kernel='precomputed' is not for examples of rows; a function is: kernel=callable")
        is_one = (isinstance(X, np.ndarray) and X.dtype != object) or sp.issparse(X) or hasattr(X, "iloc")
        if lengths is None and not is_one and len(X) and np.ndim(X[0] if not sp.issparse(X[0]) else np.eye(1)) == 1:
            X, is_one = np.asarray(X), True
        if lengths is None and not is_one:
            X, lengths = stack_sequences(X, None if reset else self.n_features_in_, "example")
        elif lengths is not None:
            check_one_array(X, "example")
        rows = self._check_X(X, reset=reset) if X is not None else np.zeros((0, self.n_features_in_))
        if lengths is None:
            return rows, None
        return rows, offsets_of(lengths, rows.shape[0], "example")
