"""What `planted_defects.toml` lists can be planted: `python tests/planted_defects.py` does it, this only looks."""

from planted_defects import ROOT, defects


def test_every_text_stands_in_one_place_and_its_tests_are_there():
    listed = defects()
    assert len({defect.name for defect in listed}) == len(listed)
    for defect in listed:
        defect.place(ROOT)
        assert defect.after != defect.before, defect.name
        assert [path for path in defect.tests if not (ROOT / path.split("::")[0]).is_file()] == [], defect.name
