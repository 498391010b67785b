"""Plots of fits, of results and of explanations. matplotlib is imported when the first one is drawn.

Every function draws on the axes it is given, or on a new figure, and returns the axes.
"""

from slimsvm.plots.curves import Curve, additive_curves, plot_curves
from slimsvm.plots.explanations import plot_explanation
from slimsvm.plots.fits import (
    plot_basis_images,
    plot_basis_size,
    plot_convergence,
    plot_decision_surface,
    plot_means,
    plot_test_error,
)

__all__ = [
    "Curve",
    "additive_curves",
    "plot_basis_images",
    "plot_basis_size",
    "plot_convergence",
    "plot_curves",
    "plot_decision_surface",
    "plot_explanation",
    "plot_means",
    "plot_test_error",
]
