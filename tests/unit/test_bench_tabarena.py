"""The wrapper for TabArena, with AutoGluon where that is installed."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("autogluon.core")


@pytest.mark.parametrize("problem", ["binary", "multiclass", "regression"])
def test_autogluon_fits_and_loads_the_model(problem, tmp_path):
    from benchmarks.tabarena.slimsvm.model import SlimSVMModel

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.normal(size=150), "kind": pd.Categorical(rng.choice(["a", "b", "c"], 150))})
    X.loc[::9, "size"] = np.nan
    worth = X["size"].fillna(0.0) + (X["kind"] == "a")
    y = {"binary": (worth > 0.3).astype(int), "multiclass": pd.Series(np.digitize(worth, [-0.2, 0.8])),
         "regression": worth}[problem]  # fmt: skip
    model = SlimSVMModel(path=str(tmp_path), name="slimsvm", problem_type=problem)
    model.fit(X=X[:100], y=y[:100], num_cpus=1, num_gpus=0, time_limit=60)
    assert model.score(X[100:], y[100:]) > {"binary": 0.8, "multiclass": 0.8, "regression": -0.5}[problem]
    loaded = SlimSVMModel.load(model.save())
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert model.model.n_jobs == 1
    assert SlimSVMModel._estimate_memory_usage_static(X=X) > 0
