"""One colour for a method in all figures of the benchmarks."""

from __future__ import annotations

from typing import Any

# By how a method's name begins; the first that fits. Variants of an algorithm have shades of one colour.
COLOURS = (
    ("scikit-learn SVC", "black"),
    ("exact", "dimgray"),
    ("decomposition", "darkgray"),
    ("uniform r=400", "#56b4e9"),
    ("uniform", "#0072b2"),
    ("violated r=400, paper's", "#f0b36c"),
    ("violated r=1000, paper's", "#d55e00"),
    ("violated r=400", "#e6a0a0"),
    ("violated", "#b22222"),
    ("Cholesky(250)", "#b8a9d9"),
    ("Cholesky(500)", "#9467bd"),
    ("Cholesky", "#5e3c99"),
    ("incomplete Cholesky", "#9467bd"),
    ("Nyström", "#009e73"),
    ("CPSP (paper's, training rows)", "#e6a0c4"),
    ("CPSP (paper's, line search)", "#7b2d5b"),
    ("CPSP (paper's)", "#cc79a7"),
    ("CPSP (training rows)", "#8fc1e3"),
    ("CPSP", "#0072b2"),
    ("LASVM", "#a6761d"),
    ("CVM", "#e6ab02"),
    ("BVM", "#66a61e"),
    ("linear", "#999933"),
    ("paper", "#d55e00"),
    ("default", "#0072b2"),
    ("bagging", "#009e73"),
    ("ramp", "#cc79a7"),
    ("bsca", "#d55e00"),
    ("bsgd", "#009e73"),
    ("our-bsca", "#0072b2"),
    ("our-bsgd", "#56b4e9"),
)


def colour_of(method: str) -> str | None:
    """The colour of a method, None of one without its own."""
    return next((colour for begin, colour in COLOURS if method.startswith(begin)), None)


def paint(ax: Any) -> None:
    """Give every line with a method's name its colour, also in the legend."""
    from matplotlib.container import ErrorbarContainer

    handles, labels = ax.get_legend_handles_labels()
    for handle, label in zip(handles, labels, strict=True):
        colour = colour_of(label)
        if colour is not None:
            lines = [handle]
            if isinstance(handle, ErrorbarContainer):
                data, caps, bars = handle.lines
                lines = [data, *caps, *bars]
                for cap in caps:
                    cap.set_markeredgecolor(colour)
            for line in lines:
                line.set_color(colour)
    if ax.get_legend() is not None:
        put_legend_below(ax)


def put_legend_below(ax: Any) -> None:
    """Put the names of the lines below the panel, where they cover none; its figure has a constrained layout."""
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, fontsize="small", frameon=False)
