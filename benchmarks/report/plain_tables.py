"""Tables of the docs that have a line for each line of a benchmark's own table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.report.doc_writing import counted, markdown, seconds
from benchmarks.report.found import Found

Line = Mapping[str, Any]
Columns = Mapping[str, Callable[[Line], str]]


def plain(kind: str, columns: Columns) -> Callable[[Found], str]:
    """What writes the table of a benchmark, column by column."""

    def table(found: Found) -> str:
        rows = [[told(line) for told in columns.values()] for line in found.rows(kind, "table")]
        return markdown(list(columns), rows, found.of(kind), found)

    return table


def value(name: str, text: str = "{}") -> Callable[[Line], str]:
    """A column as it is; a dash where there is nothing."""
    return lambda line: "–" if line.get(name) is None else text.format(line[name])


def time(name: str) -> Callable[[Line], str]:
    """A column of seconds."""
    return lambda line: seconds(line[name])


def error(line: Line) -> str:
    """A mean with its standard error."""
    return f"{line['error %']:.2f}" + ("" if line.get("±") is None else f" ± {line['±']:.2f}") + " %"


PLAIN_TABLES: dict[str, Callable[[Found], str]] = {
    "onnx": plain("onnx", {
        "500 vectors": value("model"), "features": value("features"), "numbers": value("numbers"),
        "this graph": value("us"), "`dtype=\"float32\"`": value("float32_us"),
        "`SVMClassifier`": value("SVMClassifier_us"), "ratio": value("ratio"),
        "`float32`'s ratio": value("float32_ratio"),
        "error of scores": value("error"), "`float32`'s": value("float32_error"),
        "`SVMClassifier`'s": value("SVMClassifier_error"),
    }),
    "fixed-point": plain("fixed-point", {
        "50 vectors": value("set"), "test error, Python": value("error", "{:.2f} %"),
        "int16": value("error_int16", "{:.2f} %"),
        "other predictions": lambda line: f"{counted(line['other_predictions'])} of {counted(line['test_rows'])}",
        "score, of the largest": value("score_error"),
    }),
    "learned-bases": plain("learned-bases", {
        "set": value("data"), "vectors": value("max_basis", "{:,}"), "C": value("C"), "gamma": value("gamma"),
        "metric learned": lambda line: "yes" if line["learn_metric"] else "no",
        "error": error, "seconds": time("seconds"),
    }),
}  # fmt: skip
