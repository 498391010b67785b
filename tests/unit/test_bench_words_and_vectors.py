"""``learned-bases`` and ``ocr-letters`` on small data."""

import json

import numpy as np

from benchmarks import learned_bases, ocr_letters
from benchmarks.command_line import main
from slimsvm.datasets import checkerboard


def test_learned_bases_have_a_row_for_each_setting(tmp_path, monkeypatch, capsys):
    board = (*checkerboard(600, random_state=0), *checkerboard(300, random_state=1))
    monkeypatch.setattr(learned_bases, "load", lambda name: board)
    argv = ["learned-bases", "--sets", "ijcnn1", "--vectors", "50", "--seeds", "2", "--output", str(tmp_path)]
    assert main(argv) == 0
    result = json.loads((tmp_path / "learned-bases.json").read_text())
    assert [(r["data"], r["max_basis"], r["seed"]) for r in result["records"]] == [("ijcnn1", 50, 0), ("ijcnn1", 50, 1)]
    (row,) = result["table"]
    errors = [record["error"] for record in result["records"]]
    assert abs(row["error %"] - np.mean(errors)) < 1e-3
    assert "error %" in capsys.readouterr().out


def test_the_curve_ends_with_trees(tmp_path, monkeypatch):
    board = (*checkerboard(600, random_state=0), *checkerboard(300, random_state=1))
    monkeypatch.setattr(learned_bases, "load", lambda name: board)
    monkeypatch.setattr(learned_bases, "CURVE_TREES", (5,))
    assert main(["learned-bases", "--curve", "--vectors", "20", "--seeds", "1", "--output", str(tmp_path)]) == 0
    vectors, trees = json.loads((tmp_path / "learned-bases.json").read_text())["table"]
    assert (vectors["max_basis"], trees["trees"]) == (20, 5)


def test_ocr_letters_have_a_row_for_each_method(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    lengths = np.full(80, 4)
    y = rng.integers(0, 3, 320)
    part = (np.eye(3)[y] + 0.1 * rng.standard_normal((320, 3)), y, lengths)
    monkeypatch.setattr(ocr_letters, "load", lambda protocol: ocr_letters.Words(part, part))
    methods = ["learned", "linear chain", ocr_letters.SECOND_ORDER]
    assert main(["ocr-letters", "--quick", "--methods", *methods, "--output", str(tmp_path)]) == 0
    learned, linear, second_order = json.loads((tmp_path / "ocr-letters.json").read_text())["table"]
    assert learned["error %"] < 5 > linear["error %"]
    assert second_order["error %"] < 5
    assert learned["vectors"] <= ocr_letters.QUICK_VECTORS


def test_letters_with_the_one_before():
    labels = ocr_letters.with_letter_before(np.array([2, 0, 1, 1]), np.array([3, 1]))
    assert labels.tolist() == [2, 26 * 3 + 0, 26 * 1 + 1, 1]
    assert (labels % ocr_letters.N_LETTERS).tolist() == [2, 0, 1, 1]


def test_smoothed_letters_keep_their_ink_near_where_it_was():
    rows = np.zeros((2, 128), dtype=np.float32)
    rows[0, 8 * 7 + 3] = 1.0
    first, second = ocr_letters.smoothed(rows).reshape(2, *ocr_letters.IMAGE)
    assert np.isclose(first.sum(), 1.0)
    assert not second.any()
    assert first[7, 3] > first[7, 2] > first[6, 2] > first[6, 1] > 0
    assert np.isclose(first[7, 2], first[6, 3])
