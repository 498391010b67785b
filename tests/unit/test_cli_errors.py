"""Bad input on the command line: one clear sentence, the right exit code, never a traceback, nothing half-written."""

import json
import os
import re
import resource
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import slimsvm
from slimsvm import SVC, SVR, CrossTrainedSVC
from slimsvm.cli import COMMANDS, main
from slimsvm.datasets import checkerboard
from slimsvm.kernels import KERNELS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A data file `good.txt` and a model `good.slim` of it."""
    folder = tmp_path_factory.mktemp("bad")
    X, y = checkerboard(200, side=2, random_state=0)
    rows = "".join(f"{label} 1:{row[0]!r} 2:{row[1]!r}\n" for label, row in zip(y.tolist(), X.tolist()))
    (folder / "good.txt").write_text(rows)
    SVC(gamma=5.0, random_state=0).fit(X, y).save(folder / "good.slim")
    SVR(gamma=5.0).fit(X, X[:, 0]).save(folder / "numbers.slim")
    return folder


@pytest.fixture
def here(folder, tmp_path, monkeypatch):
    """A fresh working directory with the files of `folder`."""
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fail(capsys, argv, code=1):
    """What a failing command says after `error: `, checked to be the only thing it says."""
    assert main(argv.split() if isinstance(argv, str) else argv) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    if code == 1:
        assert err.startswith("slimsvm: error: "), err
        assert err.count("\n") == 1, err
    return err.partition("error: ")[2].strip()


# -- data files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", "", "a.txt: the file is empty"),
        ("a.csv", "", "a.csv: the file is empty"),
        ("a.txt", "1 1:0.5\n1 1:0.2\n", "a.txt: found one class only, 1; at least two are needed"),
        ("a.csv", "x,y\n1,2\n", "a.csv: found one class only, 2; at least two are needed"),
        ("a.txt", "1 1:0.5\n-1 1:nan\n", "a.txt, line 2: found 'nan' as the value of feature 1, which must be finite"),
        ("a.csv", "x,y\n1,2\ninf,3\n", "a.csv, line 3, column 'x': found inf, values must be finite"),
        ("a.csv", "x,y\n1,2\n2,nan\n", "a.csv, line 3: found 'nan' as the label, which must be finite"),
        ("a.txt", "1 1:0.5\n-1 1:abc\n", "a.txt, line 2: found 'abc' where the value of feature 1, a number, belongs"),
        ("a.txt", "1 1:0.5\nspam 1:1\n", "a.txt, line 2: found 'spam' where the label, a number, belongs"),
        (
            "a.csv",
            "x,y\n1,2\ntwo,3\n",  # a text makes it a table
            "a.csv: has 2 rows, too few to hold some out: give --test FILE",
        ),
        ("a.csv", "x,y\n1,2\n3\n", "a.csv, line 3: found 1 fields, the header has 2"),
        ("a.txt.gz", b"\x1f\x8b\x08 and so on", "a.txt.gz: the gzip data are damaged or cut short: "),
    ],
)
def test_data_files_that_cannot_be_used(capsys, here, name, content, said):
    (here / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    found = fail(capsys, f"train {name} m.slim --quiet")
    assert found.startswith(said)
    assert found == said or name == "a.txt.gz"
    assert not (here / "m.slim").exists()


@pytest.mark.parametrize(("value", "said"), [(np.nan, "nan"), (np.inf, "inf")])
def test_npz_with_values_that_are_no_numbers(capsys, here, value, said):
    X = np.ones((4, 3))
    X[2, 1] = value
    np.savez("a.npz", X=X, y=[0, 1, 0, 1])
    found = fail(capsys, "train a.npz m.slim --quiet")
    assert found == f"a.npz, row 2, column 1: found {said}, values must be finite (both count from 0)"


def test_labels_of_a_type_that_no_file_holds(capsys, here):
    for y in (np.array(["2020-01-01", "2021-01-01"], "datetime64[D]"), np.array([b"a", b"b"]), np.array([1j, 2j])):
        np.savez("a.npz", X=np.eye(2), y=y)
        found = fail(capsys, "train a.npz m.slim --quiet")
        assert found == f"a.npz: found labels 'y' of type {y.dtype}, numbers or texts are needed"


def test_what_comes_through_a_pipe(capsys, here):
    """It is read once; a ranking cannot be told from other rows before."""
    rows = (here / "good.txt").read_bytes()

    def through_a_pipe(command, code):
        os.mkfifo("pipe")
        writer = threading.Thread(target=lambda: Path("pipe").write_bytes(rows), daemon=True)
        writer.start()
        assert main(command.split()) == code
        os.remove("pipe")
        return capsys.readouterr()

    assert main(["predict", "good.slim", "good.txt", "--quiet"]) == 0
    expected = capsys.readouterr().out
    assert through_a_pipe("predict good.slim pipe --quiet", 0).out == expected
    assert through_a_pipe("train pipe m.slim --quiet --task classification", 0).out.startswith("data")
    said = "pipe: is a pipe, which can be read only once: give --task"
    assert through_a_pipe("train pipe m.slim --quiet", 1).err == f"slimsvm: error: {said}\n"
    rows = (here / "good.slim").read_bytes()
    assert "pipe is a pipe: a model file is read where it lies" in through_a_pipe("info pipe", 1).err
    assert fail(capsys, "predict good.slim -").endswith("nor a data set of that name (standard input is /dev/stdin)")


def test_a_missing_file(capsys, here):
    wanted = "nowhere.txt: there is no such file, nor a data set of that name (see `slimsvm datasets`)"
    assert fail(capsys, "train nowhere.txt m.slim") == wanted
    assert fail(capsys, "predict good.slim nowhere.txt") == wanted
    assert fail(capsys, "predict nowhere.slim good.txt") == "nowhere.slim: No such file or directory"
    assert fail(capsys, "info nowhere.slim") == "nowhere.slim: No such file or directory"


def test_a_bad_test_file_is_seen_before_training(capsys, here):
    (here / "test.txt").write_text("1 1:0.5 7:1\n")
    found = fail(capsys, "train good.txt m.slim --test test.txt --quiet")
    assert found == "test.txt, line 1: found feature index 7, but the last of 2 features has index 2"
    assert not (here / "m.slim").exists()


def test_a_folder_is_no_data_file(capsys, here):
    (here / "sub").mkdir()
    assert fail(capsys, "train sub m.slim") == "sub: cannot be read: Is a directory"


def test_words_are_no_rows(capsys, here, data):
    data("conll2000")
    assert fail(capsys, "train conll2000 m.slim") == "conll2000: its rows are words, and no kernel takes words"


def test_labels_that_do_not_fit_the_task(capsys, here):
    (here / "a.csv").write_text("x,y\n1,0.5\n2,1.25\n")
    (here / "b.csv").write_text("x,y\n1,yes\n2,no\n")
    said = "a.csv: found the label 0.5, which is not a whole number; to predict numbers give --task regression"
    assert fail(capsys, "train a.csv m.slim --quiet") == said
    found = fail(capsys, "train b.csv m.slim --task regression --quiet")
    assert found == "b.csv: found the label 'yes', regression needs numbers"


# -- predicting ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", "1 1:0.5 3:1\n", "a.txt, line 1: found feature index 3, but the last of 2 features has index 2"),
        ("a.csv", "a,b,c,y\n1,2,3,1\n", "a.csv: found 3 feature columns, 2 are expected"),
        ("a.csv", "a\n1\n", "a.csv: found 0 feature columns, 2 are expected"),
    ],
)
def test_another_number_of_features_than_in_training(capsys, here, name, content, said):
    (here / name).write_text(content)
    assert fail(capsys, f"predict good.slim {name}") == said


def test_another_number_of_features_in_a_benchmark_set(capsys, here, data):
    data("heart")
    assert fail(capsys, "predict good.slim heart") == "heart: found 13 features, the model was trained on 2"


def test_scores_of_a_regression_are_its_predictions(capsys, here):
    said = "numbers.slim: --scores is for classification, this model predicts numbers"
    assert fail(capsys, "predict numbers.slim good.txt --scores") == said


def test_guarantees_that_a_model_does_not_have(capsys, here):
    for name in ("good.slim", "numbers.slim"):
        found = fail(capsys, f"predict {name} good.txt --alpha 0.1")
        assert found.startswith(f"{name}: the model has no sets or intervals: train it with `slimsvm train --calibr")
    said = "--calibration-size is for --task classification and regression only"
    assert fail(capsys, "train good.txt m.slim --task ranking --calibration-size 0.2", code=2).endswith(said)


def test_probabilities_that_a_model_does_not_have(capsys, here):
    found = fail(capsys, "predict good.slim good.txt --probabilities")
    assert found.startswith("good.slim: the model has no probabilities: train it with `slimsvm train --probabilities`")
    said = "numbers.slim: --probabilities is for classification, found SVR"
    assert fail(capsys, "predict numbers.slim good.txt --probabilities") == said
    said = "--probabilities is for --task classification only"
    assert fail(capsys, "train good.txt m.slim --task regression --probabilities", code=2).endswith(said)
    said = "argument --probabilities: not allowed with argument --scores"
    assert fail(capsys, "predict good.slim good.txt --scores --probabilities", code=2).endswith(said)


def test_predictions_that_cannot_be_written(capsys, here):
    found = fail(capsys, "predict good.slim good.txt --quiet --output nowhere/labels.txt")
    assert found == "nowhere/labels.txt: the predictions could not be written: No such file or directory"
    found = fail(capsys, "predict good.slim good.txt --quiet --output /dev/full")
    assert found == "/dev/full: the predictions could not be written: No space left on device"


def test_standard_output_on_a_full_disk(here, monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # so that writing fails as late as it can
    with open("/dev/full", "w") as full:
        argv = [sys.executable, "-m", "slimsvm", "predict", "good.slim", "good.txt", "--quiet"]
        answer = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True)
    assert answer.returncode == 1
    assert answer.stderr == "slimsvm: error: No space left on device\n"


# -- model files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", [0, 3, 10, 20, 50, 70, 300, -200, -1])
def test_a_model_file_with_a_byte_changed(capsys, here, where):
    content = bytearray((here / "good.slim").read_bytes())
    content[where] ^= 0x10
    (here / "bad.slim").write_bytes(content)
    for command in ("info bad.slim", "predict bad.slim good.txt"):
        assert fail(capsys, command).startswith("bad.slim ")


@pytest.mark.parametrize("n_bytes", [0, 7, 30, 400])
def test_a_model_file_cut_short(capsys, here, n_bytes):
    (here / "bad.slim").write_bytes((here / "good.slim").read_bytes()[:n_bytes])
    assert fail(capsys, "info bad.slim").startswith("bad.slim ")


def test_a_file_that_is_no_model(capsys, here):
    assert fail(capsys, "info good.txt") == "good.txt is not a slimsvm model file"


def test_a_model_path_that_cannot_be_written_is_seen_before_training(capsys, here):
    (here / "sub").mkdir()
    said = {
        "sub": "sub: is a folder, a file's name is needed for the model",
        "nowhere/m.slim": "nowhere/m.slim: there is no folder 'nowhere' to write the model to",
        "/dev/null": "/dev/null: is not a regular file, the model cannot replace it",
        "m.slim/": "m.slim/: is a folder, a file's name is needed for the model",
        "m" * 300: f"{'m' * 300}: File name too long",
    }
    for path, sentence in said.items():
        assert fail(capsys, f"train missing.txt {path}") == sentence


def test_a_read_only_folder(capsys, here, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert fail(capsys, "train good.txt m.slim") == "m.slim: the folder '.' is not writable"


def test_a_disk_that_fills_up_while_saving_leaves_the_old_model(capsys, here):
    command = "train good.txt good.slim --gamma 3 --quiet"
    assert main([*command.replace("good.slim", "first.slim").split()]) == 0  # compiled code is on the disk from here on
    capsys.readouterr()
    before = (here / "good.slim").read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        found = fail(capsys, command)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert found == "good.slim: the model could not be saved: File too large"
    assert (here / "good.slim").read_bytes() == before
    assert not [path for path in here.iterdir() if path.name.startswith(".")]
    assert main(command.split()) == 0
    assert (here / "good.slim").read_bytes() == (here / "first.slim").read_bytes()


# -- options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--gamma 0", "argument --gamma: must be a positive number, several with commas between, 'scale', "),
        ("--gamma -1", "found '-1'"),
        ("--gamma nan", "found 'nan'"),
        ("--gamma big", "found 'big'"),
        ("--gamma 1,-2", "found '1,-2'"),
        ("-C 0", "argument -C: must be a positive number or 'validate', found '0'"),
        ("-C -3", "argument -C: must be a positive number or 'validate', found '-3'"),
        ("-C inf", "argument -C: must be a positive number or 'validate', found 'inf'"),
        ("--kernel rbg", f"'rbg' (choose from {', '.join(map(repr, sorted(set(KERNELS) - {'callable'})))})"),
        ("--solver newton", "invalid choice: 'newton' (choose from 'auto', 'exact-cuts', "),
        ("--tol 0", "argument --tol: must be a positive number"),
        ("--tol-relative -1", "argument --tol-relative: must be a positive number"),
        ("--degree 0", "argument --degree: must be an integer >= 1"),
        ("--coef0 nan", "argument --coef0: must be a finite number"),
        ("--epsilon -1 --task regression", "argument --epsilon: must be a number >= 0"),
        ("--epsilon 1", "--epsilon is for --task regression only"),
        ("--class-weight balanced --task regression", "--class-weight is for --task classification only"),
        ("--class-weight heavy", "must be 'balanced' or LABEL:WEIGHT,LABEL:WEIGHT,...; found 'heavy'"),
        ("--class-weight 1:-2", "must be a positive number, found '-2'"),
        ("--max-iter 0", "argument --max-iter: must be an integer >= 1"),
        ("--max-seconds 0", "argument --max-seconds: must be a positive number"),
        ("--memory-limit 0", "argument --memory-limit: must be a positive number"),
        ("--n-jobs 0", "argument --n-jobs: must be an integer other than 0"),
        ("--random-state -1", "argument --random-state: must be an integer from 0 to 2**32 - 1"),
        ("--random-state 4294967296", "argument --random-state: must be an integer from 0 to 2**32 - 1"),
        ("--set step", "argument --set: must be NAME=VALUE, found 'step'"),
        ("--sample-size 10", "sample_size: parameters of a solver need --solver NAME, auto chooses one itself"),
        ("--solver exact-cuts --set size=10", "exact-cuts has no parameter 'size'; it has keep=best, max_idle=20"),
        ("--solver uniform-cuts --tol-relative 1", "uniform-cuts has no parameter 'tol_relative'; it has final_"),
        ("--solver exact-cuts --max-basis 10", "exact-cuts has no parameter 'max_basis'"),
        ("--max-basis 0", "argument --max-basis: must be an integer >= 1"),
        ("--solver violated-cuts --set sample_size=many", "sample_size must be a number, found 'many'"),
        ("--solver uniform-cuts --set final_objective=1", "final_objective must be true or false, found 1"),
        ("--sample 10", "unrecognized arguments: --sample 10"),
    ],
)  # fmt: skip
def test_wrong_options_are_usage_errors(capsys, here, options, said):
    """Also that nothing is read before: the data file does not exist."""
    err = fail(capsys, f"train missing.txt m.slim {options}", code=2)
    # Whether choices are listed in quotes depends on Python's version.
    assert said.replace("'", "") in " ".join(err.replace("'", "").split())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--solver violated-cuts --set sample_size=0", "sample_size must be an integer >= 1, found 0"),
        ("--solver violated-cuts --set sample_size=2.5", "sample_size must be an integer >= 1, found 2.5"),
        ("--solver exact-cuts --set step=half", "step must be 'line-search' or 'full', found 'half'"),
        ("--solver exact-cuts --set overshoot=2", "overshoot must be between 0 and 1, found 2"),
        ("--solver exact-cuts --intercept free", "trains with intercept='regularized' or 'none', found 'free'"),
        ("--gamma 1,2,3", "gamma has 3 values, the rows have 2 features"),
        ("--kernel precomputed", "kernel='precomputed' needs a square matrix to fit, found shape (200, 2)"),
        ("--class-weight 5:2", "The classes, [-1, 1], are not in class_weight"),
    ],
)  # fmt: skip
def test_values_that_solver_or_data_refuse(capsys, here, options, said):
    assert said in fail(capsys, f"train good.txt m.slim --quiet {options}")
    assert not (here / "m.slim").exists()


@pytest.mark.parametrize("argv", ["", "trian good.txt m.slim", "train", "predict good.slim", "info"])
def test_wrong_usage(capsys, here, argv):
    said = fail(capsys, argv, code=2)
    assert re.search("say what to do|invalid choice|are required", said)
    assert len(said.splitlines()) <= 2  # how the command is called in one line, and what is wrong


def test_the_known_commands_are_listed(capsys):
    assert all(name in fail(capsys, "trian", code=2) for name in COMMANDS)


# -- what nobody foresaw ---------------------------------------------------------------------------------------------


def test_a_defect_is_called_one(capsys, here, monkeypatch):
    monkeypatch.setattr("slimsvm.cli.info.describe", lambda estimator, path: {}["kernel"])
    import slimsvm.cli.info  # noqa: F401

    found = fail(capsys, "info good.slim")
    assert found.startswith("unexpected KeyError: 'kernel' (a defect of slimsvm: with SLIMSVM_TRACEBACK=1 ")
    monkeypatch.setenv("SLIMSVM_TRACEBACK", "1")
    with pytest.raises(KeyError):
        main(["info", "good.slim"])


def test_a_package_that_is_not_installed_is_no_defect(capsys, here, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert fail(capsys, "export good.slim --to onnx").endswith("by the package onnx: pip install 'slimsvm[onnx]'")


def test_memory_that_runs_out(capsys, here, monkeypatch):
    def read(*args, **kwargs):
        raise MemoryError("Unable to allocate 9 EiB")

    monkeypatch.setattr("slimsvm.cli.data.read_table", read)
    assert fail(capsys, "train good.txt m.slim") == "not enough memory: Unable to allocate 9 EiB"


def test_an_interrupt_before_there_is_a_model(capsys, here, monkeypatch):
    def read(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("slimsvm.cli.data.read_table", read)
    assert fail(capsys, "train good.txt m.slim") == "interrupted"
    assert not (here / "m.slim").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no sh")
def test_standard_output_that_is_closed(here):
    command = ["sh", "-c", '"$0" -m slimsvm predict good.slim good.txt --quiet >&-', sys.executable]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert (answer.returncode, answer.stderr) == (1, "slimsvm: error: standard output is closed\n")


def test_the_program_itself_fails_in_one_line(here):
    argv = [sys.executable, "-m", "slimsvm", "train", "good.txt", "nowhere/m.slim"]
    answer = subprocess.run(argv, capture_output=True, text=True)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr == "slimsvm: error: nowhere/m.slim: there is no folder 'nowhere' to write the model to\n"
    argv = [sys.executable, "-m", "slimsvm", "train", "good.txt", "m.slim", "--quiet", "--json"]
    answer = subprocess.run(argv, capture_output=True, text=True)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert json.loads(answer.stdout)["status"] == "converged"
    assert slimsvm.load(here / "m.slim").n_features_in_ == 2


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"max_basis": "many"}, "max_basis must be a positive integer, None or 'auto'; found 'many'"),
        ({"max_basis": 0}, "max_basis must be a positive integer, None or 'auto'; found 0"),
        ({"max_basis": 2.5}, "max_basis must be a positive integer, None or 'auto'; found 2.5"),
        ({"max_basis": True}, "max_basis must be a positive integer, None or 'auto'; found True"),
        (
            {"gamma": "big"},
            "gamma must be one of 'scale', 'auto', 'learn', 'validate' or a positive number or an array with one",
        ),
        ({"C": "many"}, "C must be a positive number or 'validate', found 'many'"),
        ({"precision": "half"}, "precision must be one of 'auto', 'float32', 'float64'; found 'half'"),
    ],
)
def test_messages_say_all_that_is_accepted(params, said):
    X = np.arange(8.0).reshape(-1, 1)
    for estimator in (SVC(), SVR()):
        with pytest.raises(ValueError, match=re.escape(said)):
            estimator.set_params(**params).fit(X, [0, 1] * 4)
    if "max_basis" in params:
        with pytest.raises(ValueError, match=r"max_basis must be an integer >= 2, None or 'auto'; found "):
            CrossTrainedSVC(**params).fit(X, [0, 1] * 4)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--max-basis many", "--max-basis: must be an integer >= 1 or 'auto', found 'many'"),
        ("-C many", "-C: must be a positive number or 'validate', found 'many'"),
        ("--tol-relative many", "--tol-relative: must be a positive number or 'none', found 'many'"),
    ],
)
def test_options_say_all_that_is_accepted(capsys, here, options, said):
    assert said in " ".join(fail(capsys, f"train missing.txt m.slim {options}", code=2).split())
