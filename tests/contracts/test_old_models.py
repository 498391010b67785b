"""Model files that an earlier commit wrote: they load, predict, and go on as they did there."""

import json

import numpy as np
import pytest

from fixtures.make_models import CASES, PREDICTIONS, data_of, learn_chunk, loaded, outputs, resume

CHECKPOINTS = [name for name, case in CASES.items() if case.is_checkpoint]
CHUNKS = [name for name in CASES if name.startswith("chunks-")]
# Of the largest score. Between instruction sets scores differ by up to 2e-8 in float64, going on included. In float32,
# whose kernel values are off by 2e-7 each, by 4e-7, and by 1.2e-6 where large coefficients cancel; there steps on a
# budget add such errors up.
TOLERANCE = 1e-6
LOOSER = {"svc-compact": 1e-5, "checkpoint-bsgd-float32": 1e-5}


@pytest.fixture(scope="module")
def expected():
    return json.loads(PREDICTIONS.read_text(encoding="utf-8"))


def assert_near(scores, then, tolerance):
    then = np.array(then, np.float64)
    assert scores.shape == then.shape
    np.testing.assert_allclose(scores, then, rtol=0, atol=tolerance * np.abs(then).max())


@pytest.mark.parametrize("name", CASES)
def test_an_old_model_predicts(name, expected):
    model, then, data = loaded(name), expected[name], data_of(name)
    scores, labels = outputs(model, data)
    assert_near(scores, then["scores"], LOOSER.get(name, TOLERANCE))
    if labels.dtype.kind == "f" and not hasattr(model, "classes_"):  # a regression's, or a ranking's
        assert_near(labels, then["labels"], TOLERANCE)
    else:
        assert labels.tolist() == then["labels"]
    assert model.n_basis_ == then["n_basis"]
    for found, known in ((model.objective_, then["objective"]), (model.lower_bound_, then["lower_bound"])):
        assert (known is None and (found is None or np.isnan(found))) or found == pytest.approx(known)


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_an_old_checkpoint_goes_on(name, expected):
    model, then, data = loaded(name), expected[name], data_of(name)
    tolerance = LOOSER.get(name, TOLERANCE)
    assert_near(outputs(resume(model, data), data)[0], then["resumed"], tolerance)
    assert_near(outputs(learn_chunk(model, data), data)[0], then["chunk"], tolerance)


@pytest.mark.parametrize("name", CHUNKS)
def test_a_model_of_chunks_holds_no_state(name):
    model, data = loaded(name), data_of(name)
    with pytest.raises(ValueError, match="read from a file: begin with"):
        learn_chunk(model, data)
