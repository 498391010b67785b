"""Shapley values of scores: which feature of a row moves its score, and by how much.

Scores are functions of features that are there or not. Every kernel here is h(Σ_f u_f(x_f, z_f)), by its formula: an
absent feature's u_f is 0, or with a background row r that of r_f.

Exact values. Some kernels are products over features, k(x, z) = Π_f k_f(x_f, z_f). With p_f = k_f(x_f, z_f), and q_f =
1 for an absent feature or k_f(r_f, z_f) with a background row r, the value of a coalition S under one vector is Π_{f in
S} p_f Π_{f not in S} q_f. A coalition of s of the other d − 1 features counts s! (d − 1 − s)! / d! = ∫_0^1 t^s (1 −
t)^(d − 1 − s) dt, so that the sum over all coalitions is

    phi_i = (p_i − q_i) ∫_0^1 Π_{f ≠ i} (t p_f + (1 − t) q_f) dt,

the integral of a polynomial of degree d − 1: Gauss and Legendre's rule of ⌈d/2⌉ nodes has it exactly. All terms are
positive, so that no digits cancel, where elementary symmetric polynomials of Möller and others' form (Mohammadi et al.,
"Computing exact Shapley values in polynomial time for product-kernel methods", 2025) need care. The product without
feature i is one from the left times one from the right: none is divided by, and any may be 0.

A sum of kernels of some columns each, an additive model, has the sum of their values: of one column they are exact
whatever the kernel is.

Sampled values of other kernels. A permutation adds the features one by one; each gets what the score gains when it
comes (Castro, Gómez and Tejada, Computers & Operations Research, 2009). With each permutation goes its reverse, which
takes away much of the variance (Mitchell et al., JMLR 2022). The gains of every permutation add up to the score less
the base value, so the means do. Of a table whole columns come, with all their features (`column_values`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.special import roots_legendre

from slimsvm.core.clock import check_time
from slimsvm.deploy.plain_model import PlainModel, of_term
from slimsvm.deploy.rows import as_rows, check_finite, dense_rows
from slimsvm.kernels.kernel import NUMPY

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
        """Return the explanation of some rows: an integer, a slice, or an array of integers or truth values."""
        rows = [rows] if isinstance(rows, int | np.integer) else rows
        errors = None if self.standard_errors is None else self.standard_errors[rows]
        return replace(self, values=self.values[rows], base_values=self.base_values[rows], data=self.data[rows],
                       standard_errors=errors)  # fmt: skip

    def of(self, output: int | str) -> Explanation:
        """Return the explanation of one output: its number, or its name in ``output_names``.

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
        """Return the same as a ``shap.Explanation``, for the plots of shap.

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


class Terms(NamedTuple):
    """The terms u_f(x_f, z_f) of rows and vectors, and the map h."""

    of: Callable[[Array, Array], Array]
    map: Callable[[Array], Array]


def terms_of(model: PlainModel) -> Terms:
    """Return the terms of a model's kernel; ``of(X, Z)`` has shape (n_features, n_rows, n_vectors)."""
    kernel = model.kernel
    gamma = np.broadcast_to(np.asarray(kernel.gamma, np.float64), (model.n_features,))[:, None, None]
    if kernel.form == "products":
        return Terms(lambda X, Z: gamma * _products(X, Z), lambda u: kernel.formula(u + kernel.coef0, NUMPY))
    of_difference = OF_DIFFERENCE[kernel.form]
    weight = (-0.5 if kernel.form == "squares" else -1.0) * kernel.unit * gamma
    return Terms(lambda X, Z: weight * of_difference(_differences(X, Z)), lambda u: kernel.formula(u, NUMPY))


OF_DIFFERENCE = {"squares": np.square, "absolute": np.abs}


def _differences(X: Array, Z: Array) -> Array:
    return X.T[:, :, None] - Z.T[:, None, :]


def _products(X: Array, Z: Array) -> Array:
    return X.T[:, :, None] * Z.T[:, None, :]


# The products from the left that are stored together.
PRODUCT_NUMBERS = 1 << 18


