"""Every line of the table of solvers in the docs is what a fit takes."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import slimsvm
from slimsvm.estimators._shared import automatic
from slimsvm.estimators._shared.automatic import ChoiceSettings
from slimsvm.rows import MAX_SPARSE_FEATURES

PAGE = (Path(__file__).parents[2] / "docs" / "which_estimator.md").read_text(encoding="utf-8")
LINES = [
    tuple(cell.strip().strip("`") for cell in line.strip("|").split("|"))
    for line in PAGE[PAGE.index("| Estimator |") :].split("\n\n")[0].splitlines()[2:]
]
N = 60


def rows_of(kind, tmp_path):
    X = np.random.default_rng(0).normal(size=(N, 3))
    X[:, 0] += np.arange(N) % 3
    if kind == "kernel matrix":
        return np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    if kind == "on disk":
        np.save(tmp_path / "X.npy", X)
        return np.load(tmp_path / "X.npy", mmap_mode="r")
    if kind == "text":
        return sp.csr_array(np.hstack([X, np.zeros((N, MAX_SPARSE_FEATURES))]))
    return sp.csr_array(X) if kind == "sparse" else X


def labels_of(kind):
    codes = np.arange(N) % 3
    return {
        "two classes": codes > 0,
        "classes": codes,
        "labels": np.eye(3, dtype=int)[codes],
        "numbers": codes + 0.5,
        "queries": codes,
        "": None,
    }[kind]


@pytest.mark.parametrize(("estimator", "rows", "y", "solver", "several"), LINES)
def test_the_solver_that_the_table_names(
    estimator, rows, y, solver, several, tmp_path, settings_of_estimators, monkeypatch
):
    if rows == "over 300,000":
        settings_of_estimators(ChoiceSettings(most_cut_rows=N - 1))
    if rows == "over 20,000":
        monkeypatch.setattr(automatic, "MOST_REDUCED", N - 1)
    if rows == "over 5,000":
        monkeypatch.setattr(automatic, "MOST_REDUCED_OF_TWO", N - 1)
    if rows == "over 10¹² kernel values":
        settings_of_estimators(ChoiceSettings(most_evals=1.0, sample=N // 2))
    labels = labels_of(y)
    names = {"costs": np.ones((2, 2)) - np.eye(2), "function": lambda A, B: A @ B.T + 1.0}
    if y == "classes":
        names["costs"] = np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    clf = eval(estimator, names | {name: getattr(slimsvm, name) for name in slimsvm.__all__})
    clf.set_params(random_state=0)
    options = {"qid": np.arange(N) // 6} if y == "queries" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf.fit(rows_of(rows, tmp_path), labels, **options)
    assert type(clf.solver_).__name__ == solver.split("`")[0]
    estimators = {"pairs": ["ovo"], "scores": ["crammer-singer"], "either": ["ovo", "crammer-singer"]}
    estimators["each against the rest"] = ["ovr"]
    if several:
        assert clf.multi_class_ in estimators[several]


def test_the_table_has_a_line_for_every_kind():
    estimators = {re.match(r"\w+", line[0]).group() for line in LINES}
    assert estimators == {"SVC", "SVR", "OneClassSVM", "OrdinalSVC", "RankSVM"}
    assert {line[1] for line in LINES} >= {"dense", "sparse", "on disk", "text", "kernel matrix", "over 300,000"}
    assert {line[2] for line in LINES} == {"two classes", "classes", "labels", "numbers", "queries", ""}
    code = " ".join(line[0] for line in LINES)
    for name in ("cost_matrix", "warm_start", "gamma", "loss", "kernel", "multi_class", "max_basis", "class_weight"):
        assert f"{name}=" in code
