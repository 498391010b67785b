"""Kernels by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import Any, cast

from slimsvm.kernels import additive, inner_product, shift_invariant, user_kernels
from slimsvm.kernels.kernel import Kernel
from slimsvm.kernels.user_kernels import CallableKernel

KERNELS: dict[str, type[Kernel]] = {
    kernel.name: kernel
    for module in (shift_invariant, additive, inner_product, user_kernels)
    for kernel in module.KERNELS
}
USUAL_PARAMS = frozenset(("gamma", "degree", "coef0"))


def kernels_with(ability: str) -> str:
    """Return the names of kernels with an attribute of `Kernel`, as an error message lists them.

    Examples
    --------
    >>> from slimsvm.kernels import kernels_with
    >>> "'rbf'" in kernels_with("has_metric")
    True
    """
    *names, last = [repr(name) for name, kernel in KERNELS.items() if getattr(kernel, ability)]
    return f"{', '.join(names)} or {last}" if names else last


@cache
def parameters_of(kernel: str) -> frozenset[str]:
    """Return the parameters of the kernel of that name."""
    return frozenset(field.name for field in fields(cast(Any, KERNELS[kernel])))


def get_kernel(kernel: str | Kernel | Callable, **params: Any) -> Kernel:
    """Return the kernel with a name, a kernel object itself, or a `CallableKernel` of a function.

    Parameters
    ----------
    kernel : str, Kernel or callable
        A key of `KERNELS`, a kernel object, or a function (X, Z) -> array of shape (len(X), len(Z)).
    **params
        Parameters of a kernel given by name. As in scikit-learn, gamma, degree and coef0 may be given with any name;
        each kernel takes the ones it has.

    Returns
    -------
    Kernel

    Raises
    ------
    ValueError
        Unknown name (the known ones are listed), or parameters in addition to a kernel object.
    TypeError
        It is none of the three, or a parameter that the kernel does not have was given.

    Examples
    --------
    >>> from slimsvm.kernels import get_kernel
    >>> get_kernel("rbf", gamma=0.5)
    RBF(gamma=0.5)
    """
    if isinstance(kernel, Kernel):
        if params:
            raise ValueError(f"kernel={kernel!r} is an object: give its parameters to the object itself ({params})")
        return kernel
    if not isinstance(kernel, str) and callable(kernel):
        return CallableKernel(kernel)
    if not isinstance(kernel, str):
        raise TypeError(f"kernel must be a name, a Kernel object or a function, got {kernel!r}")
    if kernel not in KERNELS:
        raise ValueError(f"unknown kernel {kernel!r}; known kernels: {', '.join(sorted(KERNELS))}")
    known = parameters_of(kernel)
    if unknown := params.keys() - known - USUAL_PARAMS:
        raise TypeError(f"the kernel {kernel!r} has no parameter {', '.join(sorted(unknown))}")
    return KERNELS[kernel](**{key: value for key, value in params.items() if key in known})
