"""Kernels, and rows seen through them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slimsvm.lazy import lazy_names

if TYPE_CHECKING:
    from slimsvm.kernels.features import FeatureRows
    from slimsvm.kernels.inner_product import Linear, Polynomial, Sigmoid
    from slimsvm.kernels.kernel import FoldedKernel, Kernel
    from slimsvm.kernels.kernel_form import Folding
    from slimsvm.kernels.kernel_rows import EvalCounter, KernelRows
    from slimsvm.kernels.operands import Points, RawScorer
    from slimsvm.kernels.registry import KERNELS, get_kernel, kernels_with
    from slimsvm.kernels.shift_invariant import RBF, Laplacian, Matern32, RationalQuadratic
    from slimsvm.kernels.user_kernels import CallableKernel, Precomputed


__all__ = [
    "KERNELS",
    "RBF",
    "CallableKernel",
    "EvalCounter",
    "FeatureRows",
    "FoldedKernel",
    "Folding",
    "Kernel",
    "KernelRows",
    "Laplacian",
    "Linear",
    "Matern32",
    "Points",
    "Polynomial",
    "Precomputed",
    "RationalQuadratic",
    "RawScorer",
    "Sigmoid",
    "get_kernel",
    "kernels_with",
]


_HOMES = {
    "KERNELS": "registry",
    "get_kernel": "registry",
    "kernels_with": "registry",
    "CallableKernel": "user_kernels",
    "EvalCounter": "kernel_rows",
    "FeatureRows": "features",
    "FoldedKernel": "kernel",
    "Folding": "kernel_form",
    "Kernel": "kernel",
    "KernelRows": "kernel_rows",
    "Laplacian": "shift_invariant",
    "Linear": "inner_product",
    "Matern32": "shift_invariant",
    "Points": "operands",
    "Polynomial": "inner_product",
    "Precomputed": "user_kernels",
    "RBF": "shift_invariant",
    "RationalQuadratic": "shift_invariant",
    "RawScorer": "operands",
    "Sigmoid": "inner_product",
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
