"""slimsvm's configuration for TabArena: there is nothing to tune."""

from __future__ import annotations

from tabarena.models.slimsvm.model import SlimSVMModel
from tabarena.utils.config_utils import ConfigGenerator

gen_slimsvm = ConfigGenerator(model_cls=SlimSVMModel, manual_configs=[{}], search_space={})
