"""Whatever writes a file writes all of it or nothing: an earlier file is there after every failure."""

import os
import signal
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

import slimsvm
from slimsvm import SVC, Checkpoint
from slimsvm.cli import main
from slimsvm.datasets import has_queries, read_data

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits, modes and links are of other kinds there")

EARLIER = b"EARLIER"
WRITERS = {
    "m.slim": "model.save('m.slim')",
    "pipeline.slim": "slimsvm.save(pipeline, 'pipeline.slim')",
    "m.json": "model.to_json('m.json')",
    "pipeline.json": "slimsvm.export(pipeline, 'pipeline.json', to='json')",
    "single.h": "model.to_c('single.h', dtype='float32')",
    "double.h": "model.to_c('double.h', dtype='float64')",
    "fixed.h": "model.to_c('fixed.h', dtype='int16')",
    "m.onnx": "model.to_onnx('m.onnx')",
    "m.mjs": "model.to_wasm('m.mjs')",
    "checkpoint.slim": "small.set_callbacks(slimsvm.Checkpoint('checkpoint.slim')).fit(X, y)",
    "exported.json": "command('export', 'other.slim', '--to', 'json', '--output', 'exported.json')",
    "exported.h": "command('export', 'other.slim', '--to', 'c', '--output', 'exported.h')",
    "trained.slim": "command('train', 'rows.npz', 'trained.slim', '--C', '10', '--quiet')",
    "lines.txt": "command('predict', 'other.slim', 'many.npz', '--output', 'lines.txt', '--scores', '--quiet')",
}
BEGINNING = """
import resource, signal, sys
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
import slimsvm
from slimsvm.cli import main

def command(*words):
    if main(list(words)):
        raise OSError

X = np.random.default_rng(0).normal(size=(300, 20))
y = (X[:, 0] > 0) * 1
model = slimsvm.SVC().fit(X, y)
pipeline = make_pipeline(StandardScaler(), slimsvm.SVC()).fit(X, y)
small = slimsvm.SVC(solver=slimsvm.BSGD(90, epochs=1), random_state=0)
model.save("other.slim")
np.savez("rows.npz", X=X, y=y)
np.savez("many.npz", X=np.resize(X, (2000, 20)), y=np.resize(y, 2000))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.dont_write_bytecode = True  # Python would leave the package's compiled modules cut off at the limit
resource.setrlimit(resource.RLIMIT_FSIZE, (9_000, 9_000))
"""
TRIED = """
try:
    {call}
    print("no error:", {name!r})
except (OSError, ValueError):
    pass
"""


def test_a_full_disk_leaves_every_earlier_file(tmp_path):
    pytest.importorskip("onnx")
    for name in WRITERS:
        (tmp_path / name).write_bytes(EARLIER)
    script = BEGINNING + "".join(TRIED.format(name=name, call=call) for name, call in WRITERS.items())
    run = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout == ""
    assert [name for name in WRITERS if (tmp_path / name).read_bytes() != EARLIER] == []
    assert sorted(os.listdir(tmp_path)) == sorted([*WRITERS, "other.slim", "rows.npz", "many.npz"])


@pytest.fixture(scope="module")
def model():
    X = np.random.default_rng(0).normal(size=(30, 3))
    return SVC().fit(X, X[:, 0] > 0)


FORMS = ["save", "to_json", "to_c", "to_onnx", "to_wasm"]


def write(model, form, path):
    if form == "to_onnx":
        pytest.importorskip("onnx")
    getattr(model, form)(path)


@pytest.mark.turns("mode")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", [0o600, 0o664, 0o755])
def test_the_earlier_mode_is_kept(form, mode, model, tmp_path):
    path = tmp_path / "model.h"
    path.write_bytes(EARLIER)
    path.chmod(mode)
    write(model, form, path)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_bytes() != EARLIER


def test_a_new_file_has_the_mode_that_the_umask_leaves(model, tmp_path):
    before = os.umask(0o027)
    try:
        model.to_json(tmp_path / "model.json")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "model.json").stat().st_mode) == 0o640


@pytest.mark.parametrize("form", FORMS)
def test_a_link_stays_a_link(form, model, tmp_path):
    (tmp_path / "there").mkdir()
    path, link = tmp_path / "there" / "v2.h", tmp_path / "latest.h"
    path.write_bytes(EARLIER)
    link.symlink_to(path)
    write(model, form, link)
    assert link.is_symlink()
    assert path.read_bytes() != EARLIER
    assert os.listdir(tmp_path / "there") == ["v2.h"]


def test_a_link_to_nothing_makes_the_file_it_names(model, tmp_path):
    (tmp_path / "latest.json").symlink_to(tmp_path / "v2.json")
    model.to_json(tmp_path / "latest.json")
    assert (tmp_path / "latest.json").is_symlink()
    assert (tmp_path / "v2.json").read_text().startswith("{")


