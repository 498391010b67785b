"""Bases of k-means centres."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from slimsvm.bases.basis import Array, Basis, check_n_vectors, contents
from slimsvm.core.clock import check_time
from slimsvm.core.threads import one_blas_thread
from slimsvm.kernels import KernelRows
from slimsvm.rows import in_pieces, is_sparse, taken

BATCH_SIZE = 4096
PASSES = 10  # passes over the sample: further ones move the centres too little to matter for a basis
INIT_SIZE = 300  # k-means++ draws the first centres from this many rows, or three per centre
# The multiply-adds between two checks of the time limit, some 30 ms, and distances that the processor's cache holds.
DISTANCE_WORK, DISTANCES = 1 << 28, 1 << 17
# Numbers of centres that are moved, and that are compared, between two checks; rows that are.
CENTRE_NUMBERS, DISTINCT_NUMBERS, DISTINCT_ROWS = 1 << 22, 1 << 20, 1 << 12
# Mini-batches: centres of less than this share of the most rows begin again, whenever so many rows for each centre were
# seen; batches without a gain at the end.
FEW, AGAIN_AFTER, PATIENCE = 0.01, 10, 10
# Rows whose squared mean is this many times their variance are clustered about it: distances are made of squares,
# which would have too few digits left. Chosen, not measured.
FAR_FROM_0 = 1e8
# Rows whose largest number is below this, or above its inverse, are clustered in another unit: their squares have no
# place among float64.
LEAST_UNIT = 1e-100
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
    Zhang, Tsang, Kwok: Improved Nyström Low-Rank Approximation and Error Analysis, ICML 2008. Sculley: Web-Scale
    K-Means Clustering, WWW 2010 (mini-batches).

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
                block = taken(rows, index[classes == label], np.float64)
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
    distinct = dict[bytes, int]()
    for part in in_pieces(block.shape[0], DISTINCT_ROWS):
        check_time()
        distinct |= {content: part.start + row for row, content in enumerate(contents(block[part]))}
    if len(distinct) <= k:
        return block[np.sort(list(distinct.values()))]
    if scale is not None:
        block = sp.csr_array(block * scale) if sparse else block * scale
    unit = _unit(block)
    block = block if unit == 1.0 else block / unit
    middle = None if sparse else _middle(block)
    block = block if middle is None else block - middle
    centres = (_of_all if block.shape[0] <= BATCH_SIZE else _of_batches)(block, k, seed)
    centres = _distinct(centres if middle is None else centres + middle)
    check_time()
    centres = centres if unit == 1.0 else centres * unit
    if scale is not None:
        centres = (centres / scale).astype(block.dtype)
    return sp.csr_array(centres) if sparse else centres


def _unit(block: Any) -> float:
    """Return 1, or a power of two near the largest number where squares of rows would be infinite or 0."""
    values = block.data if is_sparse(block) else block
    most = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    return 1.0 if most == 0.0 or LEAST_UNIT <= most <= 1.0 / LEAST_UNIT else float(2.0 ** np.floor(np.log2(most)))


def _middle(block: Array) -> Array | None:
    """Return the mean of rows that are far from 0 for their distances from each other; otherwise None."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean = block.mean(axis=0)
        from_0 = float(mean @ mean)
        is_far = from_0 > FAR_FROM_0 * (float(_squares(block).mean()) - from_0)
    return mean if is_far and np.isfinite(mean).all() else None


def _of_all(block: Any, k: int, seed: int) -> Array:
    """Find centres by Lloyd's algorithm, from rows that k-means++ draws."""
    centres = _spread_rows(block, _squares(block), k, np.random.default_rng(seed))
    clusters: Array | None = None
    for _ in range(PASSES):
        nearest, _ = _nearest(block, centres)
        if clusters is not None and np.array_equal(nearest, clusters):
            break
        clusters = nearest
        _move(centres, block, clusters, np.zeros(len(centres)))
    return centres


