"""Fits of one estimator one after another: nothing of an earlier fit stays, and one that fails changes nothing."""

import pickle
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import slimsvm
from slimsvm import (
    BSGD,
    SVC,
    SVR,
    Condense,
    CrossTrainedSVC,
    CrossTraining,
    EditedNN,
    GridSearchSVC,
    LearnedAxes,
    MultiEdit,
    NormalRanks,
    OneClassSVM,
    OrdinalSVC,
    RankSVM,
    SequenceSVM,
    StructuredSVM,
    load,
    load_predictor,
)
from slimsvm.tasks import Multiclass, PrecisionAtK

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
N = 40
X = np.random.default_rng(0).normal(size=(N, 3))
TWO, THREE = (X[:, 0] + X[:, 1] > 0).astype(int), np.argmax(X, axis=1)
TARGET, GROUPS = np.sin(X[:, 0]), np.repeat(np.arange(8), 5)
WEIGHTS = np.tile([0.0, 1.0, 2.0, 1.0], 10)
FRAME = pd.DataFrame(X[:, :2], columns=["a", "b"])
SPARSE = sp.csr_array(X * (np.abs(X) > 0.5))


def product(A, B):
    return np.asarray(A) @ np.asarray(B).T


def fit(y, X=X, **given):
    return lambda model: model.fit(X, y, **given)


def chunks(y=None):
    return lambda model: model.partial_fit(X, y).partial_fit(X[::-1], None if y is None else y[::-1])


