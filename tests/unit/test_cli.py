"""The command line at work: train, predict, info, datasets."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, random_array
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import slimsvm
from slimsvm import SVC, SVR, ExactCuts, OneClassSVM, ViolatedCuts
from slimsvm.cli import main
from slimsvm.datasets import available, checkerboard

# Models of files whose columns have names expect frames, as scikit-learn has it.
NAMELESS = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


def write_svmlight(path, X, y):
    rows = [" ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row) if value) for row in X.tolist()]
    path.write_text("".join(f"{label} {row}\n" for label, row in zip(y.tolist(), rows)))


def write_csv(path, X, y=None, label="label"):
    header = [f"x{j}" for j in range(X.shape[1])] + ([label] if y is not None else [])
    columns = X.tolist() if y is None else [[*row, target] for row, target in zip(X.tolist(), y.tolist())]
    path.write_text("\n".join(",".join(map(str, row)) for row in [header, *columns]) + "\n")


@pytest.fixture(scope="module")
def board():
    X, y = checkerboard(300, side=2, random_state=0)
    return X.astype(np.float64), y


@pytest.fixture(scope="module")
def files(board, tmp_path_factory):
    """The same rows in each kind of file, and a model trained on them."""
    folder = tmp_path_factory.mktemp("files")
    X, y = board
    write_svmlight(folder / "board.txt", X, y)
    write_csv(folder / "board.csv", X, y)
    write_csv(folder / "unlabelled.csv", X)
    np.savez(folder / "board.npz", X=X, y=y)
    np.savez(folder / "unlabelled.npz", X=X)
    SVC(gamma=5.0, C=2.0, random_state=0).fit(X, y).save(folder / "board.slim")
    return folder


def run_json(capsys, *argv):
    """The object that a command prints, standard error checked to be silent."""
    quiet = ["--quiet"] if argv[0] in ("train", "predict") else []
    assert main([*map(str, argv), "--json", *quiet]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


def fields(out):
    """Names and values of aligned lines."""
    return dict(re.split(r"  +", line, maxsplit=1) for line in out.splitlines())


def predictions(capsys, model, data, *options):
    assert main(["predict", str(model), str(data), "--quiet", *options]) == 0
    return capsys.readouterr().out.splitlines()


# -- train -----------------------------------------------------------------------------------------------------------


@NAMELESS
@pytest.mark.parametrize("name", ["board.txt", "board.csv", "board.npz"])
def test_train_gives_the_model_that_the_estimator_gives(capsys, tmp_path, files, board, name):
    X, y = board
    model = tmp_path / "m.slim"
    report = run_json(capsys, "train", files / name, model, "--gamma", "5", "-C", "2", "--solver", "exact-cuts")
    expected = SVC(gamma=5.0, C=2.0, solver=ExactCuts(), random_state=0).fit(X, y)
    assert (report["n_rows"], report["n_features"], report["classes"]) == (300, 2, [-1, 1])
    assert report["objective"] == pytest.approx(expected.objective_, rel=1e-9)
    assert report["lower_bound"] <= report["objective"]
    assert report["status"] == "converged"
    assert report["n_kernel_evals"] == expected.n_kernel_evals_ > 0
    assert report["model_bytes"] == model.stat().st_size
    np.testing.assert_allclose(slimsvm.load(model).decision_function(X), expected.decision_function(X), atol=1e-7)


def test_train_prints_lines_on_stdout_and_progress_on_stderr(capsys, tmp_path, files):
    assert main(["train", str(files / "board.txt"), str(tmp_path / "m.slim"), "--test", str(files / "board.csv")]) == 0
    out, err = capsys.readouterr()
    lines = fields(out)
    assert list(lines) == [
        "data",
        "kernel",
        "C",
        "solver",
        "status",
        "seconds",
        "kernel evaluations",
        "basis vectors",
        "objective",
        "test",
        "model",
    ]
    assert lines["data"].endswith("board.txt: 300 rows, 2 features, 2 classes")
    assert re.fullmatch(r"converged, \d+ iterations", lines["status"])
    assert re.fullmatch(r"[0-9.e+]+, optimum at least [0-9.e+]+ \(gap .* %\)", lines["objective"])
    assert re.fullmatch(r"error \d+\.\d\d % \(\d+ of 300 wrong\)", lines["test"])
    assert re.search(r"exact SVM: 100%\|.*\| \d\d:\d\d<00:00, objective=.*, gap=.* of it, vectors=\d+", err)


def test_the_same_command_gives_the_same_file_for_any_number_of_threads(capsys, tmp_path, files):
    for name, options in {"a": ["--n-jobs", "1"], "b": ["--n-jobs", "3"], "c": ["--random-state", "1"]}.items():
        argv = ["train", str(files / "board.npz"), str(tmp_path / name), "--quiet", "--solver", "violated-cuts"]
        assert main([*argv, "--sample-size", "20", "--precision", "float32", *options]) == 0
    a, b, c = ((tmp_path / name).read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_options_reach_estimator_and_solver(capsys, tmp_path, files):
    options = "--kernel poly --degree 2 --coef0 1 --gamma 0.5 -C 3 --intercept none --tol 0.01 --max-iter 500"
    options += " --max-seconds 50 --precision float64 --memory-limit 100 --random-state 7 --class-weight=-1:2,1:0.5"
    options += " --solver violated-cuts --sample-size 50 --tol-relative none --set step=full --set max_idle=9"
    model = tmp_path / "m.slim"
    report = run_json(capsys, "train", files / "board.txt", model, *options.split())
    assert report["solver_parameters"] == ViolatedCuts(50, tol_relative=None, step="full", max_idle=9).get_params()
    found = slimsvm.load(model).get_params(deep=False)
    wanted = {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 0.5, "C": 3.0, "intercept": "none", "tol": 0.01}
    wanted |= {"max_iter": 500, "max_seconds": 50.0, "precision": "float64", "memory_limit": 100.0, "random_state": 7}
    wanted |= {"class_weight": {-1: 2.0, 1: 0.5}}
    assert {name: found[name] for name in wanted} == wanted


@pytest.mark.parametrize(("solver", "name"), [("auto", "Compact"), ("refine", "Refine"), ("cpsp", "CPSP")])
def test_a_cap_on_vectors(capsys, tmp_path, files, solver, name):
    options = ["--gamma", "5", "--max-basis", "7", "--solver", solver]
    report = run_json(capsys, "train", files / "board.txt", tmp_path / "m.slim", *options)
    assert report["solver"] == name
    assert report["solver_parameters"]["max_basis"] == 7
    assert 0 < report["n_basis"] <= 7


def test_defaults_are_those_of_the_estimator(capsys, tmp_path, files):
    model = tmp_path / "m.slim"
    run_json(capsys, "train", files / "board.txt", model)
    found, default = slimsvm.load(model).get_params(deep=False), SVC().get_params(deep=False)
    assert {name for name in default if found[name] != default[name]} == {"random_state"}


def test_gamma_is_validated(capsys, tmp_path, files, board):
    X, y = board
    report = run_json(
        capsys, "train", files / "board.csv", tmp_path / "m.slim", "--gamma", "validate", "-C", "validate"
    )
    expected = SVC(C="validate", gamma="validate", random_state=0).fit(X, y)
    assert report["C"] == expected.C_
    assert report["kernel"] == f"RBF(gamma={expected.kernel_.gamma})"


def test_one_gamma_per_feature(capsys, tmp_path, files, board):
    X, y = board
    report = run_json(capsys, "train", files / "board.csv", tmp_path / "m.slim", "--gamma", "5,2.5")
    assert report["kernel"] == "RBF(gamma=[5.0, 2.5])"
    expected = SVC(gamma=np.array([5.0, 2.5]), random_state=0).fit(X, y)
    assert report["objective"] == pytest.approx(expected.objective_, rel=1e-9)


def test_train_regression(capsys, tmp_path, board):
    X = board[0]
    y = np.sin(2 * X[:, 0]) + 0.25
    write_csv(tmp_path / "train.csv", X, y)
    options = ["--task", "regression", "--gamma", "1", "-C", "10", "--epsilon", "0.01"]
    data = tmp_path / "train.csv"
    report = run_json(capsys, "train", data, tmp_path / "m.slim", *options, "--test", data)
    expected = SVR(gamma=1.0, C=10.0, epsilon=0.01, random_state=0).fit(X, y)
    residual = y - expected.predict(X)
    assert report["classes"] is None
    assert report["test"]["mean_absolute_error"] == pytest.approx(np.abs(residual).mean(), abs=1e-6)
    assert report["test"]["root_mean_squared_error"] == pytest.approx(np.sqrt((residual**2).mean()), abs=1e-6)
    predicted = np.array(predictions(capsys, tmp_path / "m.slim", data), dtype=float)
    np.testing.assert_allclose(predicted, expected.predict(X), atol=1e-6)


def test_text_labels_and_several_classes(capsys, tmp_path, board):
    X, y = board
    names = np.where(y > 0, "even", np.where(X[:, 0] > 1, "odd, right", "odd"))
    path = tmp_path / "train.tsv"
    rows = "".join(f"{name}\t{row[0]}\t{row[1]}\n" for name, row in zip(names, X))
    path.write_text("class\ta\tb\n" + rows)
    report = run_json(capsys, "train", path, tmp_path / "m.slim", "--gamma", "5", "-C", "10", "--test", path)
    assert report["classes"] == ["even", "odd", "odd, right"]
    assert report["test"]["error_rate"] < 0.1
    assert report["test"]["n_wrong"] == np.count_nonzero(names != predictions(capsys, tmp_path / "m.slim", path))


def test_the_label_column_is_a_choice(capsys, tmp_path, board):
    X, y = board
    write_csv(tmp_path / "train.csv", np.column_stack([X[:, 0], y]), X[:, 1], label="last")
    report = run_json(capsys, "train", tmp_path / "train.csv", tmp_path / "m.slim", "--target", "x1")
    assert report["classes"] == [-1.0, 1.0]
    assert len(predictions(capsys, tmp_path / "m.slim", tmp_path / "train.csv", "--target", "x1")) == 300


def test_sparse_rows_stay_sparse_and_others_become_dense(capsys, tmp_path, files):
    X = random_array((60, 400), density=0.02, rng=0).toarray()
    y = np.where(X.sum(axis=1) > np.median(X.sum(axis=1)), 1, -1)
    write_svmlight(tmp_path / "sparse.txt", X, y)
    for path, kind in ((tmp_path / "sparse.txt", "sparse"), (files / "board.txt", "dense")):
        assert main(["train", str(path), str(tmp_path / "m.slim")]) == 0
        assert f"features, {kind}\n" in capsys.readouterr().err
        model = slimsvm.load(tmp_path / "m.slim")
        assert isinstance(model.basis_vectors_, np.ndarray) == (kind == "dense")
    run_json(capsys, "train", tmp_path / "sparse.txt", tmp_path / "m.slim")
    predicted = predictions(capsys, tmp_path / "m.slim", tmp_path / "sparse.txt")
    assert predicted == list(map(str, SVC(random_state=0).fit(X, y).predict(X)))


def test_zero_based_indices_can_be_declared(capsys, tmp_path, board):
    X, y = board[0].copy(), board[1]
    zero, shifted = tmp_path / "zero.txt", tmp_path / "shifted.txt"
    write_svmlight(tmp_path / "one.txt", X, y)
    lines = (tmp_path / "one.txt").read_text().replace(" 1:", " 0:").replace(" 2:", " 1:")
    zero.write_text(lines)
    shifted.write_text("".join(f"{line.split()[0]} {line.split()[2]}\n" for line in lines.splitlines()))
    assert main(["train", str(zero), str(tmp_path / "m.slim"), "--quiet"]) == 0
    capsys.readouterr()
    # Without feature 0 nothing shows that indices begin at 0.
    X[:, 0] = 0
    expected = slimsvm.load(tmp_path / "m.slim").predict(X)
    assert predictions(capsys, tmp_path / "m.slim", shifted, "--zero-based", "yes") == list(map(str, expected))
    assert predictions(capsys, tmp_path / "m.slim", shifted) != list(map(str, expected))


def test_a_benchmark_set_by_name_is_tested_on_its_own_test_part(capsys, tmp_path, data):
    banana = data("banana")
    options = ["--gamma", "1", "-C", "10", "--solver", "exact-cuts"]
    report = run_json(capsys, "train", "banana", tmp_path / "m.slim", *options)
    expected = SVC(gamma=1.0, C=10.0, solver="exact-cuts").fit(banana.X_train, banana.y_train)
    assert (report["n_rows"], report["test"]["n_rows"]) == (400, 4900)
    assert report["test"]["error_rate"] == pytest.approx(1 - expected.score(banana.X_test, banana.y_test), abs=5e-4)
    again = run_json(capsys, "predict", tmp_path / "m.slim", "banana")
    assert again["error_rate"] == report["test"]["error_rate"]


def test_a_file_comes_before_a_benchmark_set(capsys, tmp_path, files, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "banana").write_bytes((files / "board.txt").read_bytes())
    assert run_json(capsys, "train", "banana", "m.slim")["n_rows"] == 300


def test_a_fit_that_stops_at_a_limit_says_so_in_one_line(capsys, tmp_path, files):
    model = tmp_path / "m.slim"
    assert (
        main(["train", str(files / "board.txt"), str(model), "--solver", "exact-cuts", "--max-iter", "2", "--json"])
        == 0
    )
    out, err = capsys.readouterr()
    assert json.loads(out)["status"] == "iteration limit"
    warned = [line for line in err.splitlines() if line.startswith("slimsvm: warning: ")]
    assert len(warned) == 1
    assert "stopped at the iteration limit after 2 iterations" in warned[0]
    assert slimsvm.load(model).status_ == "iteration limit"


def test_an_interrupted_fit_is_saved(capsys, tmp_path, files, monkeypatch):
    """Ctrl-C while the fourth iteration is being shown: the best model so far is written, and the status tells."""
    shown = []

    def update(bar, record, n_iter):
        shown.append(record)
        if len(shown) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr("slimsvm.parts.solver.Bar.update", update)
    model = tmp_path / "m.slim"
    assert main(["train", str(files / "board.txt"), str(model), "--solver", "exact-cuts", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["status"] == "interrupted"
    assert "interrupted after 4 iterations: the best model so far is returned" in err
    assert slimsvm.load(model).status_ == "interrupted"


@pytest.mark.parametrize(
    ("loss", "hint"),
    [("ramp", "(no bound is known)"), ("roc_auc --solver uniform-cuts", "slimsvm info --certificate does)")],
)
def test_an_objective_without_a_bound_says_where_one_is(capsys, tmp_path, files, loss, hint):
    argv = ["train", str(files / "board.txt"), str(tmp_path / "m.slim"), "--quiet", "--loss", *loss.split()]
    assert main(argv) == 0
    assert fields(capsys.readouterr().out)["objective"].endswith(hint)


def test_an_objective_that_was_not_computed(capsys, tmp_path, files):
    argv = ["train", files / "board.txt", tmp_path / "m.slim", "--solver", "uniform-cuts", "--sample-size", "50"]
    report = run_json(capsys, *argv, "--set", "final_objective=false")
    assert report["objective"] is None
    assert np.isnan(slimsvm.load(tmp_path / "m.slim").objective_)
    assert run_json(capsys, "info", tmp_path / "m.slim")["objective"] is None
    assert main(["info", str(tmp_path / "m.slim")]) == 0
    assert fields(capsys.readouterr().out)["objective"] == "not computed"


# -- predict ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["board.txt", "board.csv", "board.npz", "unlabelled.csv", "unlabelled.npz"])
def test_predict_prints_one_label_per_line(capsys, files, board, name):
    X, y = board
    expected = slimsvm.load(files / "board.slim").predict(X)
    assert main(["predict", str(files / "board.slim"), str(files / name)]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == list(map(str, expected))
    wrong = np.count_nonzero(expected != y)
    told = f"slimsvm: {files / name}: error {100 * wrong / 300:.2f} % ({wrong} of 300 wrong)\n"
    assert err == ("" if name.startswith("un") else told)


def test_predict_writes_to_a_file(capsys, tmp_path, files, board):
    output = tmp_path / "labels.txt"
    report = run_json(capsys, "predict", files / "board.slim", files / "board.csv", "--output", output)
    assert "predictions" not in report
    assert report["output"] == str(output)
    assert output.read_text().splitlines() == list(map(str, slimsvm.load(files / "board.slim").predict(board[0])))


def test_predict_with_scores(capsys, tmp_path, files, board):
    X = board[0]
    model = slimsvm.load(files / "board.slim")
    lines = predictions(capsys, files / "board.slim", files / "board.txt", "--scores")
    labels, scores = zip(*(line.split("\t") for line in lines))
    assert list(labels) == list(map(str, model.predict(X)))
    np.testing.assert_array_equal(np.array(scores, dtype=float), model.decision_function(X))
    report = run_json(capsys, "predict", files / "board.slim", files / "board.txt", "--scores")
    np.testing.assert_array_equal(np.ravel(report["scores"]), model.decision_function(X))
    assert report["predictions"] == model.predict(X).tolist()
    three = SVC(gamma=5.0).fit(X, np.digitize(X[:, 0], [0.6, 1.2]))
    three.save(tmp_path / "three.slim")
    lines = predictions(capsys, tmp_path / "three.slim", files / "board.txt", "--scores")
    np.testing.assert_array_equal(
        [[float(cell) for cell in line.split("\t")[1:]] for line in lines], three.decision_function(X)
    )


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_predict_with_a_guarantee(capsys, tmp_path, board, task):
    """Sets of classes as 0 and 1, or both ends of intervals, below a line of names."""
    X, table, model = board[0], tmp_path / "table.csv", tmp_path / "m.slim"
    labels = np.array(["a", "b"])[np.digitize(X[:, 0], [0.8])] if task == "classification" else X[:, 0]
    write_csv(table, X, labels)
    command = ["train", str(table), str(model), "--quiet", "--gamma", "5", "--task", task, "--calibration-size", "0.25"]
    assert main(command) == 0
    estimator, X = slimsvm.load(model), pd.DataFrame(X, columns=slimsvm.load(model).feature_names_in_)
    assert estimator.calibration_size == 0.25
    capsys.readouterr()
    first, *rows = predictions(capsys, model, table, "--alpha", "0.2")
    is_class = task == "classification"
    assert first == ("label\ta\tb" if is_class else "label\tlow\thigh")
    expected = estimator.predict_set(X, 0.2) if is_class else estimator.predict_interval(X, 0.2)
    np.testing.assert_array_equal([[float(cell) for cell in row.split("\t")[1:]] for row in rows], expected)
    report = run_json(capsys, "predict", model, table, "--alpha", "0.2")
    np.testing.assert_array_equal(report["promised"], expected)


@pytest.mark.parametrize("labels", [["no", "yes"], ["high", "low", "middle"]])
def test_predict_with_probabilities(capsys, tmp_path, board, labels):
    """Below a line of names; the model is that without them, and `info` knows them."""
    X, table, model = board[0], tmp_path / "table.csv", tmp_path / "m.slim"
    write_csv(table, X, np.array(labels)[np.digitize(X[:, 0], [0.8, 1.2][: len(labels) - 1])])
    command = ["train", str(table), str(model), "--quiet", "--gamma", "5", "--scale", "minmax"]
    assert main([*command, "--probabilities"]) == 0
    pipeline = slimsvm.load(model)
    X = pd.DataFrame(X, columns=pipeline[0].feature_names_in_)
    probabilities = pipeline.predict_proba(X)
    capsys.readouterr()
    first, *rows = predictions(capsys, model, table, "--probabilities")
    assert first == "\t".join(["label", *labels])
    found = [row.split("\t") for row in rows]
    assert [row[0] for row in found] == pipeline.predict(X).tolist()
    np.testing.assert_array_equal([[float(cell) for cell in row[1:]] for row in found], probabilities)
    report = run_json(capsys, "predict", model, table, "--probabilities")
    np.testing.assert_array_equal(report["probabilities"], probabilities)
    assert main(["predict", str(model), str(table), "--probabilities", "--output", str(tmp_path / "p.txt")]) == 0
    assert (tmp_path / "p.txt").read_text().splitlines() == [first, *rows]
    capsys.readouterr()
    assert run_json(capsys, "info", model)["has_probabilities"]
    assert main(["info", str(model)]) == 0
    assert fields(capsys.readouterr().out)["probabilities"] == "calibrated"
    assert main([*command[:2], str(tmp_path / "plain.slim"), *command[3:]]) == 0
    plain = slimsvm.load(tmp_path / "plain.slim")
    np.testing.assert_array_equal(plain.decision_function(X), pipeline.decision_function(X))


def test_labels_that_mean_nothing_to_the_model_give_no_error_rate(capsys, tmp_path, files, board):
    write_svmlight(tmp_path / "zeros.txt", board[0], np.zeros(300, dtype=int))
    assert main(["predict", str(files / "board.slim"), str(tmp_path / "zeros.txt"), "--json"]) == 0
    out, err = capsys.readouterr()
    assert "error_rate" not in json.loads(out)
    said = "none of its labels is a class of the model, so no error is computed"
    assert err == f"slimsvm: {tmp_path / 'zeros.txt'}: {said}\n"


@pytest.mark.parametrize("name", ["board.npz", "board.csv", "unlabelled.csv"])
def test_several_labels_or_targets_of_a_row_are_columns(capsys, tmp_path, files, board, name):
    """Of models from Python; DATA with one label for each row says nothing about them."""
    X, y = board
    labels = np.stack([y > 0, X[:, 0] > 0.5], axis=1).astype(int)
    path, at = str(tmp_path / "m.slim"), str(files / name)
    several = slimsvm.SVC(probability=True, random_state=0).fit(X, labels)
    several.save(path)
    assert main(["predict", path, at]) == 0
    out, err = capsys.readouterr()
    assert [line.split("\t") for line in out.splitlines()] == several.predict(X).astype(str).tolist()
    assert ("one label for each row, the model has 2, so no error is computed" in err) == name.startswith("board")
    assert main(["predict", path, at, "--probabilities", "--quiet"]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == "label 0\tlabel 1\t0\t1"
    np.testing.assert_array_equal(np.array([line.split("\t")[2:] for line in lines], float), several.predict_proba(X))
    numbers = slimsvm.SVR(loss="squared").fit(X, X[:, ::-1])
    numbers.save(path)
    assert main(["predict", path, at]) == 0
    found = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    np.testing.assert_array_equal(np.array(found, float), numbers.predict(X))
    if name == "board.npz":
        assert main(["info", path, at, "--certificate"]) == 1
        assert "y must have the targets of the fit, 2; found 1" in capsys.readouterr().err


def test_one_class_has_scores_and_a_share_of_errors(capsys, tmp_path, board):
    X, _ = board
    model = OneClassSVM(gamma=5.0).fit(X)
    model.save(tmp_path / "m.slim")
    predicted = model.predict(X)
    np.savez(tmp_path / "d.npz", X=X, y=np.where(np.arange(len(X)) < 3, -predicted, predicted))
    command = ["predict", str(tmp_path / "m.slim"), str(tmp_path / "d.npz")]
    assert main([*command, "--scores"]) == 0
    out, err = capsys.readouterr()
    lines = [line.split("\t") for line in out.splitlines()]
    assert [int(line[0]) for line in lines] == predicted.tolist()
    np.testing.assert_array_equal([float(line[1]) for line in lines], model.decision_function(X))
    assert f"(3 of {len(X)} wrong)" in err
    np.savez(tmp_path / "d.npz", X=X, y=np.arange(len(X)))
    assert main(command) == 0
    assert "not 1 (inside) and -1 (outside)" in capsys.readouterr().err


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_letters_that_the_output_has_not_are_shown_by_their_codes(encoding, tmp_path):
    labels = np.array(["日本", "\udcff"])
    SVC().fit([[0.0], [1.0]], labels).save(tmp_path / "m.slim")
    np.savez(tmp_path / "d.npz", X=[[0.0], [1.0]])
    command = [sys.executable, "-m", "slimsvm", "predict", "m.slim", "d.npz", "--quiet"]
    env = os.environ | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    answer = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True)
    shown = "日本" if encoding == "utf-8" else r"\u65e5\u672c"
    assert (answer.returncode, answer.stderr) == (0, b"")
    assert answer.stdout.decode() == f"{shown}\n\\udcff\n"
    subprocess.run([*command, "--json", "--output", "lines.txt"], cwd=tmp_path, env=env, check=True)
    assert (tmp_path / "lines.txt").read_text(encoding="utf-8") == "日本\n\\udcff\n"


def test_numbers_match_classes_that_are_texts(capsys, tmp_path, board):
    X, y = board
    write_csv(tmp_path / "train.csv", X, np.where(y > 0, "1", "none"))
    assert main(["train", str(tmp_path / "train.csv"), str(tmp_path / "m.slim"), "--quiet"]) == 0
    capsys.readouterr()
    write_csv(tmp_path / "test.csv", X[y > 0], y[y > 0])
    report = run_json(capsys, "predict", tmp_path / "m.slim", tmp_path / "test.csv")
    assert report["error_rate"] < 0.5


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_stops_early_is_no_failure_to_speak_of(files, monkeypatch, unbuffered):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    command = f"{sys.executable} -m slimsvm predict board.slim board.txt --quiet | true"
    answer = subprocess.run(["bash", "-c", command], cwd=files, capture_output=True, text=True, check=True)
    assert answer.stderr == ""


# -- info, datasets --------------------------------------------------------------------------------------------------


def test_info(capsys, files):
    model = slimsvm.load(files / "board.slim")
    report = run_json(capsys, "info", files / "board.slim")
    assert report["kernel"] == "RBF(gamma=5.0)"
    assert report["classes"] == [-1, 1]
    assert (report["n_features"], report["n_basis"]) == (2, model.n_basis_)
    assert (report["objective"], report["lower_bound"]) == (model.objective_, model.lower_bound_)
    assert report["status"] == "converged"
    assert report["parameters"]["C"] == 2.0
    assert report["model_bytes"] == (files / "board.slim").stat().st_size
    assert main(["info", str(files / "board.slim")]) == 0
    shown = fields(capsys.readouterr().out)
    assert shown["classes"] == "2: -1, 1"
    assert (shown["probabilities"], report["has_probabilities"]) == ("none", False)
    assert shown["parameters"] == "C=2.0, gamma=5.0, random_state=0, others as by default"


def fitted(name, X, y):
    """An estimator of that class that was trained on rows of two classes, or on a sequence of them."""
    own = {"StructuredSVM": {"task": slimsvm.tasks.Multiclass(2)}, "CrossTrainedSVC": {"random_state": 0}}
    estimator = slimsvm.estimators.OF_ONE_MODEL[name](**own.get(name, {}))
    if name in ("SequenceSVM", "StructuredSVM"):
        return estimator.fit(X, y > 0, lengths=[len(y)] if name == "SequenceSVM" else np.ones(len(y), int))
    if name == "RankSVM":
        return estimator.fit(X, X[:, 0], qid=y > 0)
    return estimator.fit(X) if name == "OneClassSVM" else estimator.fit(X, y)


@pytest.mark.parametrize("name", sorted(slimsvm.estimators.OF_ONE_MODEL))
def test_info_knows_every_estimator(capsys, tmp_path, board, name):
    X, y = board[0][:60], board[1][:60]
    fitted(name, X, y).save(tmp_path / "m.slim")
    assert main(["info", str(tmp_path / "m.slim")]) == 0
    shown = fields(capsys.readouterr().out)
    assert shown["estimator"] == name
    assert shown["parameters"].endswith("others as by default")


def test_info_certifies_a_model_by_file_and_data(capsys, files):
    model = slimsvm.load(files / "board.slim")
    found = run_json(capsys, "info", files / "board.slim", files / "board.csv", "--certificate")["certificate"]
    assert found["objective"] == pytest.approx(model.objective_, rel=1e-6)
    assert 0 <= found["gap"] <= 0.01
    assert main(["info", str(files / "board.slim"), str(files / "board.txt"), "--certificate"]) == 0
    assert "optimum at least" in fields(capsys.readouterr().out)["certificate"]
    for argv in (["--certificate"], [str(files / "board.csv")]):
        assert main(["info", str(files / "board.slim"), *argv]) != 0
        assert "--certificate and the training data DATA go together" in capsys.readouterr().err


def test_datasets_says_what_is_there_and_where(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("SLIMSVM_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("slimsvm.datasets.loading.Path.cwd", lambda: tmp_path)
    (tmp_path / "covtype_subset.npz").write_bytes(b"")
    report = run_json(capsys, "datasets")
    sets = {entry["name"]: entry for entry in report["datasets"]}
    assert list(sets) == [info.name for info in available()]
    assert sets["covtype"]["found"]
    assert sets["covtype"]["paths"] == [str(tmp_path / "covtype_subset.npz")]
    assert report["folders"][0] == str(tmp_path)
    assert main(["datasets"]) == 0
    out = capsys.readouterr().out
    assert re.search(rf"^covtype +100000 +16476 +54 +2 +{re.escape(str(tmp_path))}$", out, re.MULTILINE)
    assert f"  {tmp_path / 'cache' / 'slimsvm'} (not there)\n" in out


# -- scaling -----------------------------------------------------------------------------------------------------------


def uneven(n=120):
    """Two features of very different sizes, none of them 0."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2)) * [1.0, 1000.0] + [5.0, 20_000.0]
    return X, (X[:, 0] > 5.0).astype(int)


