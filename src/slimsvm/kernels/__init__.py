"""Kernels, and rows seen through them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slimsvm.lazy import homes_of, lazy_names

if TYPE_CHECKING:
    from slimsvm.kernels.additive import Additive as Additive
    from slimsvm.kernels.features import FeatureRows as FeatureRows
    from slimsvm.kernels.inner_product import Linear as Linear
    from slimsvm.kernels.inner_product import Polynomial as Polynomial
    from slimsvm.kernels.inner_product import Sigmoid as Sigmoid
    from slimsvm.kernels.kernel import FoldedKernel as FoldedKernel
    from slimsvm.kernels.kernel import Folding as Folding
    from slimsvm.kernels.kernel import Kernel as Kernel
    from slimsvm.kernels.kernel_rows import EvalCounter as EvalCounter
    from slimsvm.kernels.kernel_rows import KernelRows as KernelRows
    from slimsvm.kernels.operands import Points as Points
    from slimsvm.kernels.operands import RawScorer as RawScorer
    from slimsvm.kernels.registry import KERNELS as KERNELS
    from slimsvm.kernels.registry import get_kernel as get_kernel
    from slimsvm.kernels.registry import kernels_with as kernels_with
    from slimsvm.kernels.shift_invariant import RBF as RBF
    from slimsvm.kernels.shift_invariant import Laplacian as Laplacian
    from slimsvm.kernels.shift_invariant import Matern32 as Matern32
    from slimsvm.kernels.shift_invariant import RationalQuadratic as RationalQuadratic
    from slimsvm.kernels.user_kernels import CallableKernel as CallableKernel
    from slimsvm.kernels.user_kernels import Precomputed as Precomputed


_HOMES = homes_of(
    {
        "additive": ["Additive"],
        "features": ["FeatureRows"],
        "inner_product": ["Linear", "Polynomial", "Sigmoid"],
        "kernel": ["FoldedKernel", "Folding", "Kernel"],
        "kernel_rows": ["EvalCounter", "KernelRows"],
        "operands": ["Points", "RawScorer"],
        "registry": ["KERNELS", "get_kernel", "kernels_with"],
        "shift_invariant": ["Laplacian", "Matern32", "RBF", "RationalQuadratic"],
        "user_kernels": ["CallableKernel", "Precomputed"],
    }
)
__all__ = [*_HOMES]
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
