"""The picture of which estimator to take is what its script draws, and leads to pages that there are."""

import re
import runpy
from pathlib import Path

import slimsvm

DOCS = Path(__file__).parents[2] / "docs"


def test_the_picture_is_what_its_script_draws():
    drawn = runpy.run_path(str(DOCS / "pictures" / "which_estimator.py"))
    assert drawn["PICTURE"].read_text(encoding="utf-8") == drawn["picture"]()
    questions, answers, _ = zip(*drawn["FIRST"], *drawn["THEN"], strict=True)
    assert 10 + max(map(len, questions)) * 0.5 * 15 + 10 <= drawn["LEFT"][1]  # a wide font's letters of 15 pixels
    assert 10 + max(map(len, answers)) * 0.6 * 13 + 10 <= drawn["RIGHT"][1]  # letters of 13 pixels are 0.6 of that wide


def test_every_answer_leads_to_a_page():
    picture = (DOCS / "pictures" / "which_estimator.svg").read_text(encoding="utf-8")
    pages = re.findall(r'href="([^"]+)"', picture)
    assert len(pages) == 20
    for page in pages:
        name = page.removesuffix(".html")
        if name.startswith("api/"):
            assert name.removeprefix("api/slimsvm.") in slimsvm.__all__, page
        elif name.startswith("gallery/"):
            assert (DOCS.parent / "examples" / f"{name.removeprefix('gallery/')}.py").exists(), page
        else:
            assert (DOCS / f"{name}.md").exists(), page
