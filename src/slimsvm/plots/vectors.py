"""A plot of a model's vectors."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from slimsvm.deploy.plain_model import PlainModel
from slimsvm.docstrings import described
from slimsvm.estimators._shared.input_checks import check_at_least
from slimsvm.estimators._shared.saving import plain_model_of
from slimsvm.plots.drawing import (
    DRAWING,
    add_legend,
    axes_for,
    colour_of_class,
    entry,
    label,
    names_of_features,
)

Array = np.ndarray

FAINTEST = 0.15  # how opaque the line of the smallest coefficient is
MOST_UPRIGHT = 6  # features whose names are not turned


class VectorsDisplay:
    """The vectors of a model with the largest coefficients, as images or as lines across the features.

    Make it by `from_estimator`.

    Attributes
    ----------
    vectors : float64 ndarray of shape (n_vectors, n_features)
        In the units of features before a pipeline's scaling, the largest coefficients first.
    weights : float64 ndarray of shape (n_vectors,)
        Sums of the magnitudes of their coefficients.
    of_class : int64 ndarray of shape (n_vectors,)
        The number of the class that a vector votes for most; for regression and ranking, whether it raises the
        score.
    classes : list of str
        Names of the classes; for regression and ranking, "lowers" and "raises".
    n_all : int
        Vectors of the model.
    shape : (int, int) or None
        Height and width of images.
    feature_names : list of str
    ax_, figure_ : matplotlib's Axes and Figure
        After `plot`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from slimsvm import SVC
    >>> from slimsvm.plots import VectorsDisplay
    >>> clf = SVC(max_basis=10, gamma=0.001).fit(*load_digits(return_X_y=True))
    >>> display = VectorsDisplay.from_estimator(clf, shape=(8, 8))   # doctest: +SKIP
    """

    def __init__(self, vectors, weights, of_class, *, classes, n_all, shape, feature_names):
        self.vectors, self.weights, self.of_class = vectors, weights, of_class
        self.classes, self.n_all, self.shape, self.feature_names = classes, n_all, shape, feature_names

    @classmethod
    @described(DRAWING)
    def from_estimator(
        cls, estimator: Any, *, shape: Any = None, max_vectors: int = 100, feature_names: Any = None, ax: Any = None
    ) -> VectorsDisplay:
        """Take the vectors of a fitted estimator, and draw them.

        Parameters
        ----------
        estimator : fitted estimator, or pipeline of scalers and an estimator
        shape : (int, int) or None, default=None
            Height and width, if rows are the pixels of images. None draws a line for each vector across the features,
            each from its smallest to its largest value.
        max_vectors : int, default=100
            Largest number of vectors to draw; those with the largest coefficients are drawn.
        feature_names : list of str, default=None
            None takes the names that the estimator has seen, or numbers.
        ax

        Returns
        -------
        VectorsDisplay

        Raises
        ------
        ValueError
            There are no vectors, a single feature, pixels that are no image of this shape, or a wrong ``max_vectors``.
        ImportError
        """
        check_at_least("max_vectors", max_vectors, 1)
        if shape is not None and (np.shape(shape) != (2,) or np.asarray(shape).dtype.kind not in "iu"):
            raise ValueError(f"shape must be (height, width) of an image or None, found {shape!r}")
        model = plain_model_of(estimator)
        if model.kernel.form == "columns":
            raise ValueError("the model of a precomputed kernel has numbers of rows, it has no vectors to draw")
        if model.vectors is None:
            raise ValueError("the model of a linear kernel is weights of the features, it has no vectors to draw")
        weights = np.abs(model.coef).sum(axis=1)
        order = np.argsort(-weights, kind="stable")[:max_vectors]
        if not len(order):
            raise ValueError("the model has no vectors")
        vectors = model.unscaled(model.dense_vectors()[order])
        n_features = vectors.shape[1]
        if shape is not None and shape[0] * shape[1] != n_features:
            raise ValueError(f"shape {tuple(shape)} has {shape[0] * shape[1]} pixels, the vectors have {n_features}")
        if shape is None and n_features == 1:
            raise ValueError("lines across the features need two features or more, the vectors have 1")
        names = names_of_features(model.feature_names if feature_names is None else feature_names, n_features)
        classes, of_class = _classes(model)
        display = cls(vectors, weights[order], of_class[order], classes=classes, n_all=len(weights), shape=shape,
                      feature_names=names)  # fmt: skip
        return display.plot(ax)

    @described(DRAWING)
    def plot(self, ax: Any = None) -> VectorsDisplay:
        """Draw the vectors.

        Parameters
        ----------
        ax

        Returns
        -------
        VectorsDisplay
        """
        across = 0.0 if self.shape is not None else min(0.35 * self.vectors.shape[1], 12.0)
        is_new, ax = ax is None, axes_for(ax, None if self.shape is not None else (max(6.4, across), 4.8))
        self.ax_, self.figure_ = ax, ax.figure
        if self.shape is None:
            self._draw_lines(is_new)
        else:
            self._draw_images(*self.shape)
        n = len(self.vectors)
        which = f"the {n} vectors" if n == self.n_all else f"{n} of {self.n_all} vectors"
        ax.set_title(f"{which}, largest coefficients first" if self.shape else which, fontsize="medium")
        return self

    def _draw_images(self, height: int, width: int) -> None:
        """Draw a mosaic of images, one pixel apart, each from its darkest to its brightest pixel."""
        n = len(self.vectors)
        columns = int(np.ceil(np.sqrt(n)))
        lines = -(-n // columns)
        low, spread = self.vectors.min(axis=1, keepdims=True), np.ptp(self.vectors, axis=1, keepdims=True)
        mosaic = np.full((lines * columns, height + 1, width + 1), np.nan)
        shades = (self.vectors - low) / np.where(spread > 0, spread, 1.0)
        mosaic[:n, :height, :width] = shades.reshape(n, height, width)
        picture = mosaic.reshape(lines, columns, height + 1, width + 1).swapaxes(1, 2)
        self.ax_.imshow(picture.reshape(lines * (height + 1), columns * (width + 1))[:-1, :-1], cmap="gray")
        self.ax_.set_axis_off()

    def _draw_lines(self, is_new: bool) -> None:
        """Draw a line for each vector; the colour is the class, and a large coefficient is opaque."""
        from matplotlib.lines import Line2D

        low, spread = self.vectors.min(axis=0), np.ptp(self.vectors, axis=0)
        heights = np.where(spread > 0, (self.vectors - low) / np.where(spread > 0, spread, 1.0), 0.5)
        opaque = FAINTEST + (1 - FAINTEST) * self.weights / (self.weights.max() or 1.0)
        places = np.arange(self.vectors.shape[1])
        for height, k, alpha in zip(heights[::-1], self.of_class[::-1], opaque[::-1], strict=True):
            self.ax_.plot(places, height, color=colour_of_class(k), alpha=alpha, linewidth=1.2)
        few = places[:: -(-len(places) // 30)]
        turned = {} if len(few) <= MOST_UPRIGHT else {"rotation": 90}
        self.ax_.set_xticks(few, [label(self.feature_names[f]) for f in few], **turned)
        self.ax_.set_yticks([0.0, 1.0], ["smallest", "largest"])
        self.ax_.set(xlabel="feature", ylabel="value among these vectors", xlim=(places[0], places[-1]))
        shown = sorted(set(self.of_class.tolist()))
        handles = [Line2D([], [], color=colour_of_class(k), label=entry(self.classes[k])) for k in shown]
        add_legend(self.ax_, is_new, handles)


def _classes(model: PlainModel) -> tuple[list[str], Array]:
    """Return names of the classes, and the number of each vector's main class."""
    coef = model.coef
    names = [] if model.classes is None else [str(each) for each in model.classes.tolist()]
    if coef.shape[1] == 1 or not names:
        return names if len(names) == 2 else ["lowers", "raises"], (coef.sum(axis=1) > 0).astype(np.int64)
    votes = coef
    if model.kind == "pairs":
        votes = np.zeros((len(coef), len(names)))
        for column, (first, second) in enumerate(combinations(range(len(names)), 2)):
            votes[:, first] += coef[:, column]
            votes[:, second] -= coef[:, column]
    return names, votes.argmax(axis=1)
