"""Kernel machines that stay small."""

from slimsvm import datasets, kernels
from slimsvm.estimators import SVC, SVR
from slimsvm.estimators.files import load
from slimsvm.model import KernelExpansion
from slimsvm.modelfile import ModelFileError
from slimsvm.solvers import ExactCuts, UniformCuts, ViolatedCuts

__version__ = "0.1.0"

__all__ = [
    "SVC",
    "SVR",
    "ExactCuts",
    "KernelExpansion",
    "ModelFileError",
    "UniformCuts",
    "ViolatedCuts",
    "datasets",
    "kernels",
    "load",
]
