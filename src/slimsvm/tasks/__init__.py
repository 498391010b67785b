"""Tasks: what the loss is. A task sees y and scores, never x."""

from slimsvm.tasks.base import Augmented, Examples, Smoothed, Task, losses
from slimsvm.tasks.binary import Binary
from slimsvm.tasks.multiclass import Multiclass
from slimsvm.tasks.regression import Regression

TASKS = {"binary": Binary, "multiclass": Multiclass, "regression": Regression}

__all__ = ["TASKS", "Augmented", "Binary", "Examples", "Multiclass", "Regression", "Smoothed", "Task", "losses"]
