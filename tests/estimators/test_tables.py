"""`TableClassifier` and `TableRegressor`: any table, the same bits; weights, limits, files."""

import os
import pickle
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.interpolate import BSpline
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.utils.estimator_checks import estimator_checks_generator

import slimsvm
from slimsvm import TableClassifier, TableRegressor
from slimsvm.core import clock
from slimsvm.deploy.conformal import bound
from slimsvm.estimators._shared import table_search
from slimsvm.estimators._shared.table_additive import LEAST_SPREAD, UNIT, additive_models, splines
from slimsvm.estimators._shared.table_goals import ClassGoal, NumberGoal
from slimsvm.estimators._shared.table_search import (
    Found,
    Misfits,
    Recipe,
    Rows,
    greedy_mean,
    members_of,
    misfits_of,
    some_in_order,
)
from slimsvm.estimators._shared.table_small import misfits_of_small, some_that_count
from slimsvm.modelfile import ModelFileError, read_model, write_model
from slimsvm.solvers import Exact
from slimsvm.tables import table_of
from slimsvm.tables.splines import DEGREE, END, KNOTS


def passengers(n=400, seed=0):
    """A table like the Titanic's, and who survived."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "class": rng.choice(["first", "second", "third"], n),
            "sex": pd.Categorical(rng.choice(["male", "female"], n)),
            "age": np.where(rng.random(n) < 0.2, np.nan, rng.uniform(1, 80, n).round()),
            "fare": [f"{fare:,.2f}" for fare in rng.lognormal(4, 2, n)],
            "crew": rng.random(n) < 0.3,
            "boarded": pd.Timestamp("1912-04-10") + pd.to_timedelta(rng.integers(0, 72, n), "h"),
            "cabin": [f"C{k}" if k < 40 else None for k in rng.integers(0, 200, n)],
        }
    )
    is_odd = (frame["sex"] == "female") ^ frame["crew"]  # no sum of columns
    odds = 1.5 * is_odd - 1.0 * (frame["class"] == "third") + (frame["age"] < 15) - 0.5
    survived = np.where(rng.random(n) < 1 / (1 + np.exp(-2.0 * odds.to_numpy())), "yes", "no")
    return frame, survived


X, Y = passengers()
NEW, NEW_Y = passengers(200, seed=1)


@pytest.fixture(scope="module")
def classifier():
    return TableClassifier(n_jobs=1).fit(X, Y)


@pytest.fixture(scope="module")
def regressor():
    return TableRegressor(n_jobs=1).fit(X.drop(columns="age"), X["age"].fillna(40.0))


CHECKS = [
    check for estimator in (TableClassifier(), TableRegressor()) for check in estimator_checks_generator(estimator)
]


@pytest.mark.parametrize(
    ("estimator", "check"), CHECKS, ids=lambda part: getattr(getattr(part, "func", part), "__name__", None)
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_probabilities_are_better_than_the_shares_of_the_classes(classifier):
    found = classifier.predict_proba(NEW)
    shares = np.tile(np.unique(Y, return_counts=True)[1] / len(Y), (len(NEW), 1))
    assert log_loss(NEW_Y, found) < 0.85 * log_loss(NEW_Y, shares)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_array_equal(classifier.predict(NEW), classifier.classes_[found.argmax(axis=1)])
    np.testing.assert_array_equal(classifier.decision_function(NEW) > 0, found[:, 1] > 0.5)


@pytest.mark.parametrize("container", ["polars", "arrow", "dict"])
def test_any_container_gives_the_same_bits(classifier, container):
    if container == "polars":
        polars = pytest.importorskip("polars")
        train, new = polars.from_pandas(X), polars.from_pandas(NEW)
    elif container == "arrow":
        pa = pytest.importorskip("pyarrow", exc_type=ImportError)  # it is there, but refuses the oldest NumPy
        train, new = pa.Table.from_pandas(X), pa.Table.from_pandas(NEW)
    else:
        train, new = {name: X[name] for name in X}, {name: NEW[name] for name in NEW}
    found = TableClassifier(n_jobs=1).fit(train, Y)
    np.testing.assert_array_equal(found.predict_proba(new), classifier.predict_proba(NEW))
    assert found.report_ == classifier.report_


def test_any_number_of_threads_gives_the_same_bits(classifier):
    found = TableClassifier(n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(found.predict_proba(NEW), classifier.predict_proba(NEW))


def test_columns_are_found_by_name(classifier):
    turned = NEW[NEW.columns[::-1]].assign(more=1.0)
    np.testing.assert_array_equal(classifier.predict_proba(turned), classifier.predict_proba(NEW))
    assert classifier.feature_names_in_.tolist() == list(X.columns)
    with pytest.raises(ValueError, match="missing: 'sex'"):
        classifier.predict(NEW.drop(columns="sex"))


def test_unseen_levels_and_missing_values_are_predicted(classifier):
    strange = NEW.head(3).assign(**{"class": "fourth", "sex": None, "age": None, "cabin": "Z1", "boarded": pd.NaT})
    assert np.isfinite(classifier.predict_proba(strange)).all()


def test_the_report_says_what_happened(classifier):
    report = classifier.report_
    for part in ("400 rows, 7 columns", "class: category of 3 levels", "age: numbers, some missing", "fare: numbers",
                 "boarded: times with the day", "models tried", "log loss on held-out rows", "vectors"):  # fmt: skip
        assert part in report


def test_a_file_has_all_of_it(classifier, regressor, tmp_path):
    for estimator, new in ((classifier, NEW), (regressor, NEW)):
        path = tmp_path / "model.slim"
        estimator.save(path)
        read = slimsvm.load(path)
        assert type(read) is type(estimator)
        assert read.get_params() == estimator.get_params()
        assert read.report_ == estimator.report_
        assert read.feature_names_in_.tolist() == estimator.feature_names_in_.tolist()
        np.testing.assert_array_equal(read.predict(new), estimator.predict(new))
        slimsvm.save(read, tmp_path / "again.slim")
        assert (tmp_path / "again.slim").read_bytes() == path.read_bytes()
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(classifier)).predict_proba(NEW), classifier.predict_proba(NEW)
    )


def test_files_are_small(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(1500, 15))).assign(level=rng.choice(list("abcdefgh"), 1500))
    y = (frame[0] * frame[1] + rng.normal(size=1500) > 0).to_numpy()
    TableClassifier(n_jobs=1).fit(frame, y).save(tmp_path / "model.slim")
    assert os.path.getsize(tmp_path / "model.slim") < 500_000


def test_damaged_files_are_refused(classifier, tmp_path):
    classifier.save(tmp_path / "model.slim")
    header, arrays = read_model(tmp_path / "model.slim")
    damages = [
        ({"machines": [fact | {"n_outputs": 9} for fact in header["machines"]]}, {}),
        ({"machines": [fact | {"weight": -1.0} for fact in header["machines"]]}, {}),
        ({"table": {"has_names": True, "columns": [{"kind": "code"}]}}, {}),
        ({}, {"vectors": arrays["vectors"][:1]}),
        ({}, {"vector_flags": arrays["vector_flags"][:, :0]}),
        ({}, {"machine0_calibration": arrays["machine0_calibration"][:, :2]}),
        ({}, {"classes": arrays["classes"][:1]}),
    ]
    for facts, parts in damages:
        write_model(tmp_path / "damaged.slim", header | facts, arrays | parts, version=2)
        with pytest.raises(slimsvm.ModelFileError):
            slimsvm.load(tmp_path / "damaged.slim")


def test_explaining_needs_a_background(classifier):
    for attempt in (lambda: slimsvm.explain(classifier, X), lambda: classifier.explain(X, None)):
        with pytest.raises(ValueError, match="needs background rows"):
            attempt()
    found = slimsvm.explain(classifier, NEW.head(1), background=X.head(3), n_permutations=4)
    assert found.values.shape == (1, 7)


def test_class_weights_and_sample_weights_move_probabilities(classifier):
    plain = classifier.predict_proba(NEW)[:, 1].mean()
    for options, weights in (({"class_weight": {"no": 1, "yes": 5}}, None), ({}, np.where(Y == "yes", 5.0, 1.0))):
        found = TableClassifier(n_jobs=1, **options).fit(X, Y, weights)
        assert found.predict_proba(NEW)[:, 1].mean() > plain + 0.1


def test_rows_of_weight_zero_do_not_count(classifier):
    more = pd.concat([X, NEW], ignore_index=True)
    weights = np.r_[np.ones(len(X)), np.zeros(len(NEW))]
    found = TableClassifier(n_jobs=1).fit(more, np.r_[Y, ["strange"] * len(NEW)], weights)
    np.testing.assert_array_equal(found.predict_proba(NEW), classifier.predict_proba(NEW))


def test_rare_classes_many_classes_and_few_rows():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=150), "level": rng.choice(["a", "b"], 150)})
    y = np.digitize(frame["x"], [-1.0, -0.2, 0.4, 1.5])
    y[:2] = 7  # a class of two rows
    found = TableClassifier(n_jobs=1).fit(frame, y).predict_proba(frame)
    assert found.shape == (150, 6)
    assert np.isfinite(found).all()
    for n in (2, 3, 10, 60):
        few = TableClassifier(n_jobs=1).fit(frame.head(n), np.arange(n) % 2)
        assert np.isfinite(few.predict_proba(frame)).all()
        assert np.isfinite(TableRegressor(n_jobs=1).fit(frame.head(n), np.arange(n)).predict(frame)).all()


@pytest.mark.parametrize(("n_classes", "n_each"), [(2, 4), (3, 3), (26, 4)])
def test_few_rows_of_every_class_are_held_out(n_classes, n_each):
    """Probabilities were calibrated on the scores of training rows, and nearly 0 or 1."""
    losses = []
    for seed in range(1 if n_classes > 3 else 3):
        rng = np.random.default_rng(seed)
        y = np.tile(np.arange(n_classes), 3 * n_each)
        x = rng.normal(size=(n_classes, 3))[y] + rng.normal(size=(len(y), 3))
        train = np.arange(len(y)) < n_classes * n_each
        clf = TableClassifier(n_jobs=1).fit(x[train], y[train])
        assert "models tried on held-out rows" in clf.report_
        losses.append(log_loss(y[~train], clf.predict_proba(x[~train])))
    assert np.mean(losses) < np.log(n_classes)


def test_a_table_whose_columns_say_nothing_gives_the_shares_of_the_classes():
    found = TableClassifier(n_jobs=1).fit({"constant": [1] * 200}, np.arange(200) % 4 == 0)
    np.testing.assert_allclose(found.predict_proba({"constant": [1]})[:, 1], 0.25, atol=0.02)
    assert "left out" in found.report_
    numbers = TableRegressor(n_jobs=1).fit({"constant": [1] * 200}, np.arange(200.0)).predict({"constant": [1]})
    assert numbers == pytest.approx(99.5, abs=5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TableClassifier().fit(X, np.r_[Y[1:], [None]]), "row 399"),
        (lambda: TableClassifier().fit(X, Y[1:]), "400 rows, y has 399"),
        (lambda: TableClassifier().fit(X, ["yes"] * 400), "at least two classes"),
        (lambda: TableClassifier().fit(X, np.linspace(0, 1, 400)), "Unknown label type"),
        (lambda: TableClassifier().fit(X, pd.cut(np.linspace(0, 1, 400), 3)), r"of type Interval.* y.astype\(str\)"),
        (lambda: TableClassifier().fit({"x": []}, []), "at least 2 rows, found n_samples=0$"),
        (
            lambda: TableClassifier(class_weight={"no": 0}).fit(X, Y),
            "class_weight must hold positive numbers; found 0.0",
        ),
        (lambda: TableRegressor().fit(X, Y), "y must hold numbers, found .*'(yes|no)'.* at row 0"),
        (lambda: TableClassifier(time_limit=-1).fit(X, Y), "time_limit"),
        (lambda: TableClassifier().fit(X, Y, np.ones(3)), "sample_weight"),
        (lambda: TableRegressor().fit(X, np.r_[np.zeros(399), np.inf]), "row 399"),
    ],
)
def test_bad_input_is_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("estimator", [TableClassifier(), TableRegressor()])
@pytest.mark.parametrize("y", [X["boarded"], X["boarded"] - X["boarded"].min()], ids=["times", "lengths of time"])
def test_labels_that_are_times_are_refused(estimator, y):
    with pytest.raises(TypeError, match="y has dtype"):
        estimator.fit(X, y)


@pytest.mark.parametrize("factor", [1e200, 1e-200])
def test_targets_may_be_of_any_size(factor):
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    found = TableRegressor(n_jobs=1).fit({"x": x}, factor * x).predict({"x": x})
    assert np.abs(found / factor - x).mean() < 0.1


def test_what_columns_hold_that_are_not_needed_does_not_matter(classifier):
    more = NEW.assign(vector=[[1]] * len(NEW), infinite=np.inf)
    np.testing.assert_array_equal(classifier.predict_proba(more), classifier.predict_proba(NEW))


def test_before_a_fit_there_is_nothing():
    for method in ("predict", "predict_proba", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(TableClassifier(), method)(X)
    with pytest.raises(NotFittedError):
        TableRegressor().save("model.slim")


def test_clones_and_grid_searches():
    assert clone(TableClassifier(class_weight="balanced")).class_weight == "balanced"
    search = GridSearchCV(TableClassifier(n_jobs=1), {"class_weight": [None, "balanced"]}, cv=2, scoring="neg_log_loss")
    search.fit(X, Y)
    assert len(set(search.cv_results_["mean_test_score"])) == 2  # weights of classes do something
    assert search.best_estimator_.class_weight == search.best_params_["class_weight"]


@pytest.mark.parametrize("preset", ["accurate", "small"])
def test_a_time_limit_ends_the_search_early(preset, monkeypatch):
    monkeypatch.setattr(clock, "LEAST_SECONDS", 0.0)
    with pytest.warns(ConvergenceWarning, match="was stopped after"):
        found = TableClassifier(preset=preset, n_jobs=1, time_limit=1e-3).fit(X, Y)
    assert np.isfinite(found.predict_proba(NEW)).all()
    assert found.predict_proba(NEW).std() > 0.1  # the one model that there is was trained on
    assert "no model was tried: there was no time" in found.report_


def test_an_interrupt_keeps_the_best_so_far(monkeypatch):
    calls, solve = [], Exact.solve

    def interrupted(self, problem, *args, **kwargs):
        calls.append(1)
        if len(calls) == 20:
            raise KeyboardInterrupt
        return solve(self, problem, *args, **kwargs)

    monkeypatch.setattr(Exact, "solve", interrupted)
    with pytest.warns(ConvergenceWarning, match="was stopped after"):
        found = TableClassifier(n_jobs=1).fit(X, Y)
    assert "then it was stopped" in found.report_
    assert log_loss(NEW_Y, found.predict_proba(NEW)) < 0.65
    calls[:] = [None] * 19
    with pytest.raises(KeyboardInterrupt):
        TableClassifier(n_jobs=1).fit(X, Y)


def test_verbose_shows_a_bar(capsys):
    TableClassifier(n_jobs=1, verbose=True).fit(X, Y)
    assert "on held-out rows" in capsys.readouterr().err


def test_regression_follows_interactions_of_numbers_and_levels():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"size": rng.uniform(1, 9, 600), "kind": rng.choice(["a", "b"], 600), "noise": rng.normal(size=600)}
    )
    y = 100 + frame["size"] * np.where(frame["kind"] == "a", 10.0, -10.0) + rng.normal(size=600)
    A, B, a, b = train_test_split(frame, y, random_state=0)
    assert TableRegressor(n_jobs=1).fit(A, a).score(B, b) > 0.995


def test_of_many_rows_some_are_searched_and_trained_on(monkeypatch):
    sizes, solve = [], Exact.solve

    def noted(self, problem, *args, **kwargs):
        sizes.append(problem.rows.n_rows)
        return solve(self, problem, *args, **kwargs)

    monkeypatch.setattr(Exact, "solve", noted)
    monkeypatch.setattr(table_search, "MOST_SEARCHED", 200)
    monkeypatch.setattr(table_search, "MOST_TRAINED", 300)
    TableClassifier(n_jobs=1).fit(X, Y)
    assert set(sizes) == {160, 300}
    rare = np.where(np.arange(len(X)) % 150 == 7, "rare", Y)  # three rows, which are all taken
    assert "models tried" in TableClassifier(n_jobs=1).fit(X, rare).report_
    sizes.clear()
    TableRegressor(n_jobs=1).fit(X, np.arange(len(X)))
    assert 160 in sizes
    assert set(sizes) <= {160, 300}


def test_the_mean_is_greedy():
    evidences = {"a": np.array([0.9, 0.1]), "b": np.array([0.1, 0.9]), "c": np.array([0.4, 0.4])}
    weights, loss = greedy_mean(evidences, np.array([0, 1]), np.ones(2), ClassGoal(2))
    assert weights["a"] + weights["b"] > 0.6
    assert loss == pytest.approx(-np.log(0.5), rel=0.05)


def test_misfits_are_those_of_the_weighted_mean():
    rows = SimpleNamespace(y=np.array([0.0, 1.0]), weights=np.ones(2))
    found = SimpleNamespace(parts=[(None, rows)], evidences={"a": np.zeros(2), "b": np.full(2, 4.0)})
    machines = [SimpleNamespace(recipe="a", weight=0.75), SimpleNamespace(recipe="b", weight=0.25)]
    np.testing.assert_array_equal(misfits_of(found, machines, NumberGoal()).of_all, [0.0, 1.0])


def test_encoders_of_a_fold_know_no_row_held_out():
    """Ranks of the rows that train are those among themselves: as far above the middle as below it."""
    rng = np.random.RandomState(0)
    table, y = table_of({"x": rng.permutation(200).astype(float)}), np.arange(200) % 2
    parts = list(table_search._folds(table, y, np.ones(200), ClassGoal(2), rng, 1))
    assert len(parts) == table_search.N_FOLDS
    for rows, _ in parts:
        own = np.sort(rows.features[:, 0])
        np.testing.assert_allclose(own, -own[::-1], atol=1e-5)


def test_importances_are_shares_of_columns(classifier, regressor):
    found = dict(zip(X.columns, classifier.feature_importances_, strict=True))
    assert sum(found.values()) == pytest.approx(1.0)
    assert sorted(found, key=found.get)[-2:] in (["sex", "crew"], ["crew", "sex"])
    assert regressor.feature_importances_.shape == (6,)
    assert (
        not TableClassifier(n_jobs=1).fit({"constant": [1] * 200}, np.arange(200) % 4 == 0).feature_importances_.any()
    )


@pytest.mark.parametrize(("n_classes", "n_numbers"), [(2, 3), (4, 3), (2, 60), (4, 60)])
def test_the_additive_model_has_scikit_learns_optimum(n_classes, n_numbers):
    """Of 60 numbers there are more splines than rows."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=(300, n_numbers)), rng.random((300, 2)) < 0.3])
    y = np.digitize(
        rows[:, 0] - rows[:, n_numbers] + 0.5 * rng.normal(size=300), np.linspace(-1, 1, n_classes + 1)[1:-1]
    )
    weights, are_flags = rng.uniform(0.5, 2.0, 300), np.array([False] * n_numbers + [True] * 2)
    found = splines(rows, are_flags)
    spread = np.sqrt(np.cov(found.T, aweights=weights, ddof=0).diagonal())
    spread[2:] = np.maximum(spread[2:], LEAST_SPREAD)
    models = list(additive_models(rows, y, weights, are_flags, ClassGoal(n_classes), [1.0, 100.0]))
    for model, C in zip(models, [1.0, 100.0], strict=True):
        best = LogisticRegression(C=UNIT * C, tol=1e-8, max_iter=9999).fit(found / spread, y, weights)
        scores = best.decision_function(found / spread).reshape(300, -1)
        first, second = np.triu_indices(n_classes, 1)
        expected = scores if n_classes == 2 else scores[:, first] - scores[:, second]
        np.testing.assert_allclose(model.scores(rows), expected, rtol=0.02, atol=0.05)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_small_one_has_few_vectors(n_classes, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=600), "y": rng.normal(size=600), "level": rng.choice(["a", "b"], 600)})
    y = np.digitize(frame["x"] * frame["y"], [0.0] if n_classes == 2 else [-0.5, 0.5])
    small = TableClassifier(preset="small", max_basis=30, n_jobs=1).fit(frame[:400], y[:400])
    (machine,) = small.machines_
    assert machine.model.n_basis <= 30
    assert machine.weight == 1.0
    assert small.score(frame[400:], y[400:]) > 0.9
    assert [len(encoder.values) for encoder in small.encoding_.encoders[:2]] == [32, 32]
    small.save(tmp_path / "small.slim")
    np.testing.assert_array_equal(
        slimsvm.load(tmp_path / "small.slim").predict_proba(frame), small.predict_proba(frame)
    )
    numbers = TableRegressor(preset="small", max_basis=30, n_jobs=1).fit(frame[:400], frame["x"][:400])
    assert numbers.score(frame[400:], frame["x"][400:]) > 0.95
    with pytest.raises(ValueError, match="preset must be one of"):
        TableClassifier(preset="tiny").fit(frame, y)


