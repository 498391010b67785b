"""Whether a task keeps its promises: `check_task`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any

import numpy as np

from slimsvm.tasks.example_task import ExampleTask, bounds_of, keywords_of, known_of
from slimsvm.tasks.examples import Examples
from slimsvm.tasks.task import Augmented, Task, losses

Array = np.ndarray

TOLERANCE = 1e-9
# The most labellings that are tried for each example, and the most faults that are reported.
MAX_LABELLINGS, MAX_FAULTS = 10_000, 10
SCALES = (0.3, 1.0, 10.0)


class TaskError(ValueError):
    """The error for a task that breaks its promises; its message says where, and how."""


@dataclass
class TaskReport:
    """The result of `check_task`.

    Attributes
    ----------
    n_examples, n_points : int
        The number of examples, and of random scores and plain parameters at which each was checked.
    n_labellings : int
        Labellings that the ones found were compared with, over all examples.
    exhaustive : bool
        Whether these were all there are, by the task's ``labels``.
    """

    n_examples: int
    n_points: int
    n_labellings: int = 0
    exhaustive: bool = False
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        kind = "all there are" if self.exhaustive else "found at other points, so that a fault may have escaped"
        return (
            f"{self.n_examples} examples at {self.n_points} points each: no fault found. Compared with "
            f"{self.n_labellings} labellings ({kind})."
        )

    def add(self, text: str) -> None:
        """Note a fault."""
        if len(self.faults) < MAX_FAULTS and text not in self.faults:
            self.faults.append(text)


def check_task(task: Task, examples: Any, *, n_points: int = 12, random_state: Any = 0) -> TaskReport:
    """Check a task of your own on a few small examples.

    It uses random scores. The labelling that the task calls the best is compared with all labellings (`ExampleTask`
    with ``labels``), or otherwise with those found at other points and the true ones of other examples. Losses must be
    0 for the true labelling and never negative. The loss must rise along a line as its coefficients say. Shapes and
    types must be right. An example's result must not depend on the other examples. Answers must not change from call to
    call.

    Parameters
    ----------
    task : Task
        An `ExampleTask`, or any other task of `slimsvm.tasks`.
    examples : Examples or list
        The result of ``task.encode``, or its input, such as a list of labellings. Use a few short ones, of every kind.
    n_points : int, default=12
        Number of random scores and plain parameters for each example.
    random_state : int or Generator, default=0

    Returns
    -------
    TaskReport

    Raises
    ------
    TaskError
        It has one line for each fault: which example, what the task found there, and which labelling is better.

    Examples
    --------
    >>> import slimsvm
    >>> from slimsvm.tasks import Multiclass
    >>> print(slimsvm.check_task(Multiclass(3), [0, 1, 2, 2]))
    4 examples at 12 points each: no fault found. Compared with 11 labellings (found at other points, so that a fault \
may have escaped).
    """
    if not isinstance(task, Task):
        raise TypeError(f"task must be an object of a class derived from ExampleTask or Task, found {task!r}")
    rng = np.random.default_rng(random_state)
    if not isinstance(examples, Examples):
        examples = task.encode(examples)
    report = TaskReport(examples.n_examples, n_points)
    points = [_point(task, examples, rng, k) for k in range(n_points)]
    found = [task.augment(scores, plain, examples) for scores, plain in points]
    _check_shapes(task, examples, found, report)
    if not report.faults:
        if isinstance(task, ExampleTask):
            _check_methods(task, examples, points, report)
        _compare(task, examples, points, found, report)
        _check_lines(task, examples, points, report)
        if task.decomposes:
            _check_company(task, examples, points[0], found[0], report)
    if report.faults:
        lines = "\n".join(f"  {k}. {fault}" for k, fault in enumerate(report.faults, start=1))
        raise TaskError(f"{type(task).__name__} breaks its promises:\n{lines}")
    return report


def _point(task: Task, examples: Examples, rng: np.random.Generator, k: int) -> tuple[Array, Array]:
    """Draw scores and plain parameters; the first are all zero, every fourth are halves, so that labellings tie."""
    shapes = (examples.n_rows, task.n_outputs), (task.n_plain,)
    if k == 0:
        return np.zeros(shapes[0]), np.zeros(shapes[1])
    if k % 4 == 3:
        return rng.integers(-3, 4, shapes[0]) / 2, rng.integers(-3, 4, shapes[1]) / 2
    scale = SCALES[k % len(SCALES)]
    return scale * rng.normal(size=shapes[0]), scale * rng.normal(size=shapes[1])


def _check_shapes(task: Task, examples: Examples, found: list[Augmented], report: TaskReport) -> None:
    offsets = examples.offsets
    if offsets is not None and (offsets[0] != 0 or offsets[-1] != examples.n_rows or (np.diff(offsets) < 0).any()):
        report.add(f"encode: offsets must rise from 0 to the {examples.n_rows} rows, found {offsets.tolist()}")
    expected: dict[str, Any] = {"delta": (examples.n_examples,), "coef": (examples.n_rows, task.n_outputs)}
    expected["plain"] = (examples.n_examples, task.n_plain) if task.n_plain else None
    for augmented in found:
        for name, shape in expected.items():
            values = getattr(augmented, name)
            if (None if values is None else np.shape(values)) != shape:
                report.add(f"augment: {name} must have shape {shape}, found {np.shape(values)}")
            elif values is not None and not np.isfinite(values).all():
                report.add(f"augment: {name} must be finite, found {values[~np.isfinite(values)][0]}")


def _check_methods(task: ExampleTask, examples: Examples, points: list, report: TaskReport) -> None:
    """Check `loss`, `features` and `best` of an `ExampleTask`, against all labellings if it has ``labels``."""
    has_labels = type(task).labels is not ExampleTask.labels
    report.exhaustive, known = has_labels, known_of(examples)
    for e, (lo, hi) in enumerate(bounds_of(examples)):
        y, keywords = examples.per_example["y"][e], keywords_of(examples.per_example, e)
        where = f"example {e} (y = {_show(y)}): "
        own = task.loss(y, y, **keywords)
        if own != 0:
            report.add(f"{where}loss(y, y) must be 0, found {own}")
        others = list(islice(task.labels(hi - lo, **keywords), MAX_LABELLINGS + 1)) if has_labels else []
        if len(others) > MAX_LABELLINGS:
            report.exhaustive, others = False, others[:MAX_LABELLINGS]
        if not report.exhaustive:
            others = [*others, *_candidates(task, examples, points, e, (lo, hi))]
        report.n_labellings += len(others)
        parts = []
        for other in others:
            coef, part = task.parts(other, keywords, where)
            cost = task.loss(y, other, **keywords)
            first, second = known.parts(task, other, keywords)
            is_same = np.array_equal(coef, first, equal_nan=True) and np.array_equal(part, second, equal_nan=True)
            changes = {"features": not is_same, "loss": known.loss(task, y, other, keywords) != cost}
            for name in (name for name, has_changed in changes.items() if has_changed):
                report.add(f"{where}{name} of {_show(other)} changes from call to call: it must depend on its "
                           f"arguments alone")  # fmt: skip
            if coef.shape[0] != hi - lo:
                report.add(f"{where}features({_show(other)}) has {coef.shape[0]} rows, the example {hi - lo}")
                return
            if not (np.isfinite(cost) and cost >= 0):
                report.add(f"{where}loss(y, {_show(other)}) must be a number >= 0, found {cost}")
            parts.append((coef, part, cost))
        if not parts:
            continue
        coefs, plains, costs = (np.array(column) for column in zip(*parts))
        for scores, plain in points:
            sums = np.einsum("lrm,rm->l", coefs, scores[lo:hi]) + plains @ plain
            for given, worths in ((y, sums + costs), (None, sums)):
                chosen, best = task.find(scores[lo:hi], plain, keywords, given, known), int(worths.argmax())
                worth = task.worth(chosen, scores[lo:hi], plain, keywords, given)
                if worth < worths[best] - TOLERANCE * (1 + abs(worths[best])):
                    call = "best(scores, plain)" if given is None else "best(scores, plain, y)"
                    report.add(
                        f"{where}{call} gives {_show(chosen)} of {'score' if given is None else 'score + loss'} "
                        f"{worth:.6g}, but {_show(others[best])} has {worths[best]:.6g}"
                    )


def _candidates(task: ExampleTask, examples: Examples, points: list, e: int, rows: tuple[int, int]) -> Iterator[Any]:
    """Yield labellings of example e without ``labels``: those found at all points, and right ones of as many rows."""
    y, keywords = examples.per_example["y"][e], keywords_of(examples.per_example, e)
    for scores, plain in points:
        for given in (y, None):
            yield task.find(scores[slice(*rows)], plain, keywords, given, known_of(examples))
    for other, (lo, hi) in zip(examples.per_example["y"], bounds_of(examples)):
        if hi - lo == rows[1] - rows[0] and not keywords:
            yield other


def _compare(task: Task, examples: Examples, points: list, found: list[Augmented], report: TaskReport) -> None:
    """Check that no labelling found at another point is worth more here, and none less than the right one."""
    if not isinstance(task, ExampleTask):
        report.n_labellings += len(
            {(e, *_signature(examples, a, e)) for a in found for e in range(examples.n_examples)}
        )
    for k, (scores, plain) in enumerate(points):
        own = losses(found[k], scores, plain, examples)
        slack = TOLERANCE * (1 + np.abs(own).max() + np.abs(scores).max(initial=0.0))
        for e in np.flatnonzero(own < -slack):
            report.add(
                f"example {e}: the loss must be at least 0, that of the right labelling; at point {k} augment finds "
                f"{own[e]:.6g}"
            )
        for j, augmented in enumerate(found):
            other = losses(augmented, scores, plain, examples)
            worst = int(np.argmax(other - own))
            if other[worst] - own[worst] > slack:
                report.add(
                    f"example {worst}: at point {k} augment finds a labelling worth {own[worst]:.6g}, but the one "
                    f"found at point {j} is worth {other[worst]:.6g} (delta {augmented.delta[worst]:.6g})"
                )
                break


def _signature(examples: Examples, augmented: Augmented, e: int) -> tuple[float, bytes]:
    """Return a key of an example's labelling."""
    rows = examples.rows_of(np.array([e]))
    plain = b"" if augmented.plain is None else augmented.plain[e].tobytes()
    return float(augmented.delta[e]), (augmented.coef[rows] + 0.0).tobytes() + plain


