"""Plots of fits, of results and of explanations. matplotlib is imported when the first one is drawn.

Each is a display in scikit-learn's style: a class method, `from_estimator`, computes what is drawn and draws it on the
axes that it is given, or on a new figure; attributes hold the data, the axes ``ax_`` and the figure ``figure_``; and
`plot` draws it again.
"""

from slimsvm.plots.convergence import ConvergenceDisplay
from slimsvm.plots.curves import Curve, CurvesDisplay, additive_curves
from slimsvm.plots.decision_surface import DecisionSurfaceDisplay
from slimsvm.plots.explanations import ExplanationDisplay
from slimsvm.plots.metric import MetricDisplay
from slimsvm.plots.size_path import SizePathDisplay, plot_means
from slimsvm.plots.vectors import VectorsDisplay

__all__ = [
    "ConvergenceDisplay",
    "Curve",
    "CurvesDisplay",
    "DecisionSurfaceDisplay",
    "ExplanationDisplay",
    "MetricDisplay",
    "SizePathDisplay",
    "VectorsDisplay",
    "additive_curves",
    "plot_means",
]
