"""What TabArena's registry knows of slimsvm."""

from __future__ import annotations

from tabarena.models._method_metadata import MethodMetadata
from tabarena.models._model_info import ModelInfo
from tabarena.models.slimsvm.hpo import gen_slimsvm
from tabarena.models.slimsvm.model import SlimSVMModel

slimsvm_method_metadata = MethodMetadata.config(
    method="slimsvm",
    ag_key="SLIMSVM",
    compute="cpu",
    is_bag=True,
    can_hpo=False,
    config_default="slimsvm_c1_BAG_L1",
    display_name="slimsvm",
    cache_type="local",
)

slimsvm_info = ModelInfo(
    model_cls=SlimSVMModel,
    search_space=gen_slimsvm,
    method_metadata=slimsvm_method_metadata,
    pip_extra=("slimsvm",),
)