@NAMELESS
@pytest.mark.parametrize(("scale", "scaler"), [("minmax", MinMaxScaler), ("standard", StandardScaler)])
def test_the_scaling_is_kept_in_the_model(capsys, tmp_path, scale, scaler):
    X, y = uneven()
    write_csv(tmp_path / "rows.csv", X[:80], y[:80])
    write_csv(tmp_path / "others.csv", X[80:], y[80:])
    model = tmp_path / "m.slim"
    report = run_json(
        capsys, "train", tmp_path / "rows.csv", model, "--scale", scale, "--test", tmp_path / "others.csv"
    )
    expected = make_pipeline(scaler(), SVC(random_state=0)).fit(X[:80], y[:80])
    assert report["scale"] == scale
    assert report["test"]["error_rate"] == pytest.approx(1 - expected.score(X[80:], y[80:]))
    np.testing.assert_array_equal(slimsvm.load(model).decision_function(X), expected.decision_function(X))
    assert predictions(capsys, model, tmp_path / "others.csv") == [str(label) for label in expected.predict(X[80:])]
    found = run_json(capsys, "info", model, tmp_path / "rows.csv", "--certificate")
    assert found["scaling"] == [repr(scaler())]
    assert found["certificate"]["objective"] == pytest.approx(report["objective"], rel=1e-9)


