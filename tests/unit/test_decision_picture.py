"""The picture of which estimator to take is what its script draws, and leads to pages that there are."""

import re
import runpy
from pathlib import Path

import slimsvm

DOCS = Path(__file__).parents[2] / "docs"


def test_the_picture_is_what_its_script_draws():
    drawn = runpy.run_path(str(DOCS / "pictures" / "which_estimator.py"))
    assert drawn["PICTURE"].read_text(encoding="utf-8") == drawn["picture"]()
    longest = max(len(answer) for _, answer, _ in drawn["FIRST"] + drawn["THEN"])
    assert 10 + longest * 0.6 * 13 + 10 <= drawn["RIGHT"][1]  # letters of 13 pixels are 0.6 of that wide


def test_every_answer_leads_to_a_page():
    picture = (DOCS / "pictures" / "which_estimator.svg").read_text(encoding="utf-8")
    pages = re.findall(r'href="([^"]+)"', picture)
    assert len(pages) == 20
    for page in pages:
        name, _, anchor = page.partition("#")
        source = DOCS / name.replace(".html", ".md")
        if name.startswith("gallery/"):
            source = DOCS.parent / name.replace("gallery/", "examples/").replace(".html", ".py")
        assert source.exists(), page
        assert not anchor or anchor.removeprefix("slimsvm.") in slimsvm.__all__, page
