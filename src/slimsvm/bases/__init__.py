"""Bases chosen before training: which vectors span the model."""

from __future__ import annotations

from slimsvm.bases.basis import RANK_TOLERANCE, Basis, IncompleteCholesky, Nystrom
from slimsvm.bases.kmeans import KMeans
from slimsvm.lazy import named

BASES: dict[str, type[Basis]] = {basis.name: basis for basis in (Nystrom, KMeans, IncompleteCholesky)}

__all__ = ["BASES", "RANK_TOLERANCE", "Basis", "IncompleteCholesky", "KMeans", "Nystrom", "get_basis"]


def get_basis(basis: str | Basis) -> Basis:
    """Return the basis of a name, or the object itself.

    Parameters
    ----------
    basis : str or Basis
        A key of `BASES`, or an object with `choose`.

    Returns
    -------
    Basis

    Raises
    ------
    ValueError
        There is no basis of that name; the message lists the names.

    Examples
    --------
    >>> from slimsvm.bases import get_basis
    >>> get_basis("nystrom")
    Nystrom()
    """
    return named(basis, Basis, BASES, "basis")
