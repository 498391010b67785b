"""What docs/tutorials/extending.md says: a kernel is shipped by its class, an export target is a module and a line."""

import shutil
import sys
import types
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from deploy.test_c_header import run_header
from fixtures.make_models import MODELS
from slimsvm import deploy
from slimsvm.cli import main
from slimsvm.deploy.c_header import write_c
from slimsvm.deploy.json_model import json_parts
from slimsvm.deploy.onnx_graph import write_onnx
from slimsvm.deploy.plain_model import PlainModel, read_plain_model
from slimsvm.kernels.inner_product import InnerProduct
from slimsvm.kernels.kernel import Expression
from slimsvm.kernels.shift_invariant import ShiftInvariant
from slimsvm.shapley import explain_scores


@dataclass(frozen=True, eq=False, repr=False)
class InverseMultiquadric(ShiftInvariant):
    name: ClassVar[str] = "inverse_multiquadric"
    unit: ClassVar[float] = 2.0
    map: ClassVar[str] = "NONE"  # of the core, which nothing here asks for

    def formula(self, z, f):
        return 1.0 / f.sqrt(1.0 - z)


@dataclass(frozen=True, eq=False, repr=False)
class GeneralizedLaplacian(InverseMultiquadric):
    form: ClassVar[str] = "absolute"
    unit: ClassVar[float] = 0.5

    def formula(self, z, f):
        return f.exp(z) - z / 9.0 / (1.0 - z) * f.tanh(-z)


@dataclass(frozen=True)
class Shifted(InnerProduct):
    gamma: float = 0.5
    coef0: float = 1.0
    name: ClassVar[str] = "shifted"
    map: ClassVar[str] = "NONE"

    def formula(self, z, f):
        return f.power(z, 2) + 3.0 * z


RNG = np.random.default_rng(0)
X, VECTORS, COEF = RNG.normal(size=(30, 3)), RNG.normal(size=(8, 3)), RNG.normal(size=(8, 1))
GAMMA = np.array([0.2, 0.5, 1.0])
KERNELS = [
    (InverseMultiquadric(GAMMA), lambda x, z: 1 / np.sqrt(1 + np.sum(GAMMA * (x - z) ** 2))),
    (
        GeneralizedLaplacian(0.8),
        lambda x, z: (lambda s: np.exp(-s) + s / 9 / (1 + s) * np.tanh(s))(0.4 * np.abs(x - z).sum()),
    ),
    (Shifted(), lambda x, z: (0.5 * x @ z + 1) ** 2 + 3 * (0.5 * x @ z + 1)),
]


@pytest.mark.parametrize(("kernel", "truth"), KERNELS, ids=lambda part: getattr(part, "name", ""))
def test_every_form_is_made_of_the_formula(kernel, truth, tmp_path):
    rows = X.astype(np.float32).astype(np.float64)
    model = PlainModel("regression", kernel, 3, VECTORS, COEF, np.array([0.25]), np.zeros(0), None, {})
    expected = np.array([[truth(x, z) for z in VECTORS] for x in rows]) @ COEF[:, 0] + 0.25
    largest = np.abs(expected).max()
    np.testing.assert_allclose(model.scores(rows)[:, 0], expected, rtol=0, atol=1e-12 * largest)
    found = explain_scores(model, rows[:3], rows[3:5], 4, np.random.RandomState(0), None)
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), expected[:3], atol=1e-9 * largest)
    assert json_parts(model)["kernel"]["name"] == kernel.name
    if shutil.which("cc"):
        for dtype, tolerance in (("float32", 5e-6), ("float64", 1e-11)):
            write_c(model, tmp_path / "model.h", dtype=dtype)
            lines = run_header(tmp_path, rows, "numbers", dtype == "float64")
            np.testing.assert_allclose([float(line[0]) for line in lines], expected, rtol=0, atol=tolerance * largest)
    with pytest.raises(ValueError, match=f"found {kernel.name}: take float32"):
        write_c(model, tmp_path / "model.h", dtype="int16")
    onnxruntime = pytest.importorskip("onnxruntime")
    write_onnx(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    given = rows.astype(np.float32 if session.get_inputs()[0].type == "tensor(float)" else np.float64)
    np.testing.assert_allclose(session.run(None, {"X": given})[0], expected, rtol=0, atol=5e-6 * largest)


class Formula(Expression):
    """A number in the notation of mathematics."""

    def __init__(self, text):
        self.text = text

    def joined(self, sign, left, right):
        return Formula(f"({' '.join(getattr(each, 'text', str(each)) for each in (left, sign, right))})")

    def __neg__(self):
        return Formula(f"-{self.text}")

    def exp(self, z):
        return Formula(f"exp({z.text})")


def write_formula(model: PlainModel, path) -> str:
    """A form to read: the formula of the kernel."""
    z = Formula("z")
    path.write_text(model.kernel.formula(z, z).text)
    return f"{path}: a formula"


def test_an_export_target_is_a_module_and_a_line(tmp_path, monkeypatch, capsys):
    module = types.ModuleType("slimsvm.deploy.formula_text")
    module.write_formula = write_formula
    monkeypatch.setitem(sys.modules, module.__name__, module)
    target = deploy.Target("formula_text:write_formula", ".txt", "the kernel's formula")
    monkeypatch.setitem(deploy.TARGETS, "formula", target)
    output = tmp_path / "model.txt"
    assert main(["export", str(MODELS / "svc-exact.slim"), "--to", "formula", "--output", str(output)]) == 0
    assert capsys.readouterr().out == f"{output}: a formula\n"
    assert output.read_text() == "exp(z)"


def test_a_kernel_that_nobody_knows_is_named_with_those_that_are_known(monkeypatch):
    monkeypatch.setattr("slimsvm.deploy.plain_model.KERNELS", {"sigmoid": None, "poly": None})
    with pytest.raises(ValueError, match="kernel must be one of sigmoid, poly, found 'rbf'"):
        read_plain_model(MODELS / "svc-exact.slim")