def test_a_small_one_predicts_what_the_mean_does(classifier):
    small = TableClassifier(preset="small", n_jobs=1).fit(X, Y)
    assert np.abs(small.predict_proba(NEW) - classifier.predict_proba(NEW)).mean() < 0.1
    numbers = np.random.default_rng(0).normal(size=(400, 3))
    y = np.sin(2 * numbers[:, 0]) * numbers[:, 1] + numbers[:, 2]
    taught = TableRegressor(preset="small", max_basis=30, n_jobs=1).fit(numbers, y)
    assert "trained on predictions of the mean" in taught.report_
    assert np.abs(taught.predict(numbers) - y).mean() < 0.2
    empty = TableRegressor(preset="small", n_jobs=1).fit({"constant": [1] * 200}, np.arange(200.0))
    assert empty.predict({"constant": [1]}) == pytest.approx(99.5, abs=5)


def test_a_small_one_follows_columns_that_all_move_together():
    """Made rows, whose numbers are those of two rows, leave the line on which such rows lie."""
    rng = np.random.default_rng(0)
    line = rng.normal(size=600)
    X = line[:, None] + 0.02 * rng.normal(size=(600, 12))
    y = np.tanh(line) + 0.02 * rng.normal(size=600)
    full, small = (TableRegressor(preset=preset, n_jobs=1).fit(X[:400], y[:400]) for preset in ("accurate", "small"))
    errors = [np.sqrt(np.mean((model.predict(X[400:]) - y[400:]) ** 2)) for model in (full, small)]
    assert errors[1] < 1.15 * errors[0]
    low, high = small.predict_interval(X[400:], 0.2).T
    assert 0.7 < np.mean((low <= y[400:]) & (y[400:] <= high)) < 0.9


