"""Data frames whose columns are not those of training are refused wherever a model takes rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import slimsvm
from slimsvm import SVC, SVR, OneClassSVM, RankSVM, load_predictor

FRAME = load_wine(as_frame=True).data.iloc[::4, :4]
Y = load_wine().target[::4]
OTHERS = {
    "reversed": FRAME[FRAME.columns[::-1]],
    "two exchanged": FRAME.iloc[:, [0, 2, 1, 3]],
    "one renamed": FRAME.rename(columns={"ash": "dust"}),
}
MODELS = {
    "classes": lambda: SVC(gamma=0.01).fit(FRAME, Y),
    "few vectors": lambda: SVC(gamma=0.01, max_basis=5).fit(FRAME, Y == 1),
    "regression": lambda: SVR(gamma=0.01).fit(FRAME, Y),
    "one class": lambda: OneClassSVM(gamma=0.01).fit(FRAME),
    "ranking": lambda: RankSVM(gamma=0.01).fit(FRAME, Y, groups=np.zeros(len(Y), int)),
    "linear": lambda: SVC(kernel="linear", C=0.01).fit(FRAME, Y),
    "pipeline": lambda: make_pipeline(StandardScaler(), SVC()).fit(FRAME, Y),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_predictor_knows_the_columns(name, tmp_path):
    model, path = MODELS[name](), tmp_path / "m.slim"
    slimsvm.save(model, path)
    predictor = load_predictor(path)
    assert list(predictor.feature_names_in_) == list(FRAME.columns)
    np.testing.assert_allclose(predictor.predict(FRAME), model.predict(FRAME), atol=1e-5)
    np.testing.assert_array_equal(predictor.predict(FRAME.to_numpy()), predictor.predict(FRAME))
    for other in OTHERS.values():
        with pytest.raises(ValueError, match="columns of training in their order"):
            predictor.predict(other)


@pytest.mark.parametrize("other", OTHERS)
def test_headers_and_explanations_know_the_columns(other, tmp_path):
    model = MODELS["few vectors"]()
    with pytest.raises(ValueError, match="rows must have the columns of training"):
        model.to_c(tmp_path / "m.h", rows=OTHERS[other])
    with pytest.raises(ValueError, match="X must have the columns of training"):
        model.explain(OTHERS[other])
    with pytest.raises(ValueError, match="background must have the columns of training"):
        model.explain(FRAME, background=OTHERS[other])


def test_columns_without_names_go_by_place(tmp_path):
    model = SVC(gamma=0.01).fit(FRAME.to_numpy(), Y)
    model.save(tmp_path / "m.slim")
    predictor = load_predictor(tmp_path / "m.slim")
    assert not hasattr(predictor, "feature_names_in_")
    numbered = pd.DataFrame(FRAME.to_numpy())
    np.testing.assert_array_equal(predictor.predict(FRAME), predictor.predict(numbered))
