"""The experiments of Yu and Joachims, "Training Structural SVMs with Kernels Using Sampled Cuts" (KDD 2008), section 6.

With the paper's settings at its sizes, where the rows can be had: a million rows of its checkerboard, Adult's 22,697,
and 411,746 rows of covertype, nine tenths of those at hand as the paper's 522,910 are of all. Each experiment is one
function that returns records; `EXPERIMENTS` lists them. Ours to add: the same with our own steps, with exact cuts and
with the exact SVM, and training at fixed C₁.

The paper says the width as σ² and C as a multiple of the number of rows. γ = 1/σ² and the C of LIBSVM are what its
numbers say: exact SVMs of 22,697 rows of Adult with C = 100 and γ = 1/20 err on 7.3 to 7.6 % of their training rows
(the paper: 7.52) and on 10.3 to 10.6 % of all 32,561 rows, the training rows among them (its test error: 10.37); on the
other 9,864 rows they err on 17.4 %. With γ = 1/40 they err on 11.1 % of their training rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

from benchmarks.shared import methods
from benchmarks.shared.trials import Method, Problem, Session
from slimsvm.datasets import DataError, Dataset, checkerboard, load

Records = list[dict[str, Any]]
MakeProblem = Callable[[], Problem]

BOARD_ROWS, BOARD_TEST_ROWS = 1_000_000, 100_000
ADULT_ROWS = 22_697
COVERTYPE, COVERTYPE_ROWS = "covtype-457k", 411_746
FIXED_C1 = 1e4
TABLE_SIZES = 400, 1000  # sample sizes of table 1
# Ranks of the paper's Cholesky baseline, which had 4 GB of memory.
PAPER_RANKS = {"checkerboard": (250,), "covtype": (250, 500), "adult": (250, 500, 5000, 10_000)}


@dataclass(frozen=True)
class Scope:
    """How much of the experiments to run.

    Parameters
    ----------
    sets : tuple of str
        Data sets.
    sizes : tuple of int
        Training-set sizes of the experiments on scaling.
    max_n : int or None
        No training set is larger.
    sample_sizes, C_values : tuples
        Of the experiment on sample sizes.
    svc_cache : float
        Megabytes of kernel rows it may keep.
    ranks : mapping of str to tuple of int
        Ranks of the Cholesky baseline on each set.
    """

    sets: tuple[str, ...] = ("checkerboard", "covtype", "adult")
    sizes: tuple[int, ...] = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
    max_n: int | None = None
    sample_sizes: tuple[int, ...] = (100, 400, 1000, 4000, 10_000)
    C_values: tuple[float, ...] = (100.0, 10.0, 1.0, 0.1, 0.01)
    svc_cache: float = methods.SVC_CACHE
    ranks: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: PAPER_RANKS)

    def sizes_up_to(self, n: int) -> tuple[int, ...]:
        """Sizes below n rows, and n; of no more than `max_n` rows."""
        limit = n if self.max_n is None else min(n, self.max_n)
        return (*(size for size in self.sizes if size < limit), limit)

    def limited(self, problem: Problem) -> Problem:
        """The problem with the limits on its rows."""
        if self.max_n is not None and problem.n_train > self.max_n:
            problem = problem.shuffled().head(self.max_n)
        return problem


def board(n: int, C: float = 1.0) -> Problem:
    """The paper's checkerboard: squares that overlap by 0.02, σ² = 0.05; every size is drawn anew from one seed."""
    draw = partial(checkerboard, noise=0.0, overlap=0.02)
    X_test, y_test = draw(BOARD_TEST_ROWS, random_state=1)
    return Problem("checkerboard", *draw(n, random_state=0), X_test, y_test, C=C, gamma=1 / 0.05)


@cache
def _load(name: str) -> Dataset:
    return load(name)


def covertype(n: int) -> Problem:
    """Covertype as the paper trains it: class 2 against the rest, C = 1, σ² = 1.7; rows in one random order."""
    data = _load(COVERTYPE)
    test = data.X_test, data.y_test
    return Problem("covtype", data.X_train, data.y_train, *test, C=1.0, gamma=1 / 1.7).shuffled().head(n)


def adult(C: float) -> Problem:
    """Adult as the paper trains and tests: 22,697 random rows of the page's training file, judged by all of it; σ² =
    20.
    """
    data = _load("adult")
    rows = data.X_train, data.y_train
    return Problem("adult", *rows, *rows, C=C, gamma=1 / 20).shuffled().head(ADULT_ROWS)


