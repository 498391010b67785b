"""What docs/tutorials/extending.md says of a task, a loss and a solver: the files are those, a class and a line do."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import QuantileRegressor

from slimsvm import SVC, Exact, ExactCuts, LowRank, solvers, tasks
from slimsvm.kernels import RBF, Linear
from slimsvm.model import KernelExpansion
from slimsvm.parts.problem import Problem
from slimsvm.parts.run import Fit, Run
from slimsvm.parts.solver import Solver
from slimsvm.rows import as_rows
from slimsvm.tasks.task import Augmented, RowDual

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Quantile(tasks.Task):
    """ℓ = max(q (y − f), (q − 1) (y − f)), which is least in the mean where a share q of the targets is below f."""

    q: float = 0.5
    has_targets = True
    bounded_by = "rows"

    def encode(self, y, sample_weight=None):
        """Targets and weights as one-row examples."""
        y = np.asarray(y, np.float64)
        return tasks.Examples(y, np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, np.float64))

    def augment(self, scores, plain, examples):
        """ℓ = c − coef · f: the slope of the piece that f is on, and its constant."""
        slope = np.where(examples.labels > scores[:, 0], self.q, self.q - 1)
        return Augmented(slope * examples.labels, slope[:, None])

    def decode(self, scores, plain, examples=None):
        """The scores are the predictions."""
        return scores[:, 0]

    def error(self, predicted, examples):
        """The mean loss."""
        r = examples.labels - predicted
        return float(np.average(np.maximum(self.q * r, (self.q - 1) * r), weights=examples.weights))

    def row_dual(self, examples, C):
        """v between (q − 1) C ω and q C ω, its target the row's."""
        return RowDual(examples.labels, 0.0, (self.q - 1) * C, self.q * C)


def problem_of(task, n=120, **options):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(n, 1))
    y = np.sin(2 * X[:, 0]) + rng.exponential(0.5, n)
    given = {"kernel": RBF(1.0), "C": 1.0, "tol": 1e-6, "intercept": "free", "precision": "float64"} | options
    return Problem(as_rows(X), task.encode(y), task, **given), X, y


@pytest.mark.parametrize("q", [0.2, 0.5, 0.9])
def test_a_task_of_three_methods_and_a_dual_is_solved_by_every_solver_that_can(q):
    """Against exact cuts, and with a linear kernel and a large C against a linear program without penalty."""
    problem, X, y = problem_of(Quantile(q))
    exact = Exact().solve(problem)
    below = np.mean(y < exact.model.scores(X)[:, 0])
    assert below == pytest.approx(q, abs=0.05)
    assert exact.lower_bound == pytest.approx(exact.objective, rel=1e-4)
    cuts = ExactCuts().solve(problem_of(Quantile(q), intercept="regularized")[0])
    by_pairs = Exact().solve(problem_of(Quantile(q), intercept="regularized")[0])
    assert cuts.objective == pytest.approx(by_pairs.objective, rel=0.02)
    assert cuts.lower_bound <= by_pairs.objective
    line = Exact().solve(problem_of(Quantile(q), kernel=Linear(), C=1e3)[0]).model.scores(X)[:, 0]
    reference = QuantileRegressor(quantile=q, alpha=0.0, solver="highs").fit(X, y).predict(X)
    task, examples = problem.task, problem.examples
    assert task.error(line, examples) == pytest.approx(task.error(reference, examples), rel=1e-4)
    with pytest.raises(ValueError, match="smooth"):
        LowRank(20).solve(problem)


def files_that_name(pattern):
    """The files of the core and the package whose code has the pattern, outside quotes."""
    paths = [*(ROOT / "core").rglob("*.[ch]*"), *(ROOT / "src").rglob("*.py")]
    found = re.compile(rf'(?<!")\b(?:{pattern})\b(?!")')
    return {str(path.relative_to(ROOT)) for path in paths if found.search(path.read_text(encoding="utf-8"))}


def test_the_logistic_loss_of_several_classes_is_in_the_files_that_the_page_lists_and_nowhere_else():
    page = (ROOT / "docs/tutorials/extending.md").read_text(encoding="utf-8")
    part = page.split("**A loss of a class and the scores of all classes**")[1].split("Learned vectors, Newton")[0]
    listed = set(re.findall(r"^\| `([^`]+)`", part, re.MULTILINE))
    assert len(listed) == 5
    assert files_that_name("SLIMSVM_SOFTMAX|SOFTMAX|Softmax") == listed


class SubgradientRun(Run):
    """w ← (1 − 1/t) w + (C / t) Σ coef φ, a step of Pegasos with all rows at a time."""

    def __init__(self, problem):
        self.problem, self.kernel_rows = problem, problem.bind()
        self.points = self.kernel_rows.points(np.arange(self.kernel_rows.n_rows))
        self.alpha, self.t = np.zeros((self.kernel_rows.n_rows, problem.task.n_outputs)), 0
        self.model, self.objective = None, np.inf

    def step(self):
        problem, self.t = self.problem, self.t + 1
        scores = self.kernel_rows.scores(self.points, self.alpha).astype(np.float64)
        found = problem.task.augment(scores, np.zeros(0), problem.examples)
        lossy = problem.examples.weights @ tasks.losses(found, scores, np.zeros(0), problem.examples)
        objective = 0.5 * np.sum(self.alpha * scores) + problem.C * lossy
        if objective < self.objective:
            self.objective, self.model = objective, self.alpha.copy()
        slope = problem.C * problem.examples.weights[:, None] * found.coef
        self.alpha += (slope - self.alpha) / self.t
        return {"objective": objective}

    def finish(self, status, history):
        alpha = self.alpha if self.model is None else self.model
        rows = np.flatnonzero(alpha.any(axis=1))
        model = KernelExpansion(
            basis=self.kernel_rows.basis(rows), coef=alpha[rows], intercept=np.zeros(alpha.shape[1]),
            plain=np.zeros(0), kernel=self.problem.kernel, dtype=self.kernel_rows.precision,
        )  # fmt: skip
        counters = {"kernel_evals": self.kernel_rows.counter.n}
        return Fit(model, status, self.objective, None, history, counters, basis_rows=rows)


class Subgradient(Solver):
    """Full subgradient steps of length 1/t."""

    def start(self, problem, state=None):
        """Set the run up."""
        return SubgradientRun(problem)


def test_a_solver_is_a_run_and_a_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "slimsvm.solvers.subgradient", sys.modules[__name__])
    monkeypatch.setitem(solvers.SOLVERS._places, "subgradient", "subgradient:Subgradient")  # the line
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")
    with pytest.warns(UserWarning, match="iteration limit after 400"):
        clf = SVC(solver="subgradient", intercept="none", max_iter=400).fit(X, y)
    best = SVC(solver="exact", intercept="none").fit(X, y)
    assert best.objective_ <= clf.objective_ <= 1.05 * best.objective_
    assert clf.score(X, y) > 0.95
    assert clf.status_ == "iteration limit"
    assert clf.n_kernel_evals_ >= 400 * 300 * 300
