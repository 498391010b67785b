"""A model is never written onto a file that its rows are read from."""

import os

import numpy as np
import pytest
from scipy.sparse import csr_array

import slimsvm
from slimsvm import SVC, SVR, Blocks, Checkpoint, OneClassSVM
from slimsvm.datasets import read_libsvm_blocks

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)


def memory_map(folder, dtype=np.float64, order="C"):
    np.save(folder / "rows.npy", np.asarray(X, dtype, order=order))
    return np.load(folder / "rows.npy", mmap_mode="r"), folder / "rows.npy"


def slice_of_map(folder):
    rows, path = memory_map(folder)
    return np.asarray(rows)[:], path


def sparse_map(folder):
    sparse = csr_array(X)
    np.save(folder / "data.npy", sparse.data)
    data = np.load(folder / "data.npy", mmap_mode="r")
    return csr_array((data, sparse.indices, sparse.indptr), shape=X.shape), folder / "data.npy"


def blocks_of_maps(folder):
    rows, path = memory_map(folder)
    return Blocks([rows[:20], rows[20:]]), path


def labelled_blocks(folder):
    rows, path = memory_map(folder)
    return Blocks.with_labels([(rows[:20], Y[:20]), (rows[20:], Y[20:])])[0], path


def text(folder):
    lines = (f"{y} " + " ".join(f"{j + 1}:{value}" for j, value in enumerate(row)) for row, y in zip(X.tolist(), Y))
    (folder / "rows.txt").write_text("\n".join(lines) + "\n")
    return read_libsvm_blocks(folder / "rows.txt", dense=True)[0], folder / "rows.txt"


def parquet(folder):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    (folder / "sub").mkdir()
    path = folder / "sub" / "a.parquet"
    parquet.write_table(pyarrow.table({f"f{j}": X[:, j] for j in range(3)}), path)
    return Blocks.from_parquet(folder / "sub"), path


SOURCES = [memory_map, slice_of_map, sparse_map, blocks_of_maps, labelled_blocks, text, parquet]


@pytest.mark.turns("estimator")
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("estimator", [SVC(max_basis=3, max_iter=2), SVR(max_basis=3, max_iter=2)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_neither_models_nor_exports_nor_checkpoints(tmp_path, source, estimator):
    rows, path = source(tmp_path)
    estimator.set_callbacks().fit(rows, Y)
    before = path.read_bytes()
    os.link(path, tmp_path / "hard")
    os.symlink(path, tmp_path / "soft")
    calls = [
        lambda: estimator.save(path),
        lambda: estimator.save(tmp_path / "hard"),
        lambda: slimsvm.save(estimator, os.path.relpath(path)),
        lambda: estimator.to_json(tmp_path / "soft"),
        lambda: slimsvm.export(estimator, path, to="json"),
        lambda: estimator.set_callbacks(Checkpoint(path)).fit(rows, Y),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="that the rows are read from, which would be lost"):
            call()
        assert path.read_bytes() == before
    estimator.set_callbacks().fit(X, Y).save(tmp_path / "hard")


def test_maps_of_other_types_and_other_estimators(tmp_path):
    for dtype, order in ((np.float32, "C"), (np.float64, "F"), (np.int32, "C")):
        rows, path = memory_map(tmp_path, dtype, order)
        for estimator in (SVC(), OneClassSVM()):
            estimator.fit(rows, Y)
            with pytest.raises(ValueError, match="would be lost"):
                estimator.save(path)
            estimator.save(tmp_path / "m.slim")
            slimsvm.load(tmp_path / "m.slim").save(path)