# Of each estimator kinds of fits: parameters, all others being as by default, and the call.
KINDS = {
    SVC: {
        "exact": ({}, fit(TWO)),
        "pairs": ({}, fit(THREE)),
        "crammer-singer": ({"multi_class": "crammer-singer", "max_iter": 5}, fit(THREE)),
        "small": ({"max_basis": 5, "max_iter": 2}, fit(TWO)),
        "labels": ({"max_iter": 3}, fit((X > 0).astype(int))),
        "sparse": ({}, fit(TWO, SPARSE)),
        "linear": ({"kernel": "linear"}, fit(TWO)),
        "sparse, linear": ({"kernel": "linear"}, fit(THREE, SPARSE)),
        "names": ({}, fit(np.array(["no", "yes"])[TWO], FRAME)),
        "function": ({"kernel": product}, fit(TWO)),
        "precomputed": ({"kernel": "precomputed"}, fit(TWO, X @ X.T)),
        "weights": ({"class_weight": "balanced"}, fit(TWO, sample_weight=WEIGHTS)),
        "f1": ({"loss": "f1", "max_iter": 5}, fit(TWO)),
        "ramp": ({"loss": "ramp"}, fit(TWO)),
        "validate": ({"C": "validate"}, fit(TWO)),
        "bsgd": ({"solver": BSGD(8, epochs=1, finish=False)}, fit(TWO)),
        "chunks": ({"solver": BSGD(8, epochs=1, finish=False)}, chunks(TWO)),
    },
    SVR: {
        "exact": ({}, fit(TARGET)),
        "small": ({"max_basis": 5, "max_iter": 2}, fit(TARGET)),
        "sparse": ({}, fit(TARGET, SPARSE)),
        "linear": ({"kernel": "linear"}, fit(TARGET)),
        "names": ({}, fit(TARGET, FRAME)),
        "precomputed": ({"kernel": "precomputed"}, fit(TARGET, X @ X.T)),
        "chunks": ({"solver": BSGD(8, epochs=1, finish=False)}, chunks(TARGET)),
    },
    OneClassSVM: {
        "exact": ({}, fit(None)),
        "sparse, linear": ({"kernel": "linear"}, fit(None, SPARSE)),
        "names": ({}, fit(None, FRAME)),
        "bsgd": ({"solver": BSGD(8, epochs=1, finish=False)}, fit(None)),
        "chunks": ({"solver": BSGD(8, epochs=1, finish=False)}, chunks()),
    },
    OrdinalSVC: {
        "exact": ({}, fit(THREE)),
        "small": ({"max_basis": 5, "max_iter": 2}, fit(THREE)),
        "names": ({}, fit(TWO, FRAME)),
        "sparse": ({}, fit(THREE, SPARSE)),
    },
    RankSVM: {
        "cuts": ({}, fit(TARGET, groups=GROUPS)),
        "small": ({"max_basis": 5, "max_iter": 2}, fit(TARGET, groups=GROUPS)),
        "names": ({}, fit(TARGET, FRAME, groups=GROUPS)),
        "sparse": ({}, fit(TARGET, SPARSE, groups=GROUPS)),
    },
    StructuredSVM: {
        "cuts": ({"task": Multiclass(3)}, fit(THREE)),
        "small": ({"task": Multiclass(3), "max_basis": 5, "max_iter": 2}, fit(THREE)),
        "sparse": ({"task": Multiclass(3)}, fit(THREE, SPARSE)),
    },
    SequenceSVM: {
        "cuts": ({}, fit(TWO, lengths=[5] * 8)),
        "small": ({"max_basis": 5, "max_iter": 2}, fit(THREE, lengths=[5] * 8)),
        "sparse": ({}, fit(TWO, SPARSE, lengths=[5] * 8)),
    },
    CrossTrainedSVC: {
        "all": ({"max_basis": None, "C": 1.0, "first_C": 1.0}, fit(TWO)),
        "small": ({"C": 1.0, "first_C": 1.0}, fit(TWO)),
        "mean": ({"C": 1.0, "first_C": 1.0, "second_stage": False, "max_basis": None}, fit(TWO)),
        "names": ({"C": 1.0, "first_C": 1.0}, fit(TWO, FRAME)),
    },
    GridSearchSVC: {
        "refit": ({"estimator": SVC(), "param_grid": {"C": [1.0, 10.0]}, "cv": 2}, fit(TWO)),
        "names": ({"estimator": SVC(), "param_grid": {"C": [1.0]}, "cv": 2}, fit(TWO, FRAME)),
        "no refit": ({"estimator": SVC(), "param_grid": {"C": [1.0]}, "cv": 2, "refit": False}, fit(TWO)),
        "two scores": (
            {"estimator": SVC(), "param_grid": {"C": [1.0]}, "cv": 2, "scoring": ["accuracy", "f1"], "refit": False},
            fit(TWO),
        ),
    },
    NormalRanks: {"plain": ({}, fit(None)), "names": ({}, fit(None, FRAME))},
    LearnedAxes: {
        "plain": ({"estimator": SVC()}, fit(TWO)),
        "names": ({"estimator": SVC()}, fit(TWO, FRAME)),
    },
} | {
    editor: {
        "plain": ({}, lambda model: (model.fit_resample(X, TWO), model)[1]),
        "names": ({}, lambda model: (model.fit_resample(FRAME, TWO), model)[1]),
    }
    for editor in (EditedNN, MultiEdit, Condense)
}
KINDS[CrossTraining] = {
    "plain": ({"C": 1.0}, lambda model: (model.fit_resample(X, TWO), model)[1]),
    "names": ({"C": 1.0}, lambda model: (model.fit_resample(FRAME, TWO), model)[1]),
}


def made(cls, kind):
    params, call = KINDS[cls][kind]
    seeded = {"random_state": 0} if "random_state" in cls().get_params(deep=False) else {}
    return seeded | params, call


def attributes(model):
    """Public fitted attributes that can be read, with their types and shapes."""
    names = (name for name in dir(model) if name.endswith("_") and not name.startswith("_") and hasattr(model, name))
    values = {name: getattr(model, name) for name in names}
    return {
        name: (type(value).__name__, np.shape(value) if name != "history_" else None) for name, value in values.items()
    }


def scores(model):
    if hasattr(model, "model_"):
        return np.asarray(model.basis_coef_), np.asarray(model.intercept_)
    return ()