def test_a_small_one_keeps_rules_of_levels():
    levels = np.array(list(np.ndindex(3, 3, 3, 4, 4)))
    table = {name: np.array(list("pqrs"))[column] for name, column in zip("abcde", levels.T)}
    y, train = (levels == 0).sum(axis=1) == 2, np.random.default_rng(0).permutation(len(levels)) % 10 < 7
    some, others = ({name: column[rows] for name, column in table.items()} for rows in (train, ~train))
    full, small = (TableClassifier(preset=preset, n_jobs=1).fit(some, y[train]) for preset in ("accurate", "small"))
    assert small.machines_[0].model.n_basis <= 200
    losses = [log_loss(y[~train], model.predict_proba(others)) for model in (full, small)]
    assert losses[1] < 1.25 * losses[0]


def test_a_small_one_is_near_to_the_mean_where_that_is_one_machine_of_more_vectors():
    levels = np.array(list(np.ndindex(4, 4, 4, 3, 3)))
    table = {name: np.array(list("pqrs"))[column] for name, column in zip("abcde", levels.T)}
    a, b, c, d, e = levels.T
    y, train = np.minimum(a, b) + (c > 1) * d - (e == 0) > 1, np.random.default_rng(0).permutation(len(levels)) % 10 < 7
    some, others = ({name: column[rows] for name, column in table.items()} for rows in (train, ~train))
    full, small = (
        TableClassifier(preset=preset, max_basis=90, n_jobs=1).fit(some, y[train]) for preset in ("accurate", "small")
    )
    (machine,) = full.machines_
    assert machine.model.n_basis > 90 >= small.machines_[0].model.n_basis
    assert "trained on predictions" not in small.report_
    np.testing.assert_allclose(small.predict_proba(others), full.predict_proba(others), atol=0.03)


