"""Solvers side by side on the same rows: exact, online (LASVM), core and ball vectors, and models of few vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slimsvm import BVM, CPSP, CVM, LASVM, SVC, CrossTrainedSVC, LowRank

# The loader's name, C and γ.
COMPARED = {
    "ijcnn1": (32.0, 2.0),
    "cod-rna": (32.0, 0.125),
    "adult": (32.0, 2.0**-7),
    "mnist-38": (10.0, 0.02),
}
FEW = 500

# Everything of one kernel; LASVM and the exact solver with the free intercept they were published with.
COMPARATORS: dict[str, Callable[..., Any]] = {
    "exact": lambda **shared: SVC(solver="exact", intercept="free", **shared),
    "LASVM (paper)": lambda **shared: SVC(solver=LASVM(tol_relative=None), intercept="free", **shared),
    "LASVM": lambda **shared: SVC(solver=LASVM(), intercept="free", **shared),
    "CVM": lambda **shared: SVC(solver=CVM(), **shared),
    "BVM (paper)": lambda **shared: SVC(solver=BVM(shrink=False), **shared),
    "BVM": lambda **shared: SVC(solver=BVM(), **shared),
    "cross-training": lambda C, **shared: CrossTrainedSVC(**shared),
    f"CPSP {FEW}": lambda **shared: SVC(solver=CPSP(max_basis=FEW), **shared),
    f"Nyström {FEW}": lambda **shared: SVC(solver=LowRank(max_basis=FEW), **shared),
    "learned 100": lambda **shared: SVC(max_basis=100, **shared),
}