def _of_batches(block: Any, k: int, seed: int) -> Array:
    """Find centres of many rows by mini-batches: each moves to the mean of all rows that were nearest to it so far.

    Centres that have far fewer rows than others begin again at rows of the batch. The end is where the distance of a
    batch, averaged over a pass, has not fallen for `PATIENCE` batches.
    """
    rng, n = np.random.default_rng(seed), block.shape[0]
    some = block[np.sort(rng.choice(n, min(n, max(3 * k, INIT_SIZE)), replace=False))]
    centres = _spread_rows(some, _squares(some), k, rng)
    counts, share = np.zeros(len(centres)), min(1.0, 2 * BATCH_SIZE / n)
    mean, least, n_waited, n_seen = 0.0, np.inf, 0, 0
    for step in range(PASSES * n // BATCH_SIZE):
        rows = block[np.sort(rng.integers(n, size=BATCH_SIZE))]
        nearest, values = _nearest(rows, centres)
        distance = float(values.mean() + _squares(rows).mean())
        counts += _move(centres, rows, nearest, counts)
        n_seen += BATCH_SIZE
        if not counts.all() or n_seen >= AGAIN_AFTER * len(centres):
            n_seen = 0
            _begin_again(centres, counts, rows, rng)
        mean = distance if step <= 1 else (1.0 - share) * mean + share * distance
        n_waited = 0 if mean < least else n_waited + 1
        least = min(least, mean) if step else np.inf
        if n_waited >= PATIENCE:
            break
    return centres


def _begin_again(centres: Array, counts: Array, rows: Any, rng: np.random.Generator) -> None:
    """Put centres of few rows at rows of a batch, at most half of these; they count as the least of the others."""
    few = np.flatnonzero(counts < FEW * counts.max())
    few = few[np.argsort(counts[few], kind="stable")[: rows.shape[0] // 2]]
    if len(few):
        chosen = rows[np.sort(rng.choice(rows.shape[0], len(few), replace=False))]
        centres[few] = chosen.toarray() if is_sparse(chosen) else chosen
        counts[few] = np.delete(counts, few).min()


def _squares(block: Any) -> Array:
    """Return the squared norms of rows."""
    if is_sparse(block):
        return np.asarray(block.power(2).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", block, block)


def _move(centres: Array, rows: Any, clusters: Array, counts: Array) -> Array:
    """Move centres, means of ``counts`` rows each, to means with the rows of their clusters; return how many these are.

    A cluster without rows stays where it is.
    """
    n, k = len(clusters), len(centres)
    sums = sp.csr_array((np.ones(n), (clusters, np.arange(n))), shape=(k, n)) @ rows
    sizes = np.bincount(clusters, minlength=k)
    for part in in_pieces(k, max(1, CENTRE_NUMBERS // max(1, centres.shape[1]))):
        check_time()
        own, has_rows = sums[part], sizes[part] > 0
        own = own.toarray() if is_sparse(own) else own
        before, now = counts[part][has_rows, None], sizes[part][has_rows, None]
        moved = own[has_rows] + before * centres[part][has_rows] if before.any() else own[has_rows]
        centres[part][has_rows] = moved / (before + now)
    return sizes


def _nearest(block: Any, centres: Array) -> tuple[Array, Array]:
    """Return the nearest centre of every row, and its squared distance less the row's own square."""
    nearest, least = np.zeros(block.shape[0], np.intp), np.full(block.shape[0], np.inf)
    for group in in_pieces(len(centres), max(1, CENTRE_NUMBERS // max(1, centres.shape[1]))):
        own = centres[group]
        norms, columns = np.einsum("ij,ij->i", own, own), np.ascontiguousarray(-2.0 * own.T)
        for part in in_pieces(block.shape[0], min(DISTANCE_WORK // max(1, own.size), DISTANCES // len(own))):
            check_time()
            values = block[part] @ columns
            values += norms
            found = np.argmin(values, axis=1)
            values = values[np.arange(len(found)), found]
            is_nearer = values < least[part]
            nearest[part][is_nearer], least[part][is_nearer] = group.start + found[is_nearer], values[is_nearer]
    return nearest, least


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
            return _as_dense(block[chosen])
        drawn = np.minimum(np.searchsorted(sums, rng.random(n_drawn) * sums[-1], side="right"), n - 1)


def _as_dense(rows: Any) -> Any:
    """Return the first centres as an array; wide ones are written in pieces."""
    if not is_sparse(rows):
        return rows
    centres = np.empty(rows.shape)
    for part in in_pieces(len(centres), max(1, CENTRE_NUMBERS // max(1, rows.shape[1]))):
        check_time()
        centres[part] = rows[part].toarray()
    return centres


def _distinct(centres: Array) -> Array:
    """Return distinct centres in the order of their numbers; `numpy.unique` takes seconds with many features."""
    places = dict[bytes, int]()
    for part in in_pieces(len(centres), max(1, DISTINCT_NUMBERS // max(1, centres.shape[1]))):
        check_time()
        bits = (centres[part] + 0.0).view(np.int64)  # turns -0 into 0
        keys = np.where(bits < 0, ~bits, bits ^ np.iinfo(np.int64).min).astype(">i8")  # bytes sort as the numbers do
        places |= {row.tobytes(): part.start + place for place, row in enumerate(keys)}
    return centres[[places[key] for key in sorted(places)]]