def test_a_small_one_is_an_additive_model_where_the_mean_is():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 8))
    odds = 1.5 * X[:, 0] ** 2 - np.abs(X[:, 1]) + X[:, 2] + np.sin(2 * X[:, 3]) + np.abs(X[:, 4])
    y = odds + rng.logistic(size=400) > 3
    full, small = (TableClassifier(preset=each, n_jobs=1).fit(X, y) for each in ("accurate", "small"))
    assert {machine.recipe.kernel for machine in full.machines_} == {"additive"}
    (machine,) = small.machines_
    assert machine.recipe in [each.recipe for each in full.machines_]
    assert np.abs(small.predict_proba(X) - full.predict_proba(X)).mean() < 0.05


def test_a_small_one_is_the_mean_itself_where_that_is_one_machine_of_few_vectors():
    grid = np.array(list(np.ndindex(5, 5, 5, 5)), float)
    y, train = grid[:, 0] + grid[:, 1] > grid[:, 2] + grid[:, 3], np.random.default_rng(0).permutation(len(grid))[:300]
    full, small = (TableClassifier(preset=each, n_jobs=1).fit(grid[train], y[train]) for each in ("accurate", "small"))
    assert len(full.machines_) == 1
    np.testing.assert_allclose(small.predict_proba(grid), full.predict_proba(grid), atol=0.003)  # of rounded vectors
    assert small.nonconformity_.tolist() == full.nonconformity_.tolist()