@pytest.mark.parametrize("form", FORMS)
def test_a_folders_name_is_none_of_a_file(form, model, tmp_path):
    """A name that ends in "/" became a file where there was no such folder."""
    with pytest.raises(IsADirectoryError, match="new/"):
        write(model, form, f"{tmp_path}/new/")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("form", FORMS)
def test_links_in_a_circle_are_an_error(form, model, tmp_path):
    (tmp_path / "a.h").symlink_to(tmp_path / "b.h")
    (tmp_path / "b.h").symlink_to(tmp_path / "a.h")
    with pytest.raises(OSError, match=r"a\.h"):
        write(model, form, tmp_path / "a.h")
    assert (tmp_path / "a.h").is_symlink()


@pytest.mark.parametrize("form", FORMS)
def test_a_pipe_is_written_to_and_stays_one(form, model, tmp_path):
    path, found = tmp_path / "pipe.h", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()))
    reader.start()
    write(model, form, path)
    reader.join()
    assert len(found[0]) > 100
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_standard_output_is_written_to(model, tmp_path):
    model.save(tmp_path / "m.slim")
    command = [sys.executable, "-m", "slimsvm", "export", "m.slim", "--to", "json", "--output", "/dev/stdout"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout.startswith("{")
    assert os.listdir(tmp_path) == ["m.slim"]


def test_a_number_is_no_path(tmp_path):
    """It was the file that has this number, which was read and closed: standard output for True."""
    with open(tmp_path / "other.txt", "w+") as file:
        for read in (slimsvm.load, slimsvm.load_predictor, read_data, has_queries):
            with pytest.raises(TypeError, match="expected str, bytes or"):
                read(file.fileno())
        file.write("still open")


@pytest.mark.parametrize("form", FORMS)
def test_a_path_may_be_bytes(form, model, tmp_path):
    write(model, form, os.fsencode(tmp_path / "model.h"))
    assert os.listdir(tmp_path) == ["model.h"]


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="only Linux has links to open files")
def test_what_standard_output_is_appended_to_stays(model, tmp_path):
    """It was replaced by a file that has the output alone."""
    model.save(tmp_path / "m.slim")
    (tmp_path / "all.txt").write_bytes(EARLIER)
    command = [sys.executable, "-m", "slimsvm", "export", "m.slim", "--to", "json", "--output", "/dev/stdout"]
    with open(tmp_path / "all.txt", "ab") as file:
        subprocess.run(command, cwd=tmp_path, stdout=file, check=True)
    assert (tmp_path / "all.txt").read_bytes().startswith(EARLIER + b"{")


@pytest.mark.parametrize("form", FORMS)
def test_a_long_name_is_a_name(form, model, tmp_path):
    path = tmp_path / ("ü" * 125 + ".h")
    if form == "to_c":
        model.to_c(path, name="model")
    else:
        write(model, form, path)
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("form", FORMS)
def test_a_folder_that_is_not_there_is_named(form, model, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere.model\.h"):
        write(model, form, tmp_path / "nowhere" / "model.h")


def test_predictions_that_cannot_be_written_leave_the_earlier_ones(model, tmp_path, capsys):
    model.save(tmp_path / "m.slim")
    np.savez(tmp_path / "rows.npz", X=np.eye(3), y=np.array([True, False, True]))
    (tmp_path / "folder").mkdir()
    command = ["predict", str(tmp_path / "m.slim"), str(tmp_path / "rows.npz"), "--output", str(tmp_path / "folder")]
    assert main(command) == 1
    assert "the predictions could not be written" in capsys.readouterr().err


KILLED = """
import os, signal, sys
import numpy as np
import slimsvm
X = np.random.default_rng(0).normal(size=(30, 3))
model = slimsvm.SVC().fit(X, X[:, 0] > 0)
os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
model.to_json(sys.argv[1])
"""


def test_a_killed_process_leaves_a_file_that_says_what_it_is(tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(EARLIER)
    run = subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    assert run.returncode == -signal.SIGKILL
    assert path.read_bytes() == EARLIER
    (left,) = set(os.listdir(tmp_path)) - {path.name}
    assert left.startswith(".model.json.")
    assert left.endswith(".partial")


def test_a_checkpoint_that_fails_leaves_the_earlier_one(tmp_path, monkeypatch):
    path = tmp_path / "c.slim"
    X = np.random.default_rng(0).normal(size=(60, 3))
    fit = SVC(solver=slimsvm.BSGD(5, epochs=2), random_state=0).set_callbacks(Checkpoint(path)).fit
    fit(X, X[:, 0] > 0)
    before = path.read_bytes()

    def fail(*names):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match=r"No space left on device: '.*c\.slim'"):
        fit(X, X[:, 0] < 0)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["c.slim"]
