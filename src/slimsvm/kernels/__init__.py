"""Kernels, and rows seen through them."""

from __future__ import annotations

from typing import Any

from slimsvm.kernels.base import FoldedKernel, Kernel
from slimsvm.kernels.inner import Linear, Polynomial, Sigmoid
from slimsvm.kernels.kernel_rows import EvalCounter, KernelRows
from slimsvm.kernels.operands import Folding
from slimsvm.kernels.shift_invariant import RBF, Laplacian

KERNELS: dict[str, type[Kernel]] = {kernel.name: kernel for kernel in (RBF, Laplacian, Polynomial, Linear, Sigmoid)}

__all__ = [
    "KERNELS",
    "RBF",
    "EvalCounter",
    "FoldedKernel",
    "Folding",
    "Kernel",
    "KernelRows",
    "Laplacian",
    "Linear",
    "Polynomial",
    "Sigmoid",
    "get_kernel",
]


def get_kernel(kernel: str | Kernel, **params: Any) -> Kernel:
    """Kernel of a name, or the object itself.

    Parameters
    ----------
    kernel : str or Kernel
        A key of `KERNELS`, or a kernel object.
    **params
        Parameters of a kernel given by name.

    Returns
    -------
    Kernel

    Raises
    ------
    ValueError
        Unknown name (the known ones are listed), or parameters beside an object.
    TypeError
        Neither a name nor a kernel, or a parameter the kernel does not have.

    Examples
    --------
    >>> from slimsvm.kernels import get_kernel
    >>> get_kernel("rbf", gamma=0.5)
    RBF(gamma=0.5)
    """
    if isinstance(kernel, Kernel):
        if params:
            raise ValueError(f"kernel={kernel!r} is an object: give its parameters to it, not beside it ({params})")
        return kernel
    if not isinstance(kernel, str):
        raise TypeError(f"kernel must be a name or a Kernel object, got {kernel!r}")
    if kernel not in KERNELS:
        raise ValueError(f"unknown kernel {kernel!r}; known kernels: {', '.join(sorted(KERNELS))}")
    return KERNELS[kernel](**params)
