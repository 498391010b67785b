"""The page of public names has all of them."""

import re
from pathlib import Path

import slimsvm

PAGE = Path(__file__).parents[2] / "docs" / "api.md"


def test_every_public_name_has_its_place():
    text = PAGE.read_text(encoding="utf-8")
    documented = re.findall(r"^   (\w+)$", text, flags=re.M)
    assert len(documented) == len(set(documented))
    modules = {name for name in slimsvm.__all__ if f"[`{name}`]" in text}
    assert modules == {"datasets", "kernels", "onnx"}
    assert set(documented) == set(slimsvm.__all__) - modules