def every_pair(kinds):
    """A walk through the kinds in which each follows each, itself too."""
    for i, kind in enumerate(kinds):
        yield kind
        for other in kinds[i + 1 :]:
            yield kind
            yield other
    yield kinds[0]


def fitted(model, cls, kind):
    params, call = made(cls, kind)
    return call(model.set_params(**cls().get_params(deep=False) | params))


@pytest.mark.filterwarnings("ignore:MultiEdit discarded:UserWarning")
@pytest.mark.parametrize("cls", KINDS)
def test_after_any_fit_an_estimator_is_as_a_new_one(cls):
    new = {kind: fitted(cls(), cls, kind) for kind in KINDS[cls]}
    expected = {kind: attributes(model) for kind, model in new.items()}

    def is_as_new(model, kind, before):
        assert attributes(model) == expected[kind], (before, kind)
        for own, known in zip(scores(model), scores(new[kind]), strict=True):
            np.testing.assert_array_equal(own, known, err_msg=f"{before}, {kind}")

    model, before = cls(), None
    kinds = [kind for kind in KINDS[cls] if kind != "chunks"]
    for kind in every_pair(kinds):
        is_as_new(fitted(model, cls, kind), kind, before)
        before = kind
    for kind in kinds if "chunks" in KINDS[cls] else ():  # which go on from what was before, or are refused
        is_as_new(fitted(fitted(cls(), cls, "chunks"), cls, kind), kind, "chunks")


def test_chunks_after_a_fit_leave_nothing_of_the_fit_alone():
    for cls, y in ((SVC, TWO), (SVR, TARGET)):
        params = {"solver": BSGD(8, epochs=1, finish=False), "random_state": 0}
        expected = set(attributes(cls(**params).partial_fit(X, y)))
        assert set(attributes(cls(**params).fit(X, y).partial_fit(X, y))) == expected


def test_three_fits_and_a_compression_between():
    model = slimsvm.compress(SVC().fit(X, THREE), max_basis=4, random_state=0)
    assert model.compression_.n_basis == 4
    assert attributes(model.fit(X, THREE)) == attributes(SVC().fit(X, THREE))
    stream = SVC(solver="bsgd", max_basis=8, random_state=0).partial_fit(X, TWO)
    small = slimsvm.compress(stream, max_basis=3, random_state=0)
    with pytest.raises(ValueError, match="was trained by another solver"):
        small.partial_fit(X, TWO)
    assert stream.partial_fit(X, TWO).n_basis_ <= 8


class Halfway(Exception):
    pass


def fails_halfway(A, B):
    if fails_halfway.calls == 0:
        raise Halfway
    fails_halfway.calls -= 1
    return product(A, B)


# What makes a fit raise: parameters, rows, targets.
FAILURES = {
    "NaN": ({}, np.full((N, 3), np.nan), TWO),
    "texts": ({}, [["a", "b", "c"]] * N, TWO),
    "other number of rows": ({}, X[:, :2], TWO[:-1]),
    "tol": ({"tol": -1.0}, X[:, :2], TWO),
    "kernel": ({"kernel": "no such"}, X[:, :2], TWO),
    "halfway": ({"kernel": fails_halfway}, X[:, :2], TWO),
}


@pytest.mark.turns("failure")
@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("cls", [SVC, SVR, OneClassSVM, OrdinalSVC, CrossTrainedSVC])
def test_a_fit_that_raises_leaves_the_estimator_as_it_was(cls, failure):
    params, rows, y = FAILURES[failure]
    rows = rows[:0] if cls is OneClassSVM and failure == "other number of rows" else rows
    first = {"C": 1.0, "first_C": 1.0} if cls is CrossTrainedSVC else {}
    model = cls(**first).fit(FRAME.assign(c=X[:, 2]), TWO)
    before, predicted = dict(vars(model)), model.predict(FRAME.assign(c=X[:, 2]))
    fails_halfway.calls = 1
    model.set_params(**params)
    with pytest.raises((ValueError, Halfway)):
        model.fit(rows, y)
    after = dict(vars(model))
    assert set(after) == set(before)
    assert all(after[name] is before[name] for name in before if name not in params)
    np.testing.assert_array_equal(model.predict(FRAME.assign(c=X[:, 2])), predicted)
    unfitted = cls(**first | params)
    with pytest.raises((ValueError, Halfway)):
        unfitted.fit(rows, y)
    assert not [name for name in attributes(unfitted) if name != "multilabel_"]


