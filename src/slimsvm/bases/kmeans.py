"""Bases of k-means centres."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from slimsvm.bases.basis import Array, Basis, check_n_vectors, contents
from slimsvm.core.clock import check_time
from slimsvm.core.threads import one_blas_thread
from slimsvm.kernels import KernelRows
from slimsvm.rows import in_pieces, is_sparse

BATCH_SIZE = 4096
PASSES = 10  # passes over the sample: further ones move the centres too little to matter for a basis
INIT_SIZE = 300  # k-means++ draws the first centres from this many rows, or three per centre
# The multiply-adds between two checks of the time limit, some 30 ms.
DISTANCE_WORK = 1 << 28
# Numbers of centres that are compared between two checks.
DISTINCT_NUMBERS = 1 << 20
# Sparse rows have dense centres, which take no more bytes than this.
MAX_CENTRE_BYTES = 1 << 30


@dataclass(frozen=True)
class KMeans(Basis):
    """Centres of k-means clusters (in mini-batches above 4,096 rows), for each class apart where there are classes.

    Every class gets the same number of centres (fewer where it has fewer distinct rows). Rows far from all others get
    centres by their number: a few get none. For an RBF kernel with one
    gamma per feature the kernel's distances are taken.

    Parameters
    ----------
    sample_size : int, default=50000
        Clusters are made of at most this many rows (uniformly drawn), or ten for each centre if that is more.
    per_class : bool, default=True
        False clusters all rows together, whatever their labels.

    References
    ----------
    Zhang, Tsang, Kwok: Improved Nyström Low-Rank Approximation and Error Analysis, ICML 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.bases import KMeans
    >>> from slimsvm.kernels import RBF, KernelRows
    >>> rows = KernelRows(RBF(1.0), np.array([[0.0], [0.2], [5.0], [5.2]]))
    >>> np.sort(KMeans().choose(rows, 2, np.random.default_rng(0)), axis=0).round(6)
    array([[0.1],
           [5.1]])
    """

    sample_size: int = 50_000
    per_class: bool = True
    name: ClassVar[str] = "kmeans"

    def __post_init__(self):
        if self.sample_size < 1:
            raise ValueError(f"sample_size must be at least 1, found {self.sample_size!r}")

    def choose(self, kernel_rows: KernelRows, n_vectors, rng, labels=None) -> Any:
        """Compute cluster centres, dense for dense rows and CSR for CSR rows."""
        check_n_vectors(n_vectors)
        rows = kernel_rows.rows
        if not kernel_rows.kernel.has_features:
            raise ValueError(
                "k-means centres are new vectors, and a precomputed kernel only knows training rows: "
                "choose basis='nystrom' or 'incomplete-cholesky'"
            )
        n_bytes = n_vectors * rows.n_features * 8
        if rows.is_sparse and n_bytes > MAX_CENTRE_BYTES:
            raise ValueError(
                f"{n_vectors} centres of rows with {rows.n_features} features take {n_bytes / 1e6:.0f} MB, since "
                "centres of sparse rows are dense: choose basis='nystrom' or 'incomplete-cholesky'"
            )
        index = np.arange(rows.n_rows)
        limit = max(self.sample_size, 10 * n_vectors)
        if rows.n_rows > limit:
            index = np.sort(rng.choice(rows.n_rows, limit, replace=False))
        classes = np.zeros(len(index), np.int64)
        if self.per_class and labels is not None:
            classes = np.unique(labels[index], return_inverse=True)[1]
        seed = int(rng.integers(2**31 - 1))
        scale = _scale(kernel_rows)
        with one_blas_thread():
            parts: list[Any] = []
            wanted = n_vectors
            by_size = np.argsort(np.bincount(classes), kind="stable")
            for done, label in enumerate(by_size.tolist()):
                # Float64 in all cases, so that equal numbers make equal centres.
                block = rows.take(index[classes == label], np.float64)
                # Small classes come first: centres that they cannot use go to larger ones.
                share = wanted // (len(by_size) - done)
                if share:
                    own = _near_and_far(block, kernel_rows.bulk.holds(block), share, scale, seed)
                    parts += own
                    wanted -= sum(part.shape[0] for part in own)
        return sp.csr_array(sp.vstack(parts, format="csr")) if rows.is_sparse else np.concatenate(parts)


def _scale(kernel_rows: KernelRows) -> Array | None:
    """Return factors of the features that make the kernel's distances Euclidean; None if all are equal."""
    kernel = kernel_rows.kernel
    return np.sqrt(kernel.gamma) if kernel.has_metric and np.ndim(kernel.gamma) else None


def _near_and_far(block: Any, near: Array, k: int, scale: Array | None, seed: int) -> list[Any]:
    """Return at most k centres, shared between near and far rows by their numbers. Lone far rows get none."""
    if near.all():
        return [_centres(block, k, scale, seed)]
    parts, left = [], k
    if k_near := k - k * int(np.count_nonzero(~near)) // len(near):
        parts.append(_centres(block[near], k_near, scale, seed))
        left -= parts[0].shape[0]
    return [*parts, _centres(block[~near], left, scale, seed)] if left else parts


