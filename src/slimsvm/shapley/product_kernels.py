"""Exact Shapley values of kernels that are products over features: k(x, z) = Π_f k_f(x_f, z_f).

With p_f = k_f(x_f, z_f), and q_f = 1 for an absent feature or k_f(r_f, z_f) with a background row r, the value of a
coalition S under one vector is Π_{f in S} p_f Π_{f not in S} q_f. A coalition of s of the other d − 1 features counts
s! (d − 1 − s)! / d! = ∫_0^1 t^s (1 − t)^(d − 1 − s) dt, so that the sum over all coalitions is

    phi_i = (p_i − q_i) ∫_0^1 Π_{f ≠ i} (t p_f + (1 − t) q_f) dt,

the integral of a polynomial of degree d − 1: Gauss and Legendre's rule of ⌈d/2⌉ nodes has it exactly. All terms are
positive, so that no digits cancel, where elementary symmetric polynomials of Möller and others' form (Mohammadi et al.,
"Computing exact Shapley values in polynomial time for product-kernel methods", 2025) need care. The product without
feature i is one from the left times one from the right: none is divided by, and any may be 0.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import roots_legendre

from slimsvm.deploy.plain_model import PlainModel
from slimsvm.shapley.plain_scores import terms_of

Array = np.ndarray

# Numbers of the products from the left that are kept at a time.
BLOCK_NUMBERS = 1 << 18


def product_values(model: PlainModel, coef: Array, X: Array, background: Array | None) -> Array:
    """Shapley values (n, d, n_outputs) of scaled rows; ``coef`` (n_vectors, n_outputs) are coefficients of outputs."""
    terms, vectors = terms_of(model), model.dense_vectors()
    n, d, n_vectors = len(X), model.n_features, len(vectors)
    nodes, weights = gauss_legendre(-(-d // 2))
    absent = None if background is None else terms.map(terms.of(background, vectors))  # (d, n_background, n_vectors)
    values = np.zeros((n, d, coef.shape[1]))
    step_vectors = max(1, min(n_vectors, BLOCK_NUMBERS // (d * len(nodes))))
    step = max(1, BLOCK_NUMBERS // (d * len(nodes) * step_vectors))
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
    """Values phi of single vectors (d, n, n_vectors); ``absent`` may have one row, or one vector, for all."""
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
    """Nodes and weights on [0, 1]."""
    nodes, weights = roots_legendre(n)
    return 0.5 * (nodes + 1.0), 0.5 * weights
