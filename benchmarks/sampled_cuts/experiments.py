"""The experiments of Yu and Joachims, "Training Structural SVMs with Kernels Using Sampled Cuts" (KDD 2008), section 6.

With the paper's settings on the data at hand: its checkerboard, covertype (a sample of 100,000 rows) and Adult. Each
experiment is one function that returns records; `EXPERIMENTS` lists them. Ours to add: the same with our own steps and
with exact cuts, training at fixed C₁, and the comparison with what users have (``peers``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

from benchmarks.shared import methods
from benchmarks.shared.trials import Method, Problem, Session
from slimsvm.datasets import DataError, Dataset, checkerboard, load

Records = list[dict[str, Any]]
MakeProblem = Callable[[], Problem]

BOARD_TEST_ROWS = 20_000
BOARD_ROWS = 100_000  # among the peers
ADULT_ROWS = 22_697
FIXED_C1 = 1e4
SVC_ROWS = 100_000
LEARNED = 100  # vectors, among the peers
# Ranks of the paper's Cholesky baseline, which had 4 GB of memory.
PAPER_RANKS = {"checkerboard": (250,), "covtype": (250, 500), "adult": (250, 500, 5000, 10_000)}
# C and γ among the peers, and above how many rows scikit-learn's SVC, which takes ten minutes there, is left out.
PEER_SETTINGS = {
    "adult": (32.0, 2.0**-7, SVC_ROWS),
    "ijcnn1": (32.0, 2.0, SVC_ROWS),
    "cod-rna": (32.0, 2.0**-3, SVC_ROWS),
    "covtype": (10.0, 8.0, 60_000),
}


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
    svc_max_n : int or None
        Above so many rows scikit-learn's SVC is left out; None: as each experiment has it.
    svc_cache : float
        Megabytes of kernel rows it may keep.
    ranks : mapping of str to tuple of int
        Ranks of the Cholesky baseline on each set.
    """

    sets: tuple[str, ...] = ("checkerboard", "covtype", "adult", "ijcnn1", "cod-rna")
    sizes: tuple[int, ...] = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
    max_n: int | None = None
    sample_sizes: tuple[int, ...] = (100, 400, 1000, 4000, 10_000)
    C_values: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0, 100.0)
    svc_max_n: int | None = None
    svc_cache: float = methods.SVC_CACHE
    ranks: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: PAPER_RANKS)

    def sizes_up_to(self, n: int) -> tuple[int, ...]:
        """Sizes of at most n rows and at most `max_n`; that limit itself where all are larger."""
        limit = n if self.max_n is None else min(n, self.max_n)
        return tuple(size for size in self.sizes if size <= limit) or (limit,)

    def limited(self, problem: Problem) -> Problem:
        """The problem with the limits on its rows."""
        if self.max_n is not None and problem.n_train > self.max_n:
            problem = problem.shuffled().head(self.max_n)
        return problem if self.svc_max_n is None else replace(problem, svc_max_n=self.svc_max_n)


def board(n: int, C: float = 1.0) -> Problem:
    """The paper's checkerboard: side 4, noise 0.02, γ = 10; every size is drawn anew from one seed."""
    X_test, y_test = checkerboard(BOARD_TEST_ROWS, random_state=1)
    return Problem("checkerboard", *checkerboard(n, random_state=0), X_test, y_test, C=C, gamma=10.0)


@lru_cache(maxsize=1)
def _load(name: str) -> Dataset:
    return load(name)


def benchmark_set(name: str, C: float, gamma: float, svc_max_n: int = SVC_ROWS) -> Problem:
    """A benchmark set with its documented split and scaling."""
    data = _load(name)
    return Problem(name, data.X_train, data.y_train, data.X_test, data.y_test, C, gamma, svc_max_n=svc_max_n)


def covertype(n: int) -> Problem:
    """Covertype as the paper trains it: class 2 against the rest, C = 1, γ = 1/3.4; rows in one random order."""
    return benchmark_set("covtype", C=1.0, gamma=1 / 3.4).shuffled().head(n)