def test_a_chunk_that_is_refused_leaves_the_stream_as_it_was():
    model = SVC(solver="bsgd", max_basis=8, random_state=0).partial_fit(X, TWO, classes=[0, 1])
    before = dict(vars(model))
    for rows, y in ((X[:, :2], TWO), (X, THREE), (np.full((N, 3), np.inf), TWO)):
        with pytest.raises(ValueError):
            model.partial_fit(rows, y)
        assert all(vars(model)[name] is value for name, value in before.items())


def test_editing_a_fitted_estimators_rows_leaves_the_estimator():
    model = CrossTrainedSVC(C=1.0, first_C=1.0, random_state=0).fit(X, TWO)
    predicted = model.predict(X)
    model.edit(X[:, :2], np.array(["no", "yes"])[TWO])
    np.testing.assert_array_equal(model.predict(X), predicted, strict=True)


COUNTS = np.arange(60.0) % 4
LATER = {
    "poisson": (SVR(loss="poisson", max_basis=5, calibration_size=0.3, random_state=0), {"loss": "squared"}),
    "tube": (SVR(calibration_size=0.3), {"loss": "poisson", "epsilon": "none"}),
    "quantile": (SVR(loss="quantile", calibration_size=0.3), {"quantile": [0.1, 0.9]}),
    "quantiles": (SVR(loss="quantile", quantile=[0.1, 0.9], max_basis=5, calibration_size=0.3), {"quantile": 0.5}),
    "window": (SequenceSVM(max_basis=5, window=1), {"window": 0}),
}


@pytest.mark.parametrize("name", LATER)
def test_parameters_set_after_a_fit_say_nothing_of_its_scores(name, tmp_path):
    """Exponentials of scores were predicted, intervals needed an ε, and files contradicted themselves."""
    (template, later), is_sequence = LATER[name], name == "window"
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 3))
    X, y = ([rows[:30], rows[30:]], [COUNTS[:30], COUNTS[30:]]) if is_sequence else (rows, COUNTS)
    before = clone(template).set_params(random_state=0).fit(X, y)
    after = deepcopy(before).set_params(**later)
    methods = ["decision_function"] if is_sequence else ["predict", "predict_interval"]
    for method in methods:
        np.testing.assert_array_equal(getattr(before, method)(X)[0], getattr(after, method)(X)[0])
    assert is_sequence or before.score(X, y) == after.score(X, y)
    if "epsilon" not in later:
        before.save(tmp_path / "before.slim")
        after.save(tmp_path / "after.slim")
        for path in (tmp_path / "before.slim", tmp_path / "after.slim"):
            for model in (load(path), load_predictor(path), pickle.loads(pickle.dumps(after))):
                np.testing.assert_allclose(model.predict(X)[0], before.predict(X)[0], rtol=1e-9)
    refitted = after.set_params(**before.get_params()).fit(X, y)
    np.testing.assert_array_equal(refitted.predict(X)[0], before.predict(X)[0])


# Values for parameters that are set after a fit; of the others some are for prediction, as the number of threads.
AFTER = {
    "C": 7.0, "kernel": "precomputed", "degree": 9, "gamma": "learn", "coef0": 4.0, "tol": 0.5, "max_iter": 1,
    "nu": 0.9, "epsilon": 3.0, "quantile": [0.1, 0.2], "loss": "no such", "window": 3, "classes": [8, 9],
    "max_basis": 2, "solver": "refine", "intercept": "none", "multi_class": "ovr", "class_weight": {0: 5.0},
    "cost_matrix": [[0]], "precision": "float32", "shrinking": False, "warm_start": True, "memory_limit": 1e-9,
    "second_stage": False, "rejoin": False, "n_values": 3, "power": 0.9, "shrinkage": 0.9, "first_C": 9.0,
}  # fmt: skip
TOLD = ("predict", "decision_function", "predict_proba", "predict_interval", "transform", "score")


