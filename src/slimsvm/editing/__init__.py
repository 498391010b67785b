"""Editing of training sets: which rows a classifier is better off, or no worse, without."""

from typing import TYPE_CHECKING

from slimsvm.lazy import lazy_names

if TYPE_CHECKING:
    from slimsvm.editing.condensed_nn import condense
    from slimsvm.editing.cross_training import CrossTrained, CrossTrainer, Edited
    from slimsvm.editing.edited_nn import edited_nearest_neighbours
    from slimsvm.editing.multi_editing import multi_edit
    from slimsvm.editing.ramp import Ramp


# Values of C that a search tries, from the lowest, here and in estimators; it ends after PATIENCE values in a row that
# do not lower the error.
VALUES_OF_C, PATIENCE = (0.1, 1.0, 10.0, 100.0, 1000.0), 2

__all__ = ["CrossTrained", "CrossTrainer", "Edited", "Ramp", "condense", "edited_nearest_neighbours", "multi_edit"]

_HOMES = {
    "CrossTrained": "cross_training",
    "CrossTrainer": "cross_training",
    "Edited": "cross_training",
    "Ramp": "ramp",
    "condense": "condensed_nn",
    "edited_nearest_neighbours": "edited_nn",
    "multi_edit": "multi_editing",
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
