"""Editing of training sets: which rows a classifier is better off, or no worse, without."""

from typing import TYPE_CHECKING

from slimsvm.lazy import homes_of, lazy_names

if TYPE_CHECKING:
    from slimsvm.editing.cross_training import CrossTrained as CrossTrained
    from slimsvm.editing.cross_training import CrossTrainer as CrossTrainer
    from slimsvm.editing.cross_training import Edited as Edited
    from slimsvm.editing.nearest_neighbours import condense as condense
    from slimsvm.editing.nearest_neighbours import edited_nearest_neighbours as edited_nearest_neighbours
    from slimsvm.editing.nearest_neighbours import multi_edit as multi_edit
    from slimsvm.editing.ramp import Ramp as Ramp


_HOMES = homes_of(
    {
        "cross_training": ["CrossTrained", "CrossTrainer", "Edited"],
        "nearest_neighbours": ["condense", "edited_nearest_neighbours", "multi_edit"],
        "ramp": ["Ramp"],
    }
)
__all__ = [*_HOMES]
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
