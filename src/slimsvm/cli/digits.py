"""Images of handwritten digits for the demo's web page: MNIST's, or scikit-learn's where MNIST is not found."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.ndimage import affine_transform, center_of_mass, zoom
from sklearn.datasets import load_digits

from slimsvm.cli.output import say
from slimsvm.datasets import find, load

Array = np.ndarray

BITMAP = 32  # pixels of the bitmaps whose blocks of 4 × 4 are counted
WIDEST = 24  # pixels of a digit in them
# Altered images of each of scikit-learn's digits, whose writers were few: a model of them is wrong on 18 % of MNIST's
# test digits. With images of 28 × 28 that were not set upright it was wrong on 29 %.
COPIES = 4


def digit_rows() -> tuple[str, Array, Array, Array, Array]:
    """Return the name of the set, and rows and labels to train and to test on: MNIST's digits, or scikit-learn's."""
    if find("mnist") is not None:
        data = load("mnist", download=False)
        X, X_test = (np.asarray(rows, np.float32) for rows in (data.X_train, data.X_test))
        return "MNIST's digits", X, np.asarray(data.y_train), X_test, np.asarray(data.y_test)
    say("MNIST is not found (`slimsvm datasets` says where it is looked for): scikit-learn's digits take its place")
    digits, rng = load_digits(), np.random.default_rng(0)
    order = rng.permutation(len(digits.target))
    test, train = order[:400], np.repeat(order[400:], COPIES)
    X, X_test = (
        np.array([upright(enlarged(image), change) for image, change in zip(digits.images[of], changes)], np.float32)
        for of, changes in ((train, [Change.drawn(rng) for _ in train]), (test, [Change()] * len(test)))
    )
    return "scikit-learn's digits, turned and stretched", X, digits.target[train], X_test, digits.target[test]


class Change(NamedTuple):
    """How an image is altered before its ink is counted: two angles in radians, log of width, least ink of a pixel."""

    turn: float = 0.0
    slant: float = 0.0
    stretch: float = 0.0
    threshold: float = 0.5

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Change:
        """Draw a change at random."""
        low, high = (-0.2, -0.2, -0.4, 0.3), (0.2, 0.2, 0.4, 0.8)
        return cls(*rng.uniform(low, high))


def enlarged(image: Array) -> Array:
    """Return one of scikit-learn's digits with 40 × 40 pixels between 0 and 1."""
    return np.clip(zoom(np.pad(image / 16, 1), 4, order=3, mode="grid-constant", grid_mode=True), 0, 1)


def upright(ink: Array, change: Change) -> Array:
    """Return an image in the form of scikit-learn's digits, 8 × 8 shares of ink; the page's script does the same.

    The digit is slanted until its rows' middles lie one above the other, and scaled to a bitmap 32 pixels high. The
    result is the share of ink in the bitmap's blocks of 4 × 4.
    """
    middle = np.array(center_of_mass(ink))
    rows, columns = np.indices(ink.shape) - middle[:, None, None]
    slope = np.clip(np.sum(ink * rows * columns) / np.sum(ink * rows * rows), -1, 1) + change.slant
    turn = np.array([[np.cos(change.turn), -np.sin(change.turn)], [np.sin(change.turn), np.cos(change.turn)]])
    matrix = turn @ np.array([[1, 0], [slope, 1]])
    places = (np.argwhere(ink > change.threshold) - middle) @ np.linalg.inv(matrix).T
    low, high = places.min(axis=0) - 0.5, places.max(axis=0) + 0.5
    height, width = high - low
    scale = height / BITMAP
    steps = matrix * [scale, max(scale * np.exp(change.stretch), width / WIDEST)]
    offset = middle + matrix @ ((low + high) / 2) - steps @ np.full(2, (BITMAP - 1) / 2)
    bitmap = affine_transform(ink, steps, offset=offset, output_shape=(BITMAP, BITMAP), order=1) > change.threshold
    return np.rint(255 * bitmap.reshape(8, 4, 8, 4).mean(axis=(1, 3))).ravel() / 255
