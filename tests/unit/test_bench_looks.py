"""One colour for a method in all figures of the benchmarks."""

import pytest

from benchmarks.cross_training.measuring import METHODS
from benchmarks.sampled_cuts import experiments
from benchmarks.shared import methods
from benchmarks.shared.looks import colour_of, paint
from benchmarks.subspace.sized_methods import FULL_SIZE, SIZED
from slimsvm.plots import plot_means

CUTS = [*experiments.paper_methods(), *experiments.our_methods(), methods.svc(), methods.cholesky(250)]
FULL = "exact", "lasvm", "cvm", "bvm"
PAPERS = ("cpsp", "cpsp-paper", "cpsp-paper-line", "cpsp-tr", "cpsp-paper-tr", "nystrom", "cholesky")


@pytest.mark.parametrize(
    "names",
    [
        [method.name for method in CUTS],
        [
            *(SIZED[name](9).name for name in PAPERS),
            *(FULL_SIZE[name]().name for name in ("exact", "lasvm", "cvm", "bvm")),
        ],
        list(METHODS),
        ["bsca", "bsgd", "our-bsca", "our-bsgd"],
    ],
    ids=["sampled cuts", "CPSP", "cross-training", "BSCA"],
)
def test_methods_of_a_paper_have_colours_of_their_own(names):
    colours = [colour_of(name) for name in names]
    assert None not in colours
    assert len(set(colours)) == len(names)


def test_a_method_has_its_colour_whatever_is_drawn_before_it():
    from matplotlib.figure import Figure

    found = []
    for order in (("bsca", "bsgd"), ("bsgd", "bsca", "something else")):
        ax = Figure().subplots()
        fits = [{"method": name, "n": n, "t": t} for name in order for n in (1, 2) for t in (1.0, 2.0)]
        plot_means(fits, "n", "t", ax=ax)
        ax.plot([1, 2], [1, 2], label="our-bsca")
        paint(ax)
        handles, labels = ax.get_legend_handles_labels()
        found.append(
            {label: getattr(handle, "lines", [handle])[0].get_color() for handle, label in zip(handles, labels)}
        )
        legend = {text.get_text() for text in ax.get_legend().get_texts()}
        assert legend == {*order, "our-bsca"}
        for container in ax.containers:
            data, caps, _ = container.lines
            assert {cap.get_markeredgecolor() for cap in caps} == {data.get_color()}
    assert found[0].items() <= found[1].items()
    assert found[0] == {name: colour_of(name) for name in found[0]}