def _centres(block: Any, k: int, scale: Array | None, seed: int) -> Any:
    """Return at most k distinct centres of a block's rows, of the block's kind."""
    sparse = is_sparse(block)
    distinct = {content: row for row, content in enumerate(contents(block))}
    if len(distinct) <= k:
        return block[np.sort(list(distinct.values()))]
    if scale is not None:
        block = sp.csr_array(block * scale) if sparse else block * scale
    centres = (_of_all if block.shape[0] <= BATCH_SIZE else _of_batches)(block, k, seed)
    centres = _distinct(centres)
    check_time()
    if scale is not None:
        centres = (centres / scale).astype(block.dtype)
    return sp.csr_array(centres) if sparse else centres


def _of_all(block: Any, k: int, seed: int) -> Array:
    """Find centres by Lloyd's algorithm, from rows that k-means++ draws."""
    rng = np.random.default_rng(seed)
    n = block.shape[0]
    squares = (
        np.asarray(block.power(2).sum(axis=1)).ravel() if is_sparse(block) else np.einsum("ij,ij->i", block, block)
    )
    centres = _spread_rows(block, squares, k, rng)
    clusters: Array | None = None
    for _ in range(PASSES):
        nearest = _nearest(block, centres)
        if clusters is not None and np.array_equal(nearest, clusters):
            break
        clusters = nearest
        members = sp.csr_array((np.ones(n), (clusters, np.arange(n))), shape=(len(centres), n))
        sums, sizes = members @ block, np.bincount(clusters, minlength=len(centres))
        sums = sums.toarray() if is_sparse(sums) else sums
        has_rows = sizes > 0  # a cluster without rows stays where it is
        centres[has_rows] = sums[has_rows] / sizes[has_rows, None]
    return centres


def _nearest(block: Any, centres: Array) -> Array:
    """Return the nearest centre of every row."""
    norms, columns = np.einsum("ij,ij->i", centres, centres), np.ascontiguousarray(centres.T)
    nearest = np.empty(block.shape[0], np.intp)
    for part in in_pieces(block.shape[0], max(1, DISTANCE_WORK // max(1, centres.size))):
        check_time()
        nearest[part] = np.argmin(norms - 2.0 * (block[part] @ columns), axis=1)
    return nearest


def _spread_rows(block: Any, squares: Array, k: int, rng: np.random.Generator) -> Array:
    """Draw rows by k-means++: one after another, by its squared distance from the nearest of those before; of a few
    candidates it takes the one that leaves the least.
    """
    n, n_drawn = block.shape[0], 2 + int(np.log(k))
    chosen: list[int] = []
    nearest, drawn = np.full(n, np.inf), rng.integers(n, size=1)
    while True:
        check_time()
        rows = -2.0 * block[drawn]
        left = np.ascontiguousarray((block @ rows.toarray().T).T) if is_sparse(rows) else rows @ block.T
        left += squares
        left += squares[drawn, None]
        np.clip(left, 0.0, nearest, out=left)
        left[np.arange(len(drawn)), drawn] = 0.0
        best = int(np.argmin(left.sum(axis=1)))
        chosen.append(int(drawn[best]))
        nearest = left[best]
        sums = np.cumsum(nearest)
        if len(chosen) == k or not sums[-1] > 0.0:
            rows = block[chosen]
            return rows.toarray() if is_sparse(rows) else rows
        drawn = np.minimum(np.searchsorted(sums, rng.random(n_drawn) * sums[-1], side="right"), n - 1)


def _of_batches(block: Any, k: int, seed: int) -> Array:
    """Find centres of many rows by mini-batches."""
    from sklearn.cluster import MiniBatchKMeans  # takes 0.04 s: only for many rows
    from sklearn.exceptions import ConvergenceWarning

    if is_sparse(block) and block.indptr.dtype != np.int32:
        small = (block.data, block.indices.astype(np.int32), block.indptr.astype(np.int32))
        block = sp.csr_array(small, shape=block.shape)
    size = max(3 * k, INIT_SIZE)
    limits = {"batch_size": BATCH_SIZE, "init_size": size, "n_init": 1, "max_iter": PASSES}
    model = MiniBatchKMeans(k, **limits, compute_labels=False, random_state=Timed(seed))
    with warnings.catch_warnings():
        # If rows differ by rounding errors only, clusters may coincide, and fewer centres come back.
        warnings.simplefilter("ignore", ConvergenceWarning)
        found: Array = model.fit(block).cluster_centers_
        return found


class Timed(np.random.RandomState):
    """A random generator for scikit-learn that checks the time limit before each first centre and each batch."""

    def uniform(self, *args: Any, **options: Any) -> Any:
        """Draw the numbers that choose a first centre."""
        check_time()
        return super().uniform(*args, **options)

    def choice(self, *args: Any, **options: Any) -> Any:
        """Draw the rows of a batch."""
        check_time()
        return super().choice(*args, **options)

    def randint(self, *args: Any, **options: Any) -> Any:
        """Draw the rows of a batch as scikit-learn 1.6 does."""
        check_time()
        return super().randint(*args, **options)


def _distinct(centres: Array) -> Array:
    """Return distinct centres in the order of their numbers; `numpy.unique` takes seconds with many features."""
    places = dict[bytes, int]()
    for part in in_pieces(len(centres), max(1, DISTINCT_NUMBERS // max(1, centres.shape[1]))):
        check_time()
        bits = (centres[part] + 0.0).view(np.int64)  # turns -0 into 0
        keys = np.where(bits < 0, ~bits, bits ^ np.iinfo(np.int64).min).astype(">i8")  # bytes sort as the numbers do
        places |= {row.tobytes(): part.start + place for place, row in enumerate(keys)}
    return centres[[places[key] for key in sorted(places)]]