def product_values(model: PlainModel, coef: Array, X: Array, background: Array | None) -> Array:
    """Return Shapley values (n, d, n_outputs) of scaled rows; ``coef`` has shape (n_vectors, n_outputs)."""
    terms, vectors = terms_of(model), model.dense_vectors()
    n, d, n_vectors = len(X), model.n_features, len(vectors)
    nodes, weights = gauss_legendre(-(-d // 2))
    absent = None if background is None else terms.map(terms.of(background, vectors))  # (d, n_background, n_vectors)
    values = np.zeros((n, d, coef.shape[1]))
    step_vectors = max(1, min(n_vectors, PRODUCT_NUMBERS // (d * len(nodes))))
    step = max(1, PRODUCT_NUMBERS // (d * len(nodes) * step_vectors))
    for first in range(0, n_vectors, step_vectors):
        of_vectors = slice(first, first + step_vectors)
        for lo in range(0, n, step):
            present = terms.map(terms.of(X[lo : lo + step], vectors[of_vectors]))
            if absent is None:
                shares = integrals(present, np.ones((d, 1, 1)), nodes, weights)
            else:
                shares = np.zeros_like(present)
                for r in range(absent.shape[1]):
                    shares += integrals(present, absent[:, r : r + 1, of_vectors], nodes, weights)
                shares /= absent.shape[1]
            values[lo : lo + step] += np.moveaxis(shares @ coef[of_vectors], 0, 1)
    return values


def integrals(present: Array, absent: Array, nodes: Array, weights: Array) -> Array:
    """Return values phi of single vectors (d, n, n_vectors); ``absent`` may have one row, or one vector, for all."""
    d = len(present)
    difference = present - absent
    factors = difference[..., None] * nodes
    factors += absent[..., None]
    left = np.empty_like(factors)
    left[0] = weights
    for f in range(1, d):
        np.multiply(left[f - 1], factors[f - 1], out=left[f])
    phi, right = np.empty_like(difference), np.ones_like(factors[0])
    for f in range(d - 1, -1, -1):
        phi[f] = np.einsum("...t,...t->...", left[f], right)
        right *= factors[f]
    phi *= difference
    return phi


@lru_cache(maxsize=16)
def gauss_legendre(n: int) -> tuple[Array, Array]:
    """Return nodes and weights on [0, 1]."""
    nodes, weights = roots_legendre(n)
    return 0.5 * (nodes + 1.0), 0.5 * weights


# The sums of features that are mapped together.
SUM_NUMBERS = 1 << 20


def sampled_values(
    model: PlainModel, coef: Array, X: Array, background: Array | None, n_pairs: int, rng: np.random.RandomState
) -> tuple[Array, Array]:
    """Return Shapley values (n, d, n_outputs) of scaled rows and their standard errors; rows share permutations."""
    terms, vectors, d = terms_of(model), model.dense_vectors(), model.n_features
    permutations = np.array([rng.permutation(d) for _ in range(n_pairs)])
    orders = np.concatenate([permutations, permutations[:, ::-1]])
    absent = np.zeros((d, 1, len(vectors))) if background is None else terms.of(background, vectors)
    n_absent, n_outputs = absent.shape[1], coef.shape[1]
    gains = np.empty((2 * n_pairs, d, n_outputs))
    values, errors = np.empty((len(X), d, n_outputs)), np.empty((len(X), d, n_outputs))
    step = max(1, SUM_NUMBERS // ((d + 1) * n_absent * len(vectors)))
    for i, row in enumerate(X):
        change = terms.of(row[None], vectors) - absent  # (d, n_absent, n_vectors)
        for lo in range(0, 2 * n_pairs, step):
            some = orders[lo : lo + step]
            sums = np.empty((len(some), d + 1, n_absent, len(vectors)))
            sums[:, 0] = absent.sum(axis=0)
            np.cumsum(change[some], axis=1, out=sums[:, 1:])
            sums[:, 1:] += sums[:, :1]
            scores = terms.map(sums).mean(axis=2) @ coef
            np.put_along_axis(gains[lo : lo + step], some[:, :, None], np.diff(scores, axis=1), axis=1)
        pairs = 0.5 * (gains[:n_pairs] + gains[n_pairs:])
        values[i] = pairs.mean(axis=0)
        errors[i] = pairs.std(axis=0, ddof=1) / np.sqrt(n_pairs)
    return values, errors


def column_values(
    predict: Callable[[Array], Array],
    X: Array,
    background: Array,
    columns: Array,
    n_columns: int,
    n_pairs: int,
    rng: np.random.RandomState,
) -> tuple[Array, Array, Array]:
    """Sampled values (n, n_columns, n_outputs) of encoded rows of a table, their standard errors, and base values.

    ``columns`` says which column each feature comes from. A column that is not there has the values of the background
    rows, and the mean over these is taken. All rows have the same ``n_pairs`` of permutations and their reverses.
    """
    used, n_absent = np.unique(columns), len(background)
    permutations = [rng.permutation(used) for _ in range(n_pairs)]
    base = predict(background).mean(axis=0)
    values, errors = (np.zeros((len(X), n_columns, len(base))) for _ in range(2))
    for i, row in enumerate(X):
        gains = np.zeros((n_pairs, n_columns, len(base)))
        for pair, permutation in enumerate(permutations):
            check_time()
            for order in (permutation, permutation[::-1]):
                mixed = np.tile(background, (len(order) + 1, 1, 1))
                for step, column in enumerate(order, 1):
                    mixed[step:, :, columns == column] = row[columns == column]
                found = predict(mixed.reshape(-1, X.shape[1])).reshape(len(order) + 1, n_absent, -1).mean(axis=1)
                gains[pair, order] += 0.5 * np.diff(found, axis=0)
        values[i] = gains.mean(axis=0)
        errors[i] = gains.std(axis=0, ddof=1) / np.sqrt(n_pairs)
    return values, errors, base


def shapley_values(
    model: PlainModel, coef: Array, X: Array, background: Array | None, n_pairs: int, rng: np.random.RandomState
) -> tuple[Array, Array | None]:
    """Return Shapley values (n, d, n_outputs) of scaled rows, and their standard errors, None if they are exact."""
    kernel = model.kernel
    if kernel.form == "terms":
        return sums_over_terms(model, coef, X, background, n_pairs, rng)
    if kernel.is_exponential or (model.n_features == 1 and kernel.form in OF_DIFFERENCE):
        return product_values(model, coef, X, background), None
    return sampled_values(model, coef, X, background, n_pairs, rng)


def sums_over_terms(
    model: PlainModel, coef: Array, X: Array, background: Array | None, n_pairs: int, rng: np.random.RandomState
) -> tuple[Array, Array | None]:
    """Return the same for a kernel that is a sum of terms: their Shapley values add up, since these are linear."""
    values, variances = np.zeros((*X.shape, coef.shape[1])), np.zeros((*X.shape, coef.shape[1]))
    for term in model.kernel.terms(model.n_features):
        columns = term.columns
        absent = None if background is None else background[:, columns]
        own, errors = shapley_values(of_term(model, term), term.share * coef, X[:, columns], absent, n_pairs, rng)
        values[:, columns] += own
        variances[:, columns] += 0.0 if errors is None else errors**2
    return values, np.sqrt(variances) if variances.any() else None


def explain_scores(
    model: PlainModel, X: Any, background: Any, n_permutations: int, rng: np.random.RandomState, names: list[str] | None
) -> Explanation:
    """Return Shapley values of the model's scores; see `slimsvm.explain`."""
    if model.kind == "sequences" or model.kernel.form == "columns":
        found = f"{model.kind}, kernel {model.kernel.name}"
        raise ValueError(f"explain is for scores of rows of features, and there are none with {found}")
    data = _rows(X, "X", model)
    rows = model.scaled(data)
    absent = None if background is None else model.scaled(_rows(background, "background", model))
    if absent is not None and not len(absent):
        raise ValueError("background must have at least one row, found none")
    output_names, mixing = outputs_of(model)
    coef, intercept = model.coef @ mixing, model.intercept @ mixing
    errors = None
    if model.vectors is None:
        mean = np.zeros(model.n_features) if absent is None else absent.mean(axis=0)
        values = (rows - mean)[:, :, None] * coef
        base = mean @ coef + intercept
    else:
        base = _base(model, absent) @ coef + intercept
        values, errors = shapley_values(model, coef, rows, absent, -(-n_permutations // 2), rng)
    return explanation_of(values, base, data, names, output_names, errors)


def explanation_of(
    values: Array,
    base: Array,
    data: Array,
    names: list[str] | None,
    output_names: list[str] | None,
    errors: Array | None,
) -> Explanation:
    """Return the explanation of values (n, d, n_outputs) and base values (n_outputs,)."""
    bases = np.tile(base, (len(values), 1))
    if len(base) == 1:
        return Explanation(values[:, :, 0], bases[:, 0], data, names, None, None if errors is None else errors[:, :, 0])
    return Explanation(values, bases, data, names, output_names, errors)


def _rows(X: Any, name: str, model: PlainModel) -> Array:
    """Return rows of finite numbers as a float64 array."""
    rows = as_rows(X, name)
    if rows.shape[1] != model.n_features:
        raise ValueError(f"{name} must have {model.n_features} features as in training, found {rows.shape[1]}")
    dense = dense_rows(rows, 0, rows.shape[0])
    check_finite(dense, name)
    return dense


def _base(model: PlainModel, absent: Array | None) -> Array:
    """Return kernel values of all vectors with no feature present: the mean over the background, or h(0)."""
    if model.kernel.form == "terms":
        of_terms = model.kernel.terms(model.n_features)
        return sum(
            term.share * _base(of_term(model, term), None if absent is None else absent[:, term.columns])
            for term in of_terms
        )
    terms, vectors = terms_of(model), model.dense_vectors()
    if absent is None:
        return terms.map(np.zeros(len(vectors)))
    return np.mean([terms.map(terms.of(row[None], vectors).sum(axis=0))[0] for row in absent], axis=0)


def outputs_of(model: PlainModel) -> tuple[list[str] | None, Array]:
    """Return the outputs' names (None for a single one), and the matrix (n_scores, n_outputs) that makes them."""
    same = np.eye(model.n_outputs)
    if model.n_outputs == 1 or model.classes is None:
        return None, same
    classes = [str(label) for label in model.classes.tolist()]
    pairs = list(combinations(range(len(classes)), 2))
    if model.kind == "pairs":
        return [f"{classes[a]} - {classes[b]}" for a, b in pairs], same
    if model.kind == "classes" and model.options.get("decision_function_shape") == "ovo":
        differences = np.stack([same[a] - same[b] for a, b in pairs], axis=1)
        return [f"{classes[a]} - {classes[b]}" for a, b in pairs], differences
    return classes, same
