"""The version of the package is that of the changes' newest section."""

import re
from pathlib import Path

import pytest

import slimsvm

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["CHANGELOG.md", "docs/history.md"])
def test_the_newest_section_has_the_version(page):
    sections = re.findall(r"^## (\d+\.\d+\.\d+)(?:, not yet tagged)?$", (ROOT / page).read_text("utf-8"), re.MULTILINE)
    assert sections[0] == slimsvm.__version__