@NAMELESS
def test_sparse_rows_stay_sparse(capsys, tmp_path):
    """A scale of their own keeps zeros; one that moves them is refused, and rows of a dense model become dense."""
    rng = np.random.default_rng(0)
    X = 100 * rng.normal(size=(60, 30)) * (rng.random((60, 30)) < 0.1)
    y = (X.sum(axis=1) > 0).astype(int)
    write_svmlight(tmp_path / "rows.txt", X, y)
    assert main(["train", str(tmp_path / "rows.txt"), str(tmp_path / "m.slim"), "--scale", "minmax", "--quiet"]) == 1
    assert "its rows are sparse, and --scale minmax would move their zeros" in capsys.readouterr().err
    for scale, scaler in (("maxabs", MaxAbsScaler()), ("standard", StandardScaler(with_mean=False))):
        run_json(capsys, "train", tmp_path / "rows.txt", tmp_path / "m.slim", "--scale", scale, "--zero-based", "no")
        expected = make_pipeline(scaler, SVC(random_state=0)).fit(csr_array(X), y).predict(csr_array(X))
        options = "--zero-based", "no"
        assert predictions(capsys, tmp_path / "m.slim", tmp_path / "rows.txt", *options) == list(map(str, expected))
    dense, labels = uneven()
    write_csv(tmp_path / "dense.csv", np.hstack([dense, np.ones((120, 28))]), labels)
    run_json(capsys, "train", tmp_path / "dense.csv", tmp_path / "m.slim", "--scale", "standard")
    expected = slimsvm.load(tmp_path / "m.slim").predict(X)
    assert predictions(capsys, tmp_path / "m.slim", tmp_path / "rows.txt", *options) == list(map(str, expected))


def test_words_have_no_scale(capsys, tmp_path):
    (tmp_path / "words.txt").write_text("a X\nb Y\n\n")
    argv = ["train", str(tmp_path / "words.txt"), str(tmp_path / "m.slim"), "--task", "sequence", "--scale", "minmax"]
    assert main(argv) == 2
    assert "--scale is for rows of numbers, --task sequence has words" in capsys.readouterr().err