def paper_methods() -> list[Method]:
    """The paper's four, with its own steps."""
    return [methods.uniform(400), methods.uniform(1000), methods.violated(400, True), methods.violated(1000, True)]


def our_methods() -> list[Method]:
    """Sampled cuts with our steps, exact cuts, and the exact SVM."""
    return [methods.violated(400, False), methods.violated(1000, False), methods.exact(), methods.decomposition()]


def compare(
    part: str, compared: Sequence[Method], problems: Iterable[tuple[str, MakeProblem]], scope: Scope, session: Session
) -> Records:
    """Records of the methods on every problem of the sets asked for, made one at a time."""
    records: Records = []
    for data, make in problems:
        if data in scope.sets:
            try:
                problem = make()
            except DataError as error:
                records += session.leave_out(part, data, str(error))
            else:
                records += session.compare(part, compared, scope.limited(problem))
    return records


def scaling(scope: Scope, session: Session) -> Records:
    """Figures 1 to 3: training sets of growing size at C = 1."""
    sizes = {"checkerboard": scope.sizes_up_to(BOARD_ROWS), "covtype": scope.sizes_up_to(COVERTYPE_ROWS)}
    boards: list[tuple[str, MakeProblem]] = [("checkerboard", partial(board, n)) for n in sizes["checkerboard"]]
    forests: list[tuple[str, MakeProblem]] = [("covtype", partial(covertype, n)) for n in sizes["covtype"]]
    records: Records = []
    for problems in (boards, forests):
        baselines = [methods.cholesky(rank) for rank in scope.ranks[problems[0][0]]]
        # The paper's methods first, the one that takes longest last: a run that is cut short has the more.
        for compared in ([*paper_methods(), *baselines], our_methods(), [methods.svc(scope.svc_cache)]):
            records += compare("scaling", compared, problems, scope, session)
    return records


def fixed_c1(scope: Scope, session: Session) -> Records:
    """Work against size at C₁ = C·n = 10⁴, where the paper's bounds on the iterations do not depend on n."""
    compared = [methods.uniform(400), methods.uniform(1000), methods.violated(400, True), methods.violated(400, False)]
    sizes = scope.sizes_up_to(BOARD_ROWS)
    problems = [("checkerboard", partial(board, n, FIXED_C1 / n)) for n in sizes]
    return compare("fixed-c1", compared, problems, scope, session)


def sample_size(scope: Scope, session: Session) -> Records:
    """Figures 4 to 7: sample sizes and C on Adult; exact cuts and SVC for each C, Cholesky for table 1's."""

    def sampled(sizes: Iterable[int]) -> list[Method]:
        return [
            method
            for r in sizes
            for method in (methods.uniform(r), methods.violated(r, True), methods.violated(r, False))
        ]

    baselines = [methods.cholesky(rank) for rank in scope.ranks["adult"]]
    beside = [methods.decomposition(), methods.svc(scope.svc_cache), methods.exact()]
    in_table = [r for r in scope.sample_sizes if r in TABLE_SIZES]
    problems: list[tuple[str, MakeProblem]] = [("adult", partial(adult, C)) for C in scope.C_values]
    records = compare("sample-size", [*sampled(in_table), *beside], problems, scope, session)
    others = sampled(r for r in scope.sample_sizes if r not in TABLE_SIZES)
    records += compare("sample-size", others, problems, scope, session)
    # The largest rank takes longer than all of the above.
    return records + compare("sample-size", baselines, problems[:1], scope, session)


EXPERIMENTS: dict[str, Callable[[Scope, Session], Records]] = {
    "scaling": scaling,
    "fixed-c1": fixed_c1,
    "sample-size": sample_size,
}


def quick(scope: Scope) -> Scope:
    """A scope of minutes on two cores."""
    return replace(
        scope,
        max_n=10_000 if scope.max_n is None else scope.max_n,
        sample_sizes=(100, 400, 1000),
        C_values=(10.0, 1.0, 0.1),
        ranks={data: tuple(rank for rank in ranks if rank <= 500) for data, ranks in scope.ranks.items()},
    )


def run_experiments(parts: Iterable[str], scope: Scope, session: Session) -> Records:
    """Records of the parts named, in the order of `EXPERIMENTS`."""
    return [record for name in EXPERIMENTS if name in set(parts) for record in EXPERIMENTS[name](scope, session)]