def _check_lines(task: Task, examples: Examples, points: list, report: TaskReport) -> None:
    """Check along lines that the loss is what `augment` gives, and that its coefficients are its slope."""
    h = 1e-4
    for base, target in pairwise(points):
        direction = (target[0] - base[0], target[1] - base[1])
        value, slope = task.along(base, direction, 0.5, examples)
        default, _ = Task.along(task, base, direction, 0.5, examples)
        if abs(value - default) > 1e-8 * (1 + abs(default)):
            report.add(f"along: the loss at k = 0.5 is {value:.9g}, by augment it is {default:.9g}")
            return
        (below, least), (above, most) = (task.along(base, direction, 0.5 + step, examples) for step in (-h, h))
        rise, room = (above - below) / (2 * h), 1e-5 * (1 + abs(slope))
        if not (least - room <= rise <= most + room and least - room <= slope <= most + room):
            report.add(
                f"the loss rises by {rise:.6g} along a line (finite differences), by the coefficients it should by "
                f"{least:.6g} to {most:.6g}: coefficients and loss do not belong together"
            )
            return


def _check_company(task: Task, examples: Examples, point: Any, found: Augmented, report: TaskReport) -> None:
    """Check that one example alone has the result that it has among all."""
    scores, plain = point
    for e in range(examples.n_examples):
        rows = examples.rows_of(np.array([e]))
        alone = task.augment(scores[rows], plain, examples.take(np.array([e])))
        if alone.delta[0] != found.delta[e] or not np.array_equal(alone.coef, found.coef[rows]):
            report.add(f"example {e}: alone it has another labelling (delta {alone.delta[0]:.6g}) than among all "
                       f"({found.delta[e]:.6g}): examples must not depend on each other")  # fmt: skip


def _show(labelling: Any) -> str:
    """Return a labelling in one line."""
    text = " ".join(str(labelling).split())
    return text if len(text) <= 80 else text[:77] + "..."