def test_sets_of_a_small_one_are_those_of_its_own_misfits():
    own, mean = np.tile([0.9, 0.6, 0.8, 0.3], 5), np.tile([0.95, 0.7, 0.9, 0.4], 5)
    of_all = np.linspace(0.01, 0.9, 50).astype(np.float32)
    moved = misfits_of_small(Misfits(of_all, [of_all[:10], of_all[10:]]), (own, mean), ClassGoal(2))
    assert (np.diff(moved.of_all) > 0).all()
    assert (moved.of_all > of_all).all()  # it is less sure than the mean
    np.testing.assert_array_equal(np.concatenate(moved.of_classes), moved.of_all)
    surer = misfits_of_small(Misfits(of_all, [of_all]), (mean, own), ClassGoal(2))
    np.testing.assert_array_equal(surer.of_all, of_all)
    assert misfits_of_small(moved, (own[:4], mean[:4]), ClassGoal(2)) is moved  # too few rows say nothing
    numbers = misfits_of_small(Misfits(of_all, []), (own, own + 0.3), NumberGoal())
    np.testing.assert_allclose(numbers.of_all**2, of_all**2 + 0.09, rtol=1e-5)


def test_a_small_one_takes_the_rows_that_there_is_room_for():
    taught = np.random.default_rng(0).dirichlet(np.ones(26), 100)
    assert some_that_count(taught, 10).tolist() == list(range(100))
    some = some_that_count(taught, 10, most=5000)
    assert 4000 < 10 * np.count_nonzero(taught[some] > 1e-3) <= 5100
    assert some[0] == 0
    assert some[-1] > 90