def told_by(model, rows, y, extra):
    found = {name: getattr(model, name) for name in TOLD if name != "score" and hasattr(model, name)}
    found = {name: method(rows, **(extra if "lengths" in extra else {})) for name, method in found.items()}
    return found | ({"score": model.score(rows, y, **extra)} if hasattr(model, "score") and y is not None else {})


@pytest.mark.parametrize(
    ("model", "y", "extra"),
    [
        (SVC(loss="logistic", max_iter=5), TWO, {}),
        (SVC(), THREE, {}),
        (SVR(calibration_size=0.3, random_state=0), TARGET, {}),
        (OneClassSVM(), None, {}),
        (OrdinalSVC(), THREE, {}),
        (RankSVM(), TARGET, {"groups": GROUPS}),
        (StructuredSVM(Multiclass(3)), THREE, {}),
        (SequenceSVM(), TWO, {"lengths": [5] * 8}),
        (CrossTrainedSVC(C=1.0, first_C=1.0, random_state=0), TWO, {}),
        (NormalRanks(), None, {}),
        (LearnedAxes(SVC()), TWO, {}),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "get_params") else "",
)
def test_what_a_model_says_is_of_its_fit(model, y, extra):
    before = told_by(model.fit(X, y, **extra), X, y, extra)
    for name in set(AFTER) & set(model.get_params(deep=False)):
        after = told_by(deepcopy(model).set_params(**{name: AFTER[name]}), X, y, extra)
        assert set(after) == set(before), name
        for method, values in before.items():
            np.testing.assert_array_equal(values, after[method], err_msg=f"{name}, {method}")


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared_hinge", "f1", "ramp"])
def test_a_loss_set_after_a_fit_waits_for_the_next(loss, tmp_path):
    """Probabilities came and went, `score` was another measure, and files said the other loss."""
    fitted = SVC(loss=loss, max_iter=20).fit(X, TWO)
    has_odds, score = hasattr(fitted, "predict_proba"), fitted.score(X, TWO)
    for later in ("hinge", "logistic", "f1", "no such", PrecisionAtK(2)):
        fitted.set_params(loss=later).save(tmp_path / "model.slim")
        for model in (fitted, deepcopy(fitted), load(tmp_path / "model.slim")):
            assert (hasattr(model, "predict_proba"), model.score(X, TWO)) == (has_odds, score)
            assert not has_odds or model.predict_proba(X).shape == (N, 2)


def test_a_loss_of_rankings_set_after_a_fit_waits_for_the_next():
    ranking = RankSVM(loss="average_precision", kernel="linear").fit(X[:, 2:], TWO, groups=GROUPS)
    before = ranking.score(X[:, 2:], TWO, groups=GROUPS)
    assert ranking.set_params(loss="swaps").score(X[:, 2:], TWO, groups=GROUPS) == before
    assert ranking.fit(X[:, 2:], TWO, groups=GROUPS).score(X[:, 2:], TWO, groups=GROUPS) != before


def test_what_is_not_of_a_fit_stays():
    ranks = NormalRanks().set_output(transform="pandas").fit(FRAME).fit(X)
    assert list(ranks.transform(X).columns) == ["x0", "x1", "x2"]
    told = []

    class Watcher:
        def setup(self, estimator, context):
            told.append("setup")

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            pass

    model = SVC().set_callbacks(Watcher()).fit(X, TWO).fit(X, THREE)
    assert told == ["setup", "setup"]
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((N, 3), np.nan), TWO)
    model.fit(X, TWO)
    assert len(told) >= 3
    warm = SVC(warm_start=True, C=1.0).fit(X, TWO)
    assert warm.fit(X, TWO).n_iter_ <= SVC().fit(X, TWO).n_iter_