def adult(C: float) -> Problem:
    """Adult as the paper trains it: 22,697 rows, γ = 1/40. Ours are drawn at random from the page's training file."""
    return benchmark_set("adult", C=C, gamma=1 / 40).shuffled().head(ADULT_ROWS)


def paper_methods() -> list[Method]:
    """The paper's four, with its own steps."""
    return [methods.uniform(400), methods.uniform(1000), methods.violated(400, True), methods.violated(1000, True)]


def our_methods() -> list[Method]:
    """Sampled cuts with our steps, exact cuts."""
    return [methods.violated(400, False), methods.violated(1000, False), methods.exact()]


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
    boards: list[tuple[str, MakeProblem]] = [("checkerboard", partial(board, n)) for n in scope.sizes_up_to(10**6)]
    forests: list[tuple[str, MakeProblem]] = [("covtype", partial(covertype, n)) for n in scope.sizes_up_to(10**5)]
    records: Records = []
    for problems in (boards, forests):
        baselines = [methods.cholesky(rank) for rank in scope.ranks[problems[0][0]]]
        compared = [*paper_methods(), *baselines, *our_methods(), methods.svc(scope.svc_cache)]
        records += compare("scaling", compared, problems, scope, session)
    return records


def fixed_c1(scope: Scope, session: Session) -> Records:
    """Work against size at C₁ = C·n = 10⁴, where the paper's bounds on the iterations do not depend on n."""
    compared = [methods.uniform(400), methods.uniform(1000), methods.violated(400, True), methods.violated(400, False)]
    sizes = scope.sizes_up_to(10**6)
    problems = [("checkerboard", partial(board, n, FIXED_C1 / n)) for n in sizes]
    return compare("fixed-c1", compared, problems, scope, session)


def sample_size(scope: Scope, session: Session) -> Records:
    """Figures 4 to 7: sample sizes and C on Adult; exact cuts and SVC for each C beside them."""
    sampled = [
        method
        for r in scope.sample_sizes
        for method in (methods.uniform(r), methods.violated(r, True), methods.violated(r, False))
    ]
    baselines = [methods.cholesky(rank) for rank in scope.ranks["adult"]]
    compared = [*sampled, *baselines, methods.exact(), methods.svc(scope.svc_cache)]
    problems = [("adult", partial(adult, C)) for C in scope.C_values]
    return compare("sample-size", compared, problems, scope, session)


def peers(scope: Scope, session: Session) -> Records:
    """Five sets with the settings of the budget papers, beside what users would take instead; with an intercept."""
    compared = [
        methods.violated(1000, True),
        methods.violated(1000, False),
        methods.exact(),
        methods.decomposition(),
        methods.learned(LEARNED),
        methods.automatic(),
        methods.svc(scope.svc_cache),
        methods.intelex(),
        methods.trees(),
    ]

    def with_intercept(make: MakeProblem) -> Problem:
        return replace(make(), intercept="regularized")

    problems = [(name, partial(benchmark_set, name, *settings)) for name, settings in PEER_SETTINGS.items()]
    problems.append(("checkerboard", partial(board, min(BOARD_ROWS, scope.max_n or BOARD_ROWS))))
    made = [(name, partial(with_intercept, make)) for name, make in problems]
    return compare("peers", compared, made, scope, session)


EXPERIMENTS: dict[str, Callable[[Scope, Session], Records]] = {
    "scaling": scaling,
    "fixed-c1": fixed_c1,
    "sample-size": sample_size,
    "peers": peers,
}


def quick(scope: Scope) -> Scope:
    """A scope of minutes on two cores."""
    return replace(
        scope,
        max_n=10_000 if scope.max_n is None else scope.max_n,
        sample_sizes=(100, 400, 1000),
        C_values=(0.1, 1.0, 10.0),
        ranks={data: tuple(rank for rank in ranks if rank <= 500) for data, ranks in scope.ranks.items()},
    )


def run_experiments(parts: Iterable[str], scope: Scope, session: Session) -> Records:
    """Records of the parts named, in the order of `EXPERIMENTS`."""
    return [record for name in EXPERIMENTS if name in set(parts) for record in EXPERIMENTS[name](scope, session)]
