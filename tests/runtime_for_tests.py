"""The C runtime through ctypes, as a program in C sees it."""

import ctypes
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

BUILT = Path(__file__).parents[1] / "build" / "runtime"
KINDS = [
    "binary", "classes", "pairs", "labels", "regression", "one class", "ordinal", "ranking", "sequences", "counts",
    "targets", "quantiles",
]  # fmt: skip
FORMS = {np.dtype(np.int32): 1, np.dtype(np.int64): 2}
NAMES = {"linux": "libslimsvm_predict.so", "darwin": "libslimsvm_predict.dylib"}


class Rows(ctypes.Structure):
    """`slimsvm_rows` of slimsvm_predict.h."""

    _fields_ = [
        ("values", ctypes.c_void_p), ("columns", ctypes.c_void_p), ("starts", ctypes.c_void_p),
        ("type", ctypes.c_int32), ("form", ctypes.c_int32), ("n_rows", ctypes.c_int64), ("n_features", ctypes.c_int64),
        ("lengths", ctypes.c_void_p), ("n_sequences", ctypes.c_int64),
    ]  # fmt: skip


def library(path):
    found = ctypes.CDLL(str(path))
    found.slimsvm_load.restype = found.slimsvm_load_memory.restype = ctypes.c_void_p
    found.slimsvm_load_memory.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    found.slimsvm_last_error.restype = found.slimsvm_label_text.restype = ctypes.c_char_p
    found.slimsvm_label_number.restype = ctypes.c_double
    for name in ("features", "vectors", "scores", "predictions", "probabilities", "labels"):
        function = getattr(found, f"slimsvm_n_{name}")
        function.restype, function.argtypes = ctypes.c_int64, [ctypes.c_void_p]
    for name in ("free", "kind"):
        getattr(found, f"slimsvm_{name}").argtypes = [ctypes.c_void_p]
    for name in ("label_text", "label_number"):
        getattr(found, f"slimsvm_{name}").argtypes = [ctypes.c_void_p, ctypes.c_int64]
    for name in ("scores", "predict", "probabilities"):
        getattr(found, f"slimsvm_{name}").argtypes = [
            ctypes.c_void_p, ctypes.POINTER(Rows), ctypes.c_int32, ctypes.c_void_p
        ]  # fmt: skip
    return found


class RefusedError(Exception):
    """What `slimsvm_last_error` said."""


class Model:
    """A model that the runtime has read; `with` frees it."""

    def __init__(self, lib, source):
        self.lib = lib
        if isinstance(source, bytes):
            self.address = lib.slimsvm_load_memory(source, len(source))
        elif isinstance(source, tuple):  # an address and a size
            self.address = lib.slimsvm_load_memory(*source)
        else:
            self.address = lib.slimsvm_load(str(source).encode())
        if not self.address:
            raise RefusedError(lib.slimsvm_last_error().decode(errors="replace"))
        for name in ("features", "vectors", "scores", "predictions", "probabilities", "labels"):
            setattr(self, f"n_{name}", getattr(lib, f"slimsvm_n_{name}")(self.address))
        self.kind = KINDS[lib.slimsvm_kind(self.address)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lib.slimsvm_free(self.address)

    def labels(self):
        texts = [self.lib.slimsvm_label_text(self.address, i) for i in range(self.n_labels)]
        numbers = [self.lib.slimsvm_label_number(self.address, i) for i in range(self.n_labels)]
        return [number if text is None else text.decode() for text, number in zip(texts, numbers, strict=True)]

    def scores(self, X, **options):
        return self._answer("scores", self.n_scores, X, **options)

    def predict(self, X, **options):
        return self._answer("predict", self.n_predictions, X, **options)

    def probabilities(self, X, **options):
        return self._answer("probabilities", self.n_probabilities, X, **options)

    def _answer(self, name, width, X, lengths=None, n_threads=1, sort=True, columns=None):
        kept = []

        def address(array, dtype=None):
            kept.append(np.ascontiguousarray(array, dtype))
            return kept[-1].ctypes.data

        rows = Rows(n_rows=X.shape[0], n_features=X.shape[1])
        if sp.issparse(X):
            X = X.sorted_indices() if sort else X
            rows.form = FORMS[X.indices.dtype]
            rows.columns, rows.starts = (
                address(X.indices if columns is None else columns, X.indices.dtype),
                address(X.indptr, X.indices.dtype),
            )
        values = X.data if sp.issparse(X) else np.asarray(X)
        values = values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)
        rows.type, rows.values = int(values.dtype == np.float64), address(values)
        if lengths is not None:
            rows.lengths, rows.n_sequences = address(lengths, np.int64), len(lengths)
        out = np.full((X.shape[0], width), np.nan)
        if getattr(self.lib, f"slimsvm_{name}")(self.address, ctypes.byref(rows), n_threads, address(out)):
            raise RefusedError(self.lib.slimsvm_last_error().decode())
        return kept[-1]


def built_library():
    """The path of the shared library, or a skip."""
    path = BUILT / "lib" / NAMES.get(sys.platform, "none")
    if not path.exists():
        pytest.skip(f"no {path}: `make runtime` builds it")
    return path
