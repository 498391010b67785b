"""Rows in blocks: every solver finds the same bits as with the same rows in one piece, or says why it takes none."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from solver_cases import PARAMETERS, solve_anyhow

from block_rows_cases import NO_BLOCKS, in_blocks
from slimsvm import SVC, SVR
from slimsvm.editing import Ramp
from slimsvm.kernels import RBF
from slimsvm.parts.problem import Problem
from slimsvm.rows import as_rows
from slimsvm.size_search.compact import Compact
from slimsvm.solvers import SOLVERS
from slimsvm.tasks import Binary

N = 2_300  # from 2,001 on kernel values are in float32


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(N, 5)) * (rng.random((N, 5)) < 0.7)).astype(np.float32)
    return X, (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=N) > 0).astype(int)


def bits_of(clf, X):
    model = clf.model_
    basis = model.basis.toarray() if sp.issparse(model.basis) else model.basis
    values = (basis, model.coef, model.intercept, np.float64(clf.objective_), clf.predict(X), clf._scores(X))
    return [np.asarray(value).tobytes() for value in values]


def fitted(solver, X, y, estimator=SVC, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator(solver=solver, random_state=0, max_iter=4, C=1.0, n_jobs=2, **options).fit(X, y)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_same_bits_wherever_blocks_end_or_a_refusal(name, form, kernel, data, tmp_path, monkeypatch):
    X, y = data
    solver = SOLVERS[name](**{key: value for key, value in PARAMETERS.get(name, {}).items() if key != "epochs"})
    if kernel == "linear" and name in ("cpsp", "bsca", "bsgd"):
        solver.set_params(**({"preimage": "training-rows"} if name == "cpsp" else {"maintenance": "project"}))
    np.save(tmp_path / "rows.npy", X)
    whole = sp.csr_array(X) if form == "csr" else np.load(tmp_path / "rows.npy", mmap_mode="r")
    monkeypatch.setattr("slimsvm.model.PART_VALUES", 5 * 700)
    if name in NO_BLOCKS or (name == "exact-cuts" and (form, kernel) == ("csr", "linear")):
        why = "needs all rows in memory" if name in NO_BLOCKS else "explicit weights keep sparse rows in memory"
        with pytest.raises(ValueError, match=f"{why}.*load the rows into memory"):
            fitted(solver, in_blocks(whole, 10), y, kernel=kernel)
        return
    expected = bits_of(fitted(solver, whole, y, kernel=kernel), whole)
    for n_blocks in (3, 10, 37):
        rows = in_blocks(whole, n_blocks)
        assert bits_of(fitted(solver, rows, y, kernel=kernel), rows) == expected


def test_the_page_names_those_that_take_blocks_and_those_that_do_not():
    page = (Path(__file__).parents[2] / "docs" / "blocks.md").read_text(encoding="utf-8")
    (line,) = [line for line in page.splitlines() if line.startswith("| `max_basis=`")]
    taking, refusing = line.strip("|").split(" | ")
    classes = {name: SOLVERS[name].__name__ for name in SOLVERS}
    named = [{name for name, known in classes.items() if f"`{known}`" in cell} for cell in (taking, refusing)]
    assert named == [set(SOLVERS) - set(NO_BLOCKS), set(NO_BLOCKS)]


def test_the_others_say_why_they_take_no_blocks(data):
    X, y = data
    for solver in (Compact(), Ramp()):
        problem = Problem(in_blocks(X, 3), Binary().encode(2 * y - 1), Binary(), RBF(0.5), intercept="free")
        with pytest.raises(ValueError, match="needs all rows in memory"):
            solver.solve(problem)
        assert solve_anyhow(solver, Problem(as_rows(X[:300]), Binary().encode(2 * y[:300] - 1), Binary(), RBF(0.5),
                                            intercept="free"))  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"max_basis": "auto"}, {"gamma": "learn", "max_basis": "auto"}])
def test_the_estimators_that_auto_stands_for_say_so(options, data):
    X, y = data
    with pytest.raises(ValueError, match=r"needs all rows in memory.*max_basis"):
        SVC(**options).fit(in_blocks(X, 3), y)


@pytest.mark.parametrize(
    "options",
    [
        {"max_basis": 15, "gamma": "learn"},
        {"max_basis": 15, "C": "validate"},
        {"max_basis": 15, "class_weight": "balanced", "gamma": "auto"},
        {"solver": "low-rank", "max_basis": 15, "precision": "float64"},
    ],
    ids=str,
)
def test_parameters_mean_the_same(options, data):
    X, y = data
    kept = {"random_state": 0, "max_iter": 3, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one, other = SVC(**kept).fit(X, y), SVC(**kept).fit(in_blocks(X, 10), y)
    assert bits_of(other, in_blocks(X, 7)) == bits_of(one, X)
    assert other.score(in_blocks(X, 7), y) == one.score(X, y)


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_weights_of_zero_leave_rows_out(form, data):
    X, y = data
    whole = sp.csr_array(X) if form == "csr" else X
    weights = np.random.default_rng(1).choice([0.0, 1.0, 2.5], N)
    kept = {"solver": "low-rank", "max_basis": 15, "random_state": 0}
    one = SVC(**kept).fit(whole, y, weights)
    assert bits_of(SVC(**kept).fit(in_blocks(whole, 10), y, weights), in_blocks(whole, 3)) == bits_of(one, whole)


def test_regression_and_certificate(data):
    X, _ = data
    y = X[:, 0] * X[:, 1]
    one, other = (SVR(max_basis=10, max_iter=3, random_state=0) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one.fit(X, y)
        other.fit(in_blocks(X, 10), y)
    assert bits_of(other, in_blocks(X, 4)) == bits_of(one, X)
    few = 400
    certificates = [one.certificate(rows, y[:few]) for rows in (X[:few], in_blocks(X[:few], 5))]
    assert certificates[0].lower_bound == certificates[1].lower_bound
    assert certificates[0].objective == certificates[1].objective
