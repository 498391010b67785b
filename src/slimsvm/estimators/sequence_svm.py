"""Sequence labelling with kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from slimsvm.dictionaries import check_named, dictionaries_of, parts_of_dictionaries
from slimsvm.estimators._shared import with_shared_parameters
from slimsvm.estimators._shared.around_fit import afresh, with_callbacks
from slimsvm.estimators._shared.input_checks import (
    check_at_least,
    check_finite,
    check_labels,
    check_limit,
    check_one_array,
    check_option,
    check_sample_weight,
    class_codes,
    offsets_of,
    stack_sequences,
)
from slimsvm.estimators._shared.kernel_estimator import KernelEstimator
from slimsvm.parts.certificate import Certificate
from slimsvm.tasks import Chain, Examples

Array = np.ndarray


@with_shared_parameters
class SequenceSVM(KernelEstimator):
    """Structural SVM of a linear chain whose emissions are scored by any kernel.

    The labels y_1 .. y_L of a sequence of rows x_1 .. x_L score start[y_1] + Σ_t f(x_t)[y_t] + Σ_t T[y_t, y_{t+1}] +
    end[y_L], where f is a kernel expansion with one column per label. The best labelling is predicted. Training
    minimises ½‖w‖² + C Σ_sequences max_ŷ [Δ(y, ŷ) + score(ŷ) − score(y)].

    Parameters
    ----------
    C : float or "validate", default=1.0
        Weight of one sequence's loss. "validate" tries 0.1, 1, … 1000, takes the value with the lowest error on a fifth
        of the sequences (of at least ten), which are held out, and trains on all sequences with it.
    kernel
        There is no precomputed kernel of sequences.
    degree, gamma, coef0
    loss : {"hamming", "zero-one"}, default="hamming"
        Δ: the number of wrong labels, or 1 if any is wrong.
    window : int, default=0
        The features of this many rows before and after a row are appended to its features (zeros beyond the ends).
    tol, verbose, max_iter, random_state
    solver
        Exact and sampled cuts, "bcfw", "cpsp" and "refine" can train chains. "auto" is "refine" with a number as
        ``max_basis``, and "exact-cuts" without.
    max_basis : int or None, default=None
        Largest number of learned vectors, for solvers that have such a limit.
    intercept, max_seconds, precision, memory_limit, n_jobs, warm_start

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
    transitions_ : ndarray of shape (n_labels, n_labels)
        T[a, b]: score of label b after label a.
    start_, end_ : ndarray of shape (n_labels,)
    n_basis_, basis_vectors_, basis_coef_, intercept_, objective_, lower_bound_, gap_, status_, history_, model_, C_
    validation_

    References
    ----------
    Altun, Tsochantaridis, Hofmann: Hidden Markov Support Vector Machines, ICML 2003.
    Yu, Joachims: Training Structural SVMs with Kernels Using Sampled Cuts, KDD 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm import SequenceSVM
    >>> X = [np.array([[0.0], [1.0], [0.0]]), np.array([[1.0], [1.0]])]
    >>> y = [["a", "b", "a"], ["b", "b"]]
    >>> clf = SequenceSVM(C=10.0, gamma=1.0).fit(X, y)
    >>> [labels.tolist() for labels in clf.predict([np.array([[1.0], [0.0]])])]
    [['b', 'a']]
    """

    _y_numeric = False
    _decisive = ("window", "loss")

    def __init__(
        self, *, C=1.0, kernel="rbf", degree=3, gamma="scale", coef0=0.0, loss="hamming", window=0, tol=1e-3,
        verbose=False, max_iter=-1, random_state=None, solver="auto", max_basis=None, intercept="regularized",
        max_seconds=None, precision="auto", memory_limit=2000, n_jobs=None, warm_start=False,
    ):  # fmt: skip
        self.C, self.kernel, self.degree, self.gamma, self.coef0, self.loss = C, kernel, degree, gamma, coef0, loss
        self.window, self.tol, self.verbose, self.max_iter = window, tol, verbose, max_iter
        self.random_state, self.solver, self.max_basis, self.intercept = random_state, solver, max_basis, intercept
        self.max_seconds, self.precision, self.memory_limit = max_seconds, precision, memory_limit
        self.n_jobs, self.warm_start = n_jobs, warm_start

    @with_callbacks
    @afresh
    def fit(self, X, y, lengths=None, sample_weight=None):
        """Train.

        Parameters
        ----------
        X : list of array-likes or sparse matrices (length, n_features); or one of shape (n_rows, n_features)
            The sequences; or all of them one after another, with ``lengths``. A sequence may be a list of dictionaries
            of features, as sklearn-crfsuite takes them. A number is the value of its feature. A text, or each text of a
            list, becomes a feature of its own: ``{"word": "the"}`` is ``{"word=the": 1}``. Dictionaries may be nested.
            ``feature_names_in_`` has the names of all features in training; prediction ignores others.
        y : list of sequences of labels; or array-like of shape (n_rows,)
            In the form of X.
        lengths : array-like of shape (n_sequences,) or None, default=None
            Number of rows of each sequence, if X is one array.
        sample_weight : array-like of shape (n_sequences,) or None, default=None
            Positive weights of the sequences' losses.

        Raises
        ------
        ValueError
            A parameter, a sequence or a label is invalid; the message names it.
        """
        check_option("loss", self.loss, ("hamming", "zero-one"))
        if self._is_precomputed:
            raise ValueError("kernel='precomputed' is not for sequences; a function of the rows is: kernel=callable")
        rows, offsets = self._rows(X, lengths, reset=True)
        if (np.diff(offsets) == 0).any():
            raise ValueError(f"sequence {int(np.argmin(np.diff(offsets)))} is empty; every sequence needs a row to fit")
        labels = self._labels(y, offsets, lengths is None)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y must hold at least two labels, found 1: {self.classes_[0]!s}")
        task = Chain(len(self.classes_), self.loss)
        weights = check_sample_weight(sample_weight, len(offsets) - 1, "sequence")
        examples = task.encode(np.split(codes, offsets[1:-1]), weights)
        by_row = None if weights is None else np.repeat(weights, np.diff(offsets))
        self._solve(rows, labels, examples, task, by_row)
        return self

    @property
    def transitions_(self) -> Array:
        """T[a, b]: score of label b after label a."""
        return self._plain_parts()[0]

    @property
    def start_(self) -> Array:
        """Score of every label in the first row."""
        return self._plain_parts()[1]

    @property
    def end_(self) -> Array:
        """Score of every label in the last row."""
        return self._plain_parts()[2]

    def _plain_parts(self) -> tuple[Array, Array, Array]:
        check_is_fitted(self, "model_")
        return Chain(len(self.classes_)).parts(self.model_.plain)

    def decision_function(self, X, lengths=None):
        """Emission scores of every row and label, without transitions.

        Parameters
        ----------
        X, lengths
            As in `predict`.

        Returns
        -------
        list of float64 ndarrays (length, n_labels), or one of shape (n_rows, n_labels)
            In the form of X.
        """
        scores, offsets = self._emissions(X, lengths)
        return np.split(scores, offsets[1:-1]) if lengths is None else scores

    def predict(self, X, lengths=None):
        """Best labelling of every sequence; ties go to the lowest label in the first row, then in the next.

        Parameters
        ----------
        X, lengths
            As in `fit`; sequences may be empty.

        Returns
        -------
        list of ndarrays (length,), or one of shape (n_rows,)
            In the form of X.
        """
        labels, offsets = self._predicted(X, lengths)
        return np.split(labels, offsets[1:-1]) if lengths is None else labels

    def predict_n_best(self, X, n=3, lengths=None):
        """The n best labellings of every sequence, with their scores.

        Parameters
        ----------
        X, lengths
            As in `predict`.
        n : int, default=3
            At least 1.

        Returns
        -------
        list of (labels, scores), one for each sequence
            ``labels``: ndarray (m, length), best first; the first is that of `predict`. m is n, or less if there are
            fewer labellings. ``scores``: float64 ndarray (m,), sums of emission and transition scores.

        Raises
        ------
        ValueError
            n is no integer of at least 1.

        Examples
        --------
        >>> import numpy as np
        >>> from slimsvm import SequenceSVM
        >>> X = [np.array([[0.0], [1.0], [0.0]]), np.array([[1.0], [1.0]])]
        >>> clf = SequenceSVM(C=10.0, gamma=1.0).fit(X, [["a", "b", "a"], ["b", "b"]])
        >>> labels, scores = clf.predict_n_best([np.array([[1.0], [0.0]])], n=9)[0]
        >>> labels.shape, labels[0].tolist(), bool(scores[0] > scores[1])
        ((4, 2), ['b', 'a'], True)
        """
        n = check_at_least("n", n, 1)
        scores, offsets = self._emissions(X, lengths)
        task, found = Chain(len(self.classes_)), []
        for own in np.split(scores, offsets[1:-1]):
            labels, values = task.n_best(own, self.model_.plain, n)
            found.append((self.classes_[labels], values))
        return found

    def margins(self, X, lengths=None):
        """Score of the best labelling with a label at a position, minus that of the best labelling with another one.

        Parameters
        ----------
        X, lengths
            As in `predict`.

        Returns
        -------
        list of float64 ndarrays (length, n_labels), or one of shape (n_rows, n_labels)
            In the form of X, columns in the order of ``classes_``. In each row only the label of `predict` has a number
            above 0, unless there are ties.
        """
        scores, offsets = self._emissions(X, lengths)
        task = Chain(len(self.classes_))
        found = [task.margins(own, self.model_.plain) for own in np.split(scores, offsets[1:-1])]
        return found if lengths is None else np.concatenate(found)

    def score(self, X, y, lengths=None):
        """Share of correct labels.

        Parameters
        ----------
        X, y, lengths
            As in `fit`. A label that was not seen in training counts as wrong.

        Raises
        ------
        ValueError
            There is no row, or y does not fit X.
        """
        predicted, offsets = self._predicted(X, lengths)
        if not len(predicted):
            raise ValueError("score needs at least one row, found empty sequences only")
        return float(np.mean(predicted == self._labels(y, offsets, lengths is None)))

    def certificate(self, X, y, sample_weight=None, max_seconds=None, lengths=None) -> Certificate:
        """Bound the gap between the model and the best one of this kernel and C. It uses only the model, not the fit.

        The bound comes from exact cuts; the first one is taken at the model.

        Parameters
        ----------
        X, y, sample_weight, lengths
            The training sequences, as in `fit`.
        max_seconds

        Raises
        ------
        NotFittedError
        ValueError
            A sequence or a label is invalid; the message names it.
        """
        self = self._as_fitted()
        limit = check_limit("max_seconds", max_seconds, integer=False)
        rows, offsets = self._rows(X, lengths, reset=False)
        labels = self._labels(y, offsets, lengths is None)
        codes = class_codes(labels, self.classes_, "labels")
        task = Chain(len(self.classes_), self.loss)
        examples = task.encode(
            np.split(codes, offsets[1:-1]), check_sample_weight(sample_weight, len(offsets) - 1, "sequence")
        )
        return self._certify(rows, task, examples, self.model_, limit)

    # -- sequences to rows --------------------------------------------------------------------------------------

    def _predicted(self, X: Any, lengths: Any) -> tuple[Array, Array]:
        scores, offsets = self._emissions(X, lengths)
        examples = Examples(np.zeros(len(scores), np.int64), np.ones(len(offsets) - 1), offsets)
        return self.classes_[Chain(len(self.classes_)).decode(scores, self.model_.plain, examples)], offsets

    def _emissions(self, X: Any, lengths: Any) -> tuple[Array, Array]:
        check_is_fitted(self, "model_")
        rows, offsets = self._rows(X, lengths, reset=False)
        return self.model_.scores(rows, n_jobs=self.n_jobs), offsets

    def _rows(self, X: Any, lengths: Any, reset: bool) -> tuple[Any, Array]:
        """All rows in one array, with their windows, and the positions where sequences begin."""
        check_at_least("window", self.window, 0)
        if (rows := dictionaries_of(X, lengths)) is not None:
            lengths = list(map(len, X)) if lengths is None else lengths
            X = self._dictionary_rows(rows, reset)
        else:
            if lengths is None:
                X, lengths = stack_sequences(X, None if reset else self.n_features_in_, "sequence")
            else:
                check_one_array(X, "sequence")
            is_empty = not reset and not np.any(lengths) and (X is None or 0 in np.shape(X)[:1])
            X = np.zeros((0, self.n_features_in_)) if is_empty else self._check_X(X, reset=reset)
        offsets = offsets_of(lengths, X.shape[0], "sequence")
        return _with_window(X, offsets, int(self._fitted_with("window"))), offsets

    def _dictionary_rows(self, rows: Any, reset: bool) -> Any:
        """The matrix of rows of dictionaries."""
        names = None if reset else getattr(self, "feature_names_in_", None)
        if not reset:
            check_named(names)
        parts, names = parts_of_dictionaries(rows, names)
        X = sp.csr_array(parts, shape=(len(rows), len(names)))
        X.sum_duplicates()
        if not X.shape[1]:
            raise ValueError("X must have a feature, found empty dictionaries only")
        if reset:
            X = self._check_X(X, reset=True)
            self.feature_names_in_ = names
        else:
            check_finite(X)
        return X

    def _labels(self, y: Any, offsets: Array, as_list: bool) -> Array:
        """All labels in one array."""
        if y is None:
            raise ValueError("y must hold a label for every row, found None")
        if as_list:
            if len(y) != len(offsets) - 1:
                raise ValueError(f"y must have one entry per sequence: {len(offsets) - 1} sequences, found {len(y)}")
            for e, labels in enumerate(y):
                length = offsets[e + 1] - offsets[e]
                if np.shape(labels) != (length,):
                    raise ValueError(
                        f"y must have one label per row: sequence {e} has {length} rows, found shape {np.shape(labels)}"
                    )
        elif isinstance(y, (list, tuple)) and any(np.ndim(label) for label in y):
            raise ValueError(f"y must have one label per row: {offsets[-1]} rows, found a list of sequences")
        elif np.shape(y) != (offsets[-1],):
            raise ValueError(f"y must have one label per row: {offsets[-1]} rows, found shape {np.shape(y)}")
        return _one_after_another([labels for labels in y if len(labels)] if as_list else [y])


def _one_after_another(sequences: list[Any]) -> Array:
    """The labels of all sequences. They are checked as objects where lists have them: an array of a list's own type has
    texts for all that stands beside texts.
    """
    are_listed = [isinstance(labels, (list, tuple)) for labels in sequences]
    parts = [
        np.array(labels, dtype=object) if own else np.asanyarray(labels)
        for labels, own in zip(sequences, are_listed, strict=True)
    ]
    if len({part.dtype.kind in "US" for part in parts}) > 1:
        parts = [part.astype(object) for part in parts]
    is_masked = any(isinstance(part, np.ma.MaskedArray) for part in parts)
    labels = (np.ma.concatenate if is_masked else np.concatenate)(parts or [np.zeros(0)])
    check_labels(labels)
    return np.array(labels.tolist()) if any(are_listed) else np.asarray(labels)


def _with_window(X: Any, offsets: Array, window: int) -> Any:
    """Rows with the features of their neighbours in the same sequence, the earliest first."""
    if window == 0:
        return X
    n = X.shape[0]
    first = np.repeat(offsets[:-1], np.diff(offsets))
    last = np.repeat(offsets[1:], np.diff(offsets))
    parts = []
    for step in range(-window, window + 1):
        source = np.arange(n) + step
        inside = (source >= first) & (source < last)
        picked = sp.csr_array(
            (np.ones(inside.sum()), (np.flatnonzero(inside), source[inside])), shape=(n, n), dtype=X.dtype
        )
        parts.append(picked @ X)
    return sp.hstack(parts, format="csr") if sp.issparse(X) else np.hstack(parts)