def test_an_additive_model_is_whole_where_the_time_is_over_before_it(monkeypatch):
    monkeypatch.setattr(clock, "LEAST_SECONDS", 0.0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)).astype(np.float32)
    rows = Rows(X, (X[:, 0] > 0).astype(np.int64), np.ones(200), np.zeros(3, bool), np.arange(3), ClassGoal(2), 1)
    recipe = Recipe("additive", 1.0, 1.0)
    found = Found({recipe: (1.0, None)}, 1, recipe, [])
    with clock.time_limit(1e-9):
        (member,) = members_of(found, rows)
    assert ((member.model.scores(X)[:, 0] > 0) == rows.y).mean() > 0.95


def test_a_spline_that_one_row_has_moves_no_prediction_far():
    """One row at the rim of a spline tells nothing of rows within it; its weight was 1,000 times as large."""
    rng = np.random.default_rng(0)
    X = np.r_[rng.uniform(-3, 0.6, 199), 0.75][:, None]
    y = np.r_[0.1 * rng.normal(size=199), 5.0]
    (model,) = additive_models(X, y, np.ones(200), np.array([False]), NumberGoal(), [100.0])
    assert np.abs(model.scores(np.linspace(-3, 3, 61)[:, None])).max() < 5 * np.abs(y).max()


