"""Model files with a right checksum that say what no writer says are a `ModelFileError`, or predict."""

import contextlib
import copy
import hashlib
import json
import random
import struct
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import slimsvm
from slimsvm import SVC, SVR, ModelFileError, load, load_predictor
from slimsvm.cli import main
from slimsvm.modelfile import read_model, write_model

FOLDER = Path(__file__).parents[1] / "fixtures"
FILES = sorted([*FOLDER.glob("models/*.slim"), *FOLDER.glob("pipelines/*.slim")])
VALUES = [
    None, True, 3, -1, 0, 10**30, 2.5, -1e300, "", "x", "predict", "__class__", "rbf", "SVC", [], [1], ["a", None], {},
    {"a": 1}, {"array": [1, 2]}, {"array": "x"}, {"solver": "Exact", "params": {}}, {"solver": 3},
    {"task": "binary", "params": {}}, {"pairs": [[1]]}, {"unsaved": True}, [[1, 2], [3]], 2**40, -(2**63), "nan",
]  # fmt: skip
NAMES = "predict", "classes_", "model_", "x", "_state", "n_features_in_", "__dict__", "decision_function", "n_basis_"
DTYPES = "<f8", "<f4", "<f2", "|b1", "<U1", "<U3", "<i8", "<u8", "|u1", "|i1"
SHAPES = [[], [0], [1], [2**40, 0], [0, 2**40], [1, 1], [-1], [3, 2], [2**62, 4], [1] * 40, "x", None, [True], [0, 0]]
OFFSETS = 0, 64, -1, 2**62, "0", 1.5, True


def index_of(content):
    return json.loads(content[60 : 60 + struct.unpack_from("<QQ", content, 44)[1]])


def sealed(content, index):
    """The file with another index, of the old one's length, and its checksum; None if it is longer."""
    length = struct.unpack_from("<QQ", content, 44)[1]
    text = json.dumps(index, separators=(",", ":")).encode()
    if len(text) > length:
        return None
    out = bytearray(content[:60] + text.ljust(length) + content[60 + length :])
    out[12:44] = hashlib.sha256(bytes(out[44:])).digest()
    return bytes(out)


def places(value, path=()):
    """Where in nested objects and lists there is something."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def mutate(index, rng):
    if rng.random() < 0.35:
        entry, other = rng.choice(index["arrays"]), rng.choice(index["arrays"])
        change = rng.choice([
            {"dtype": rng.choice(DTYPES)}, {"shape": rng.choice(SHAPES)}, {"offset": rng.choice(OFFSETS)},
            {"name": rng.choice(["x", 3, None, [1], other["name"], "classes", "basis", "scaling_offset"])},
            {key: other[key] for key in ("dtype", "shape", "offset")}, {"shape": entry["shape"][::-1]},
        ])  # fmt: skip
        entry.update(copy.deepcopy(change))
        return
    *path, last = rng.choice(list(places(index["header"])))
    value = index["header"]
    for key in path:
        value = value[key]
    if isinstance(value, dict) and rng.random() < 0.3:
        taken = value.pop(last)
        if rng.random() < 0.4:
            value[rng.choice(NAMES)] = taken
    else:
        value[last] = copy.deepcopy(rng.choice(VALUES))


def check(read, path):
    """A model, or a ModelFileError; and of a model predictions, or a ValueError."""
    try:
        model = read(path)
    except ModelFileError:
        return
    d = getattr(model, "n_features_in_", 0)
    if 0 < d < 10**4:
        rows, is_sequence = np.zeros((3, d)), "equence" in type(model).__name__
        with contextlib.suppress(ValueError):
            model.predict([rows] if is_sequence else rows)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 21))])
def test_damaged_files_are_model_file_errors(seed, tmp_path, capsys):
    """Some files; with all seeds three thousand."""
    rng, path, tried = random.Random(seed), tmp_path / "m.slim", 0
    contents = [path.read_bytes() for path in FILES]
    while tried < 150:
        content = rng.choice(contents)
        index = index_of(content)
        mutate(index, rng)
        if (damaged := sealed(content, index)) is None:
            continue
        tried += 1
        path.write_bytes(damaged)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for read in (load, load_predictor):
                check(read, path)
            if not tried % 25:
                main(["info", str(path)])
                main(["export", str(path), "--to", "json", "--output", str(tmp_path / "m.json")])
    assert "defect of slimsvm" not in capsys.readouterr().err


def changed(path, change):
    """The file, after a function changed the header and the arrays' entries."""
    content = path.read_bytes()
    index = index_of(content)
    change(index["header"], {entry["name"]: entry for entry in index["arrays"]})
    path.write_bytes(sealed(content, index))


