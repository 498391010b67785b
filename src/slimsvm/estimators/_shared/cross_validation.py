"""Cross-validation of many candidates, whose fits share kernel values and begin where others ended.

Candidates that differ in C alone are a path. One path on one training part is one piece of work: its fits see the same
rows through the same kernel, and go from the lowest C to the highest, each from the dual point of the one before.
Threads share the pieces out between them. None uses what another one has found, and each may take the same memory, so
that scores are the same for any number of threads.

With ``early_stopping`` the splits come in rounds, two in the first and then one at a time. After a round a candidate
leaves that scored less than the best one on every split so far, on average by more than three standard errors of that
difference, or of the median candidate's if that is more: a race (Maron, Moore, "Hoeffding Races", NIPS 1993; Birattari
and others, "A Racing Algorithm for Configuring Metaheuristics", GECCO 2002).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from numbers import Real
from traceback import format_exc
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.model_selection._validation import _score
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params, _num_samples

from slimsvm.core.threads import resolve_n_jobs, run_together
from slimsvm.parts.problem import Kept, Room
from slimsvm.parts.run import Status

# So many pieces are worked on at a time, at most, and each may take this part of memory_limit.
MOST_PIECES = 8


@dataclass(frozen=True)
class SearchSettings:
    """When threads are used, and who leaves a race. Chosen, not measured."""

    # Fits of fewer rows than this are over before threads have been of use.
    threads_from: int = 1000
    # Splits of the first round of a race, and standard errors that a candidate which leaves is behind.
    first_round: int = 2
    sure: float = 3.0


@dataclass(frozen=True)
class Piece:
    """Candidates of one path, by rising C, on one split of the rows."""

    candidates: tuple[int, ...]
    split: int


@dataclass
class CrossValidation:
    """Every candidate fitted and scored on every split."""

    template: Any  # candidates are clones of it
    candidates: Sequence[dict[str, Any]]  # their parameters
    splits: Sequence[tuple[Any, Any]]  # positions of rows, to train on and to test on
    X: Any
    y: Any
    scorer: Any
    # Further arguments, those with an entry for each row cut as the rows are.
    fit_params: dict[str, Any] = field(default_factory=dict)
    score_params: dict[str, Any] = field(default_factory=dict)
    error_score: Any = np.nan  # score of a candidate whose fit fails
    with_train_score: bool = False
    n_jobs: int | None = None
    verbose: int = 0
    early_stopping: bool = False
    metric: str | None = None  # of several scores the one that candidates race by
    settings: SearchSettings = SearchSettings()

    def run(self) -> list[dict[str, Any]]:
        """Fit and score; return what scikit-learn's searches record of each fit, candidate by candidate."""
        rounds = self.rounds()
        n_jobs = resolve_n_jobs(self.n_jobs) if _num_samples(self.X) >= self.settings.threads_from else 1
        racing = list(range(len(self.candidates)))
        self.n_threads = max(1, n_jobs // len(self.pieces(racing, rounds[0])))  # of a fit
        self.out: list[Any] = [None] * (len(self.candidates) * len(self.splits))
        self.blank = clone(self.template)
        self.is_stopped = False
        with self.bar() as self.shown:
            for splits in rounds:
                pieces = self.pieces(racing, splits)
                self.waiting = pieces[::-1]
                run_together(self.work, min(n_jobs, len(pieces), MOST_PIECES))
                if splits.stop < len(self.splits):
                    racing = self.hopeful(racing, splits.stop)
            self.leave_out()
        return self.out

    def rounds(self) -> list[range]:
        """Splits of each round: all at once, or two and then one at a time."""
        n, first = len(self.splits), self.settings.first_round
        if not self.early_stopping or n <= first:
            return [range(n)]
        return [range(first), *(range(k, k + 1) for k in range(first, n))]

    def hopeful(self, racing: list[int], n_seen: int) -> list[int]:
        """Candidates that may still be the best after the first splits."""
        scores = np.array([[self.score_of(k, split) for split in range(n_seen)] for k in racing])
        scores[~np.isfinite(scores)] = -np.inf
        means = scores.mean(axis=1)
        if not np.isfinite(means.max()):
            return racing
        with np.errstate(invalid="ignore"):
            behind = scores[np.argmax(means)] - scores
            error = np.std(behind, axis=1, ddof=1) / np.sqrt(n_seen)
            # Of two splits that is no estimate: differences may be alike by chance. Most candidates' are a measure.
            error = np.maximum(error, np.median(error[np.isfinite(error)]))
            is_far = behind.mean(axis=1) > self.settings.sure * error
            is_out = (behind > 0).all(axis=1) & (is_far | ~np.isfinite(means))
        return [k for k, out in zip(racing, is_out, strict=True) if not out]

    def score_of(self, k: int, split: int) -> float:
        """The score that a candidate races by."""
        scores = self.out[k * len(self.splits) + split]["test_scores"]
        return float(scores[self.metric] if isinstance(scores, dict) else scores)

    def leave_out(self) -> None:
        """Enter NaN as the scores of candidates that left the race."""
        for place, found in enumerate(self.out):
            if found is None:
                first = self.out[place - place % len(self.splits)]["test_scores"]
                none: Any = dict.fromkeys(first, np.nan) if isinstance(first, dict) else np.nan
                n_test = len(self.splits[place % len(self.splits)][1])
                self.out[place] = {"fit_error": None, "n_test_samples": n_test, "test_scores": none}
                self.out[place] |= {"fit_time": 0.0, "score_time": 0.0}
                if self.with_train_score:
                    self.out[place]["train_scores"] = none
                self.shown.update()

    def bar(self) -> Any:
        """A progress bar under ``verbose``."""
        from tqdm import tqdm  # 10 ms that a silent search is spared

        return tqdm(total=len(self.out), desc="search", unit="fit", disable=not self.verbose)

    def pieces(self, candidates: list[int], splits: range) -> list[Piece]:
        """The pieces of work of some candidates on some splits."""
        paths: dict[str, list[int]] = {}
        for k in candidates:
            others = {name: value for name, value in self.candidates[k].items() if name != "C"}
            paths.setdefault(joblib.hash(others), []).append(k)
        by_C = [tuple(sorted(path, key=self.C_of)) for path in paths.values()]
        return [Piece(path, split) for path in by_C for split in splits]

    def C_of(self, k: int) -> float:
        """C of a candidate, or 0 if it is not in the grid."""
        C = self.candidates[k].get("C")
        return float(C) if isinstance(C, Real) else 0.0

    def work(self) -> None:
        """Work on pieces until none is left."""
        room = Room()
        try:
            while not self.is_stopped:
                try:
                    piece = self.waiting.pop()
                except IndexError:
                    return
                self.do(piece, room)
        except BaseException:
            self.is_stopped = True
            raise

    def do(self, piece: Piece, room: Room) -> None:
        """Fit and score the candidates of a piece."""
        train, test = self.splits[piece.split]
        seen = _safe_split(self.template, self.X, self.y, train)
        held = _safe_split(self.template, self.X, self.y, test, train)
        fit_params = _check_method_params(self.X, self.fit_params, indices=train)
        score_params = [_check_method_params(self.X, self.score_params, indices=index) for index in (test, train)]
        kept = Kept(room)
        for k in piece.candidates:
            if self.is_stopped:
                return
            found: dict[str, Any] = {"fit_error": None, "n_test_samples": len(test)}
            begun = time.perf_counter()
            estimator = self.estimator(k)
            estimator._earlier = kept
            try:
                estimator.fit(*seen, **fit_params)
            except Exception:
                if self.error_score == "raise":
                    raise
                found["fit_error"] = format_exc()
            else:
                if estimator.status_ == Status.INTERRUPTED:
                    raise KeyboardInterrupt
            fitted = time.perf_counter()
            found["test_scores"] = self.score(estimator, held, score_params[0], found)
            scored = time.perf_counter()
            if self.with_train_score:
                found["train_scores"] = self.score(estimator, seen, score_params[1], found)
            found["fit_time"], found["score_time"] = fitted - begun, scored - fitted
            self.out[k * len(self.splits) + piece.split] = found
            self.shown.update()

    def estimator(self, k: int) -> Any:
        """A candidate, not fitted."""
        candidate = clone(self.candidates[k], safe=False)
        if any("__" in name for name in candidate):
            estimator = clone(self.template).set_params(**candidate)
        else:
            estimator = copy(self.blank)  # a clone takes as long as a fit of few rows
            vars(estimator).update(candidate)
        estimator.n_jobs, estimator.memory_limit = self.n_threads, estimator.memory_limit / MOST_PIECES
        return estimator

    def score(self, estimator: Any, rows: tuple[Any, Any], score_params: dict[str, Any], found: dict[str, Any]) -> Any:
        """The scores of a fitted candidate, or ``error_score`` if its fit failed."""
        if found["fit_error"] is None:
            return _score(estimator, *rows, self.scorer, score_params, self.error_score)
        names = getattr(self.scorer, "_scorers", None)
        return self.error_score if names is None else dict.fromkeys(names, self.error_score)