@pytest.mark.parametrize("preset", ["accurate", "small"])
def test_sets_and_intervals_miss_about_alpha(classifier, regressor, preset, tmp_path):
    if preset == "small":
        classifier = TableClassifier(preset="small", n_jobs=1).fit(X, Y)
    codes = np.searchsorted(classifier.classes_, NEW_Y)
    for alpha in (0.1, 0.3):
        assert np.mean(~classifier.predict_set(NEW, alpha)[np.arange(len(NEW)), codes]) < alpha + 0.08
    assert classifier.predict_set(NEW, 0.001).all()
    y = NEW["age"].fillna(40.0).to_numpy()
    intervals = regressor.predict_interval(NEW, 0.2)
    assert 0.1 < np.mean((y < intervals[:, 0]) | (y > intervals[:, 1])) < 0.3
    np.testing.assert_allclose(intervals.mean(axis=1), regressor.predict(NEW))
    with pytest.raises(ValueError, match="alpha must be"):
        regressor.predict_interval(NEW, 1.0)
    classifier.save(tmp_path / "m.slim")
    np.testing.assert_array_equal(slimsvm.load(tmp_path / "m.slim").predict_set(NEW), classifier.predict_set(NEW))
    assert len(classifier.nonconformity_) <= 199


@pytest.mark.parametrize("preset", ["accurate", "small"])
def test_sets_by_class_miss_rare_classes_no_more_often(preset, tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(900, 2)), np.repeat(["common", "rare"], [800, 100])
    x[y == "rare"] += 1.2
    train = np.arange(900) % 2 == 0
    clf = TableClassifier(preset=preset, max_basis=20, n_jobs=1).fit(x[train], y[train])
    is_rare = y[~train] == "rare"
    misses = [1 - clf.predict_set(x[~train], 0.1, class_conditional=by)[is_rare, 1].mean() for by in (False, True)]
    assert misses[0] > 0.3 > misses[1] + 0.05
    assert [len(own) <= 99 for own in clf.nonconformity_of_classes_] == [True, True]
    clf.save(tmp_path / "m.slim")
    expected = clf.predict_set(x[~train], 0.1, class_conditional=True)
    for read in (slimsvm.load, slimsvm.load_predictor):
        found = read(tmp_path / "m.slim").predict_set(x[~train], 0.1, class_conditional=True)
        assert (found != expected).mean() < 0.01
    few = TableClassifier(preset=preset, n_jobs=1).fit(x[[0, 1, 899]], y[[0, 1, 899]])
    assert few.predict_set(x[:3], 0.1, class_conditional=True).all()


