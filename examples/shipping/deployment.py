"""
A model outside of Python
=========================

One pipeline in six forms: a file for the C runtime or for NumPy alone, JSON, a C header
that needs no library (in floating or fixed point), an ONNX graph, and an ES module with
WebAssembly for browsers. All include the scaling and the probabilities.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import slimsvm

n_rows = 1_797  # tests: 400
X, y = (each[:n_rows] for each in load_digits(return_X_y=True))
folder = Path(tempfile.mkdtemp())
forms = {
    "model.slim": lambda model, path: slimsvm.save(model, path),
    "C header": lambda model, path: slimsvm.export(model, path, to="c"),
    "C header, int16": lambda model, path: slimsvm.export(
        model, path, to="c", dtype="int16"
    ),
    "JSON": lambda model, path: slimsvm.export(model, path, to="json"),
    "ONNX": lambda model, path: slimsvm.export(model, path, to="onnx"),
    "WebAssembly": lambda model, path: slimsvm.export(model, path, to="wasm"),
}
suffixes = [".slim", ".h", ".h", ".json", ".onnx", ".mjs"]
models = {
    "SVC()": slimsvm.SVC(C=10, gamma=0.3),
    "SVC(max_basis=50)": slimsvm.SVC(C=10, gamma=0.3, max_basis=50, random_state=0),
}
sizes = {}
for number, (name, clf) in enumerate(models.items()):
    model = make_pipeline(MinMaxScaler(), clf).fit(X[: n_rows // 2], y[: n_rows // 2])
    score = 100 * (1 - model.score(X[n_rows // 2 :], y[n_rows // 2 :]))
    sizes[f"{name}: {clf.n_basis_} vectors, test error {score:.1f} %"] = written = []
    for place, (form, suffix) in enumerate(zip(forms.values(), suffixes, strict=True)):
        path = folder / f"digits_{number}_{place}{suffix}"
        form(model, path)
        written.append(path.stat().st_size / 1000)

figure, ax = plt.subplots(figsize=(9, 4.6), layout="constrained")
for shift, (name, values) in zip((-0.2, 0.2), sizes.items()):
    bars = ax.barh([place + shift for place in range(len(forms))], values, 0.38, label=name)
    ax.bar_label(bars, fmt="%.0f", padding=3)
ax.set_yticks(range(len(forms)), forms)
ax.set(xlabel="kilobytes on disk", xlim=(0, 1.1 * max(map(max, sizes.values()))))
ax.invert_yaxis()
figure.legend(loc="outside upper center", ncols=2)

# %%
# ``slimsvm.load_predictor`` reads the file with NumPy alone, and predicts the same.

predictor = slimsvm.load_predictor(folder / "digits_1_0.slim")
print((predictor.predict(X[n_rows // 2 :]) == model.predict(X[n_rows // 2 :])).all())

# %%
# A C header's beginning:

print("\n".join((folder / "digits_1_1.h").read_text().splitlines()[:12]))