X = np.random.default_rng(0).normal(size=(40, 3))
DAMAGE = {
    "no parameters": lambda h, a: h.update(params=3),
    "no attributes": lambda h, a: h.update(fitted=[]),
    "vectors that are texts": lambda h, a: a["basis"].update(dtype="<U1"),
    "coefficients that are truth values": lambda h, a: a["coef"].update(dtype="|b1"),
    "an intercept that is whole": lambda h, a: a["intercept"].update(dtype="<i8"),
    "no classes": lambda h, a: a["classes"].update(name="x"),
    "classes without end": lambda h, a: a["classes"].update(shape=[2**40, 0]),
    "a class": lambda h, a: a["classes"].update(shape=[1]),
    "a method's name": lambda h, a: h["fitted"].update(predict={}),
    "a hidden name": lambda h, a: h["fitted"].update(__class__=3),
    "more features than vectors have": lambda h, a: h["fitted"].update(n_features_in_=4),
    "features that are none": lambda h, a: h["fitted"].update(n_features_in_=True),
    "a status that is a number": lambda h, a: h["fitted"].update(status_=3),
    "an objective that is a text": lambda h, a: h["fitted"].update(objective_="x"),
    "a width that is a text": lambda h, a: h["kernel"].update(gamma="x"),
    "two arrays of one name": lambda h, a: a["plain"].update(name="coef"),
    "an objective without its name": lambda h, a: h["fitted"].update(x_=h["fitted"].pop("objective_")),
    "a number of steps that is a text": lambda h, a: h["fitted"].update(n_iter_="x"),
    "no width": lambda h, a: h["kernel"].pop("gamma"),
    "names of other features": lambda h, a: h["fitted"].update(feature_names_in_=["a"]),
    "no estimator": lambda h, a: h.update(estimator=["SVC"]),
    "a parameter that there is not": lambda h, a: h["params"].update(predict=1),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_each_damage_is_seen(name, tmp_path):
    path = tmp_path / "m.slim"
    SVC().fit(X, X[:, 0] > 0).save(path)
    changed(path, DAMAGE[name])
    with pytest.raises(ModelFileError, match=r"m\.slim"):
        load(path)
    check(load_predictor, path)
    assert main(["info", str(path)]) == 1


QUANTILES = SVR(loss="quantile", quantile=[0.1, 0.9], max_basis=4, calibration_size=0.3)
WRONG = {
    "quantile": ["x", None, True, ["x"], {"array": ["x"]}, {"solver": "Exact", "params": {}}, [0.1, 0.5, 0.9]],
    "epsilon": ["x", None, [1]], "loss": [3, ["x"], {"array": [1, 2]}], "memory_limit": ["x", None, [1, 2]],
    "verbose": ["x", None], "n_jobs": ["x", True], "calibration_size": [{"array": [1]}], "gamma": [None, ["x"]],
    "solver": [None, 3, {"task": "binary", "params": {}}], "max_seconds": ["x"], "kernel": [None, 3],
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_parameters_of_a_wrong_type_are_seen(name, tmp_path):
    """They were found as late as `predict_interval`, `certificate` or an export needed them."""
    path = tmp_path / "m.slim"
    clone(QUANTILES).fit(X, X[:, 0]).save(path)
    header, arrays = read_model(path)
    for value in WRONG[name]:
        write_model(path, header | {"params": header["params"] | {name: value}}, arrays)
        for read in (load, load_predictor):
            with pytest.raises(ModelFileError, match=r"m\.slim"):
                read(path)


def test_parameters_of_tables_are_seen(tmp_path):
    path = tmp_path / "m.slim"
    slimsvm.TableRegressor(preset="small").fit(X, X[:, 0]).save(path)
    header, arrays = read_model(path)
    for name, value in [("time_limit", "x"), ("n_jobs", True), ("verbose", [1])]:
        write_model(path, header | {"params": header["params"] | {name: value}}, arrays, version=2)
        with pytest.raises(ModelFileError, match=name):
            load(path)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["coef", "intercept", "basis", "kernel_gamma", "plain"])
def test_numbers_that_are_not_finite_are_seen(name, value, tmp_path):
    """Every row would have the score NaN, and one class."""
    path = tmp_path / "m.slim"
    model = slimsvm.OrdinalSVC() if name == "plain" else SVC(gamma=[0.5, 1.0, 2.0])
    model.fit(X, np.digitize(X[:, 0], [-0.5, 0.5]) if name == "plain" else X[:, 0] > 0).save(path)
    header, arrays = read_model(path)
    arrays[name] = arrays[name].copy()
    arrays[name].flat[-1] = value
    write_model(path, header, arrays)
    for read in (load, load_predictor):
        with pytest.raises(ModelFileError, match=rf"m\.slim.*the array {name} must hold finite numbers"):
            read(path)


@pytest.mark.turns("name")
@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(clip=True)], ids=["standard", "minmax"])
@pytest.mark.parametrize(
    ("name", "value"),
    [("scale_", 2.0), ("scale_", 0.0), ("scale_", -1.0), ("scale_", np.nan), ("factor", -1.0), ("factor", 0.0),
     ("factor", np.nan), ("factor", 7.0), ("offset", 3.0), ("offset", np.inf)],
)  # fmt: skip
def test_scalers_that_contradict_each_other_are_seen(scaler, name, value, tmp_path):
    path = tmp_path / "m.slim"
    slimsvm.save(make_pipeline(scaler, SVC()).fit(X, X[:, 0] > 0), path)
    content = bytearray(path.read_bytes())
    entry = next(
        entry for entry in index_of(content)["arrays"] if entry["name"] in (f"scaling_{name}", f"scaling_0_{name}")
    )
    struct.pack_into("<d", content, entry["offset"], value)
    content[12:44] = hashlib.sha256(bytes(content[44:])).digest()
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"m\.slim"):
        load(path)
    if (name in ("factor", "offset") and not value > 0) or (not np.isfinite(value) and name != "scale_"):
        with pytest.raises(ModelFileError, match="factors above 0"):
            load_predictor(path)


HOSTILE = "\x1b[31mred\x07", "\x9b2Jgone", "plain"


def test_labels_do_not_reach_the_terminal_as_commands(tmp_path, capsys):
    labels = np.array(HOSTILE)[np.arange(40) % 3]
    SVC().fit(X, labels).save(tmp_path / "m.slim")
    np.savez(tmp_path / "d.npz", X=X, y=labels)
    model, data = str(tmp_path / "m.slim"), str(tmp_path / "d.npz")
    commands = [
        ["info", model],
        ["info", model, "--json"],
        ["predict", model, data],
        ["predict", model, data, "--json"],
        ["train", data, str(tmp_path / "n.slim"), "--test", data],
        ["predict", str(tmp_path / "\x1b[2J.slim"), data],
    ]
    for command in commands:
        main(command)
        said = capsys.readouterr()
        assert not set("\x1b\x07\x9b") & set(said.out + said.err), command
        assert len(said.out + said.err) > 10