def test_a_predictor_has_intervals(regressor, tmp_path):
    regressor.save(tmp_path / "m.slim")
    predictor = slimsvm.load_predictor(tmp_path / "m.slim")
    np.testing.assert_allclose(predictor.predict_interval(NEW, 0.2), regressor.predict_interval(NEW, 0.2), atol=1e-3)
    with pytest.raises(AttributeError, match="numbers has no prob"):
        predictor.predict_set(NEW)


def test_so_many_misfits_that_any_hundredth_is_exact():
    misfits = np.random.default_rng(0).permutation(1000.0 + np.arange(1234))
    for percent in (1, 10, 50, 99):
        alpha = Fraction(percent, 100)
        assert bound(some_in_order(misfits), alpha) == bound(np.sort(misfits), alpha)
    assert some_in_order(np.array([2.0, 1.0])).tolist() == [1.0, 2.0]


def test_what_columns_add_is_the_prediction(classifier, regressor):
    three = TableClassifier(n_jobs=1).fit(X, np.where(np.arange(len(X)) % 5 == 0, "other", Y))
    for model, new in ((classifier, NEW), (regressor, NEW), (three, NEW.to_dict("list"))):
        found = model.explain(pd.DataFrame(new).head(3), background=X.head(9), n_permutations=4)
        expected = model.decision_function(NEW.head(3)) if hasattr(model, "classes_") else model.predict(NEW.head(3))
        np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), expected, rtol=1e-4, atol=1e-4)
        assert found.feature_names == [encoder.name for encoder in model.encoding_.encoders]
        assert found.data.shape == found.values.shape[:2]
    assert found.output_names == ["no", "other", "yes"]
    with pytest.raises(ValueError, match="missing: 'sex'"):
        classifier.explain(NEW.head(2), background=X.drop(columns="sex"))


@pytest.mark.parametrize("kind", ["two classes", "three classes", "numbers", "small"])
def test_a_predictor_without_training_code_predicts_the_same(kind, tmp_path):
    y = X["age"].fillna(40.0) if kind == "numbers" else np.where(X["crew"] & (kind != "two classes"), "crew", Y)
    model = (
        TableRegressor() if kind == "numbers" else TableClassifier(preset="small" if kind == "small" else "accurate")
    )
    model.set_params(n_jobs=1).fit(X, y).save(tmp_path / "m.slim")
    found = slimsvm.load_predictor(tmp_path / "m.slim")
    assert found.feature_names_in_.tolist() == list(X.columns)
    if kind == "numbers":  # machines have float32
        np.testing.assert_allclose(found.predict(NEW[NEW.columns[::-1]]), model.predict(NEW), rtol=1e-4)
    else:
        np.testing.assert_array_equal(found.predict(NEW[NEW.columns[::-1]]), model.predict(NEW))
        np.testing.assert_allclose(found.predict_proba(NEW), model.predict_proba(NEW), atol=1e-3)
    with pytest.raises(ValueError, match="missing: 'sex'"):
        found.predict(NEW.drop(columns="sex"))
    header, arrays = read_model(tmp_path / "m.slim")
    header["machines"][0]["weight"] = -1.0
    write_model(tmp_path / "m.slim", header, arrays, version=2)
    with pytest.raises(ModelFileError):
        slimsvm.load_predictor(tmp_path / "m.slim")


def test_splines_are_scipys():
    numbers = np.r_[np.linspace(-4, 4, 301), KNOTS]
    expected = BSpline.design_matrix(np.clip(numbers, -END, END), KNOTS, DEGREE).toarray()
    np.testing.assert_allclose(splines(numbers[:, None], np.array([False])), expected, atol=1e-12)
