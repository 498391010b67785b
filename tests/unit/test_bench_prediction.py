import json

import pytest

from benchmarks.command_line import main


def test_bench_prediction_reports_every_shape(tmp_path, capsys):
    argv = ["prediction", "--features", "2", "5", "--vectors", "20", "--rows", "300", "--threads", "1", "2"]
    assert main([*argv, "--seconds", "1e-3", "--output", str(tmp_path)]) == 0
    table = json.loads((tmp_path / "prediction.json").read_text())["table"]
    assert [(row["d"], row["k"], row["rows"], row["threads"]) for row in table] == [
        (d, 20, 300, threads) for d in (2, 5) for threads in (1, 2)
    ]
    for row in table:
        assert row["of limit"] == pytest.approx(row["limit ns"] / row["predict ns"], rel=0.1, abs=0.01)
        assert 10 < row["sklearn k"] <= 20
        assert row["one row ms"] > 0
    assert (tmp_path / "prediction.png").stat().st_size > 0
    assert "one row ms" in capsys.readouterr().out
