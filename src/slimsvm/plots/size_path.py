"""A plot of error, objective or time against the number of vectors, and one of means of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from slimsvm.docstrings import described
from slimsvm.estimators._shared.input_checks import check_option
from slimsvm.plots.drawing import (
    DRAWING,
    add_legend,
    axes_for,
    colour_of_class,
    last_step,
    marker_of_class,
)

QUANTITIES = {
    "test_error": ("test error (%)", 100.0),
    "objective_multiple": ("objective / exact SVM's", 1.0),
    "seconds": ("seconds of training", 1.0),
}
MOST_TICKS = 10  # numbers named on the axis of vectors
ACROSS = "--", ":", "-.", (0, (1, 4)), (0, (8, 3, 1, 3, 1, 3))  # lines of models of full size


class SizePathDisplay:
    """A quantity, such as the error, for each number of vectors: from an estimator's search, or a list of results.

    Make it by `from_estimator` for the sizes that ``max_basis="auto"`` tried, or by `from_results`.

    Attributes
    ----------
    results : list of dict
        The sizes that were tried (see ``validation_``), or the results.
    y : str
        The quantity on the vertical axis: "error" of a search.
    n_basis : int or None
        Vectors of the estimator.
    ax_, figure_ : matplotlib's Axes and Figure
        After `plot`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import SVC
    >>> from slimsvm.plots import SizePathDisplay
    >>> clf = SVC(max_basis="auto", random_state=0).fit(*make_moons(500, noise=0.3, random_state=0))
    >>> display = SizePathDisplay.from_estimator(clf)                # doctest: +SKIP
    >>> results = [dict(method="CPSP", max_basis=k, test_error=1 / k) for k in (10, 100)]
    >>> results.append(dict(method="exact", max_basis=None, test_error=0.005))
    >>> display = SizePathDisplay.from_results(results)              # doctest: +SKIP
    """

    def __init__(self, results, *, y, n_basis=None):
        self.results, self.y, self.n_basis = results, y, n_basis

    @classmethod
    @described(DRAWING)
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> SizePathDisplay:
        """Draw errors on held-out rows of the sizes that were tried.

        Bars are standard errors of the difference to the exact SVM, whose error is the dashed line. Errors that the
        search allows are shaded.

        Parameters
        ----------
        estimator : estimator fitted with ``max_basis="auto"``, or pipeline that ends in one
        ax

        Returns
        -------
        SizePathDisplay

        Raises
        ------
        ValueError
            No sizes were tried.
        ImportError
        """
        estimator = last_step(estimator)
        tried = [trial for trial in getattr(estimator, "validation_", []) if "extra_error" in trial]
        if not tried:
            raise ValueError(
                f"{type(estimator).__name__} has no sizes in validation_: fit it with max_basis='auto' to search them"
            )
        return cls(tried, y="error", n_basis=estimator.n_basis_).plot(ax)

    @classmethod
    @described(DRAWING)
    def from_results(
        cls, results: Sequence[Mapping[str, Any]], *, y: str = "test_error", ax: Any = None
    ) -> SizePathDisplay:
        """Draw test error, objective or training time of runs.

        Parameters
        ----------
        results : list of dict
            One per run, with ``max_basis``, the quantity to draw and, if there are several, ``method``. Results whose
            ``max_basis`` is None (an exact SVM, a linear one) are dashed horizontal lines. Runs with the same method
            and size are averaged; bars show their standard deviation.
        y : {"test_error", "objective_multiple", "seconds"}, default="test_error"
            "objective_multiple" is the objective as a multiple of the exact SVM's; "test_error" is a share.
        ax

        Returns
        -------
        SizePathDisplay

        Raises
        ------
        ValueError
            ``y`` has another value, a result lacks a key, or none has a number of vectors.
        ImportError
        """
        check_option("y", y, tuple(QUANTITIES))
        return cls(list(results), y=y).plot(ax)

    @described(DRAWING)
    def plot(self, ax: Any = None) -> SizePathDisplay:
        """Draw the quantity against the number of vectors.

        Parameters
        ----------
        ax

        Returns
        -------
        SizePathDisplay
        """
        is_new, ax = ax is None, axes_for(ax, (7.0, 4.5))
        self.ax_, self.figure_ = ax, ax.figure
        counts = self._draw_search() if self.y == "error" else self._draw_results()
        if len(counts) <= MOST_TICKS:
            ax.set_xticks(counts, [f"{count:,}" for count in counts])
            ax.set_xticks([], minor=True)
        ax.set(xlabel="vectors of the model")
        add_legend(ax, is_new)
        return self

    def _draw_search(self) -> list[int]:
        """Draw the sizes that were tried, in a line for each kind of model, beside the exact SVM."""
        ax = self.ax_
        kinds: dict[str, list[Mapping[str, Any]]] = {}
        for trial in self.results:
            multi_class = trial.get("multi_class")
            kinds.setdefault(f"{trial['vectors']} vectors" + (f", {multi_class}" if multi_class else ""), []).append(
                trial
            )
        for number, (name, trials) in enumerate(kinds.items()):
            trials = sorted(trials, key=lambda trial: trial["n_basis"])
            at, errors, bars = (
                [trial[key] for trial in trials] for key in ("n_basis", "error", "standard_error")
            )  # fmt: skip
            ax.errorbar(at, errors, yerr=bars, color=colour_of_class(number), marker=marker_of_class(number),
                        capsize=2, label=name)  # fmt: skip
        exact = self.results[0]["error"] - self.results[0]["extra_error"]
        ax.axhline(exact, color="black", linestyle="--", linewidth=1.0, label="exact SVM")
        ax.axhspan(exact, exact + self.results[0]["allowed"], color="black", alpha=0.12, linewidth=0, label="allowed")
        counts = sorted({trial["n_basis"] for trial in self.results})
        if self.n_basis is not None:
            ax.axvline(self.n_basis, color="black", linestyle=":", label=f"the model: {self.n_basis}")
            counts = [count for count in counts if abs(np.log(count / self.n_basis)) > 0.2] + [self.n_basis]
        ax.set(xscale="log", ylabel="error on held-out rows")
        return sorted(counts)

    def _draw_results(self) -> list[int]:
        """Draw means of runs, in a line for each method, and models of full size across."""
        ax, y = self.ax_, self.y
        name_of_y, scale = QUANTITIES[y]
        sized = [result for result in self.results if result.get("max_basis", 0) is not None]
        full = [result for result in self.results if result.get("max_basis", 0) is None and result.get(y) is not None]
        plot_means(sized, "max_basis", y, scale=scale, ax=ax)
        for number, name in enumerate(dict.fromkeys(result.get("method") for result in full)):
            value = scale * float(np.mean([result[y] for result in full if result.get("method") == name]))
            ax.axhline(value, color="black", linestyle=ACROSS[number % len(ACROSS)], linewidth=1.0, label=name)
        ax.set(ylabel=name_of_y, yscale="linear" if y == "test_error" else "log")
        return sorted({result["max_basis"] for result in sized if result[y] is not None})


def plot_means(
    results: Sequence[Mapping[str, Any]], x: str, y: str, *, by: str = "method", scale: float = 1.0, ax: Any = None
) -> Any:
    """Draw the means of one quantity against another, a line for each method, bars for standard deviations.

    Parameters
    ----------
    results : list of dict
        One per run. Runs with the same ``by`` and ``x`` are averaged; runs whose ``y`` is None are left out.
    x, y : str
        Keys of the quantities on the axes.
    by : str, default="method"
        Key that distinguishes the lines; results without it belong to one line without a name.
    scale : float, default=1.0
        Factor on y.
    ax : matplotlib.axes.Axes or None, default=None
        The axes to draw on; None makes a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        A result lacks ``x`` or ``y``, or there are none.
    ImportError
        matplotlib is not installed.
    """
    for number, result in enumerate(results):
        for key in (x, y):
            if key not in result:
                raise ValueError(f"result {number} has no {key!r}; it has {', '.join(map(repr, result)) or 'nothing'}")
    known = [result for result in results if result[y] is not None]
    if not known:
        raise ValueError(f"there are no results with a value of {y!r}")
    ax = axes_for(ax)
    for number, name in enumerate(dict.fromkeys(result.get(by) for result in known)):
        chosen = [result for result in known if result.get(by) == name]
        at = sorted({result[x] for result in chosen})
        values = [[scale * result[y] for result in chosen if result[x] == place] for place in at]
        means = [float(np.mean(runs)) for runs in values]
        deviations = [float(np.std(runs, ddof=1)) if len(runs) > 1 else 0.0 for runs in values]
        label = None if name is None else str(name)
        ax.errorbar(at, means, yerr=deviations, color=colour_of_class(number), marker=marker_of_class(number),
                    markersize=4, capsize=2, label=label)  # fmt: skip
    ax.set_xscale("log")
    if any(result.get(by) is not None for result in known):
        ax.legend(fontsize="small")
    return ax
