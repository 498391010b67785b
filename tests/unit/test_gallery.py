"""Every example of the gallery runs on few rows; its pictures name their axes and cut nothing off."""

import re
from pathlib import Path

import pytest

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("pandas")

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*/*.py"))
# `n_rows = 4_000  # tests: 300`
SIZE = re.compile(r"^(\w+ = ).+  # tests: (.+)$", flags=re.M)


@pytest.fixture
def plt(monkeypatch):
    """Figures of a machine without a screen, closed in the end."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcdefaults()
    yield pyplot
    pyplot.close("all")


def few_rows(path):
    """An example's text with the small sizes that its comments name."""
    text, n = SIZE.subn(r"\1\2", path.read_text(encoding="utf-8"))
    assert n, "a line must say how many rows tests take: n_rows = 4_000  # tests: 300"
    return text


def unnamed(figure):
    """Axes whose numbers nobody explains."""
    found = []
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis) if ax.axison else ():
            texts = [tick.label1 for tick in axis.get_major_ticks() if tick.label1.get_visible()]
            has_numbers = any(re.fullmatch(r"[\d.,\s−-]+", text.get_text()) for text in texts)
            is_bar = ax.get_label() == "<colorbar>"
            if has_numbers and not axis.get_label_text() and not is_bar:
                found.append(f"{axis.axis_name} of {ax.get_title()!r}")
    return found


def out_of_view(figure):
    """Lines that their axes do not show, such as one drawn after the limits were set."""
    lines = [(ax, line) for ax in figure.axes for line in ax.get_lines() if ax.axison and len(line.get_xdata())]
    return [
        line.get_label()
        for ax, line in lines
        if not line.get_transform().transform_path(line.get_path()).intersects_bbox(ax.bbox, filled=False)
    ]


def cut_off(figure):
    """How far a picture's contents stand out of it, in inches."""
    inside, paper = figure.get_tightbbox(figure.canvas.get_renderer()), figure.bbox_inches
    return max(paper.x0 - inside.x0, paper.y0 - inside.y0, inside.x1 - paper.x1, inside.y1 - paper.y1)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_an_example_runs_and_its_pictures_are_whole(path, plt):
    if 'to="wasm"' in path.read_text(encoding="utf-8"):
        pytest.importorskip("onnx")
    exec(compile(few_rows(path), str(path), "exec"), {"__name__": "__main__"})
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures
    for figure in figures:
        figure.canvas.draw()
        assert unnamed(figure) == []
        assert out_of_view(figure) == []
        assert cut_off(figure) < 0.02


def test_a_line_out_of_view_is_found(plt):
    figure, ax = plt.subplots()
    ax.plot([1, 2], [0, 1], label="seen")
    ax.set_xlim(0.5, None)
    ax.axvline(0.2, label="exact SVM")
    figure.canvas.draw()
    assert out_of_view(figure) == ["exact SVM"]
    ax.set_xlim(0, None)
    assert out_of_view(figure) == []


def test_a_name_that_is_missing_and_a_text_that_is_cut_off_are_found(plt):
    figure, ax = plt.subplots(layout="constrained")
    ax.plot([0, 1], [0, 1])
    ax.set_xlabel("x")
    figure.canvas.draw()
    assert unnamed(figure) == ["y of ''"]
    assert cut_off(figure) < 0.02
    ax.set_title("wide " * 30)
    figure.canvas.draw()
    assert cut_off(figure) > 0.02


def test_there_is_a_picture_for_every_family():
    assert len(EXAMPLES) >= 24
    compared = {path.stem.removeprefix("compare_") for path in EXAMPLES if path.stem.startswith("compare_")}
    assert compared == {"kernels", "losses", "methods", "editing", "calibration"}
