"""A label that is missing is an error that says so and in which row, in whatever the labels come."""

import numpy as np
import pytest

import slimsvm
from slimsvm import SVC, SVR, Blocks, Condense, EditedNN, OneClassSVM, OrdinalSVC, RankSVM, SequenceSVM

pandas = pytest.importorskip("pandas")

N, ROW = 30, 7
X = np.random.default_rng(0).normal(size=(N, 2))
ESTIMATORS = {
    "SVC": SVC(),
    "few vectors": SVC(max_basis=3),
    "stream": SVC(solver="bsgd", max_basis=3),
    "SVR": SVR(),
    "OrdinalSVC": OrdinalSVC(),
    "RankSVM": RankSVM(),
    "CrossTrainedSVC": slimsvm.CrossTrainedSVC(),
    "LearnedAxes": slimsvm.LearnedAxes(),
}


def with_one(missing, *values):
    labels = [values[k % len(values)] for k in range(N)]
    labels[ROW] = missing
    return labels


def objects(missing, *values):
    labels = np.empty(N, dtype=object)
    labels[:] = with_one(missing, *values)
    return labels


LABELS = {
    "NA among texts": objects(pandas.NA, "a", "b"),
    "None among texts": objects(None, "a", "b"),
    "NaN among texts": objects(np.nan, "a", "b"),
    "NaT among texts": objects(pandas.NaT, "a", "b"),
    "NA among numbers": objects(pandas.NA, 1, 2),
    "None among numbers": objects(None, 1, 2),
    "list of texts and None": with_one(None, "a", "b"),
    "list of texts and NaN": with_one(np.nan, "a", "b"),
    "list of numbers and NA": with_one(pandas.NA, 1, 2),
    "float64": np.array(with_one(np.nan, 1.0, 2.0)),
    "float32": np.array(with_one(np.nan, 1.0, 2.0), np.float32),
    "dates": np.array(with_one("NaT", "2020-01-01", "2021-01-01"), "datetime64[D]"),
    "Int64": pandas.Series(with_one(None, 1, 2), dtype="Int64"),
    "Float64": pandas.Series(with_one(None, 1.0, 2.0), dtype="Float64"),
    "boolean": pandas.Series(with_one(None, True, False), dtype="boolean"),
    "string": pandas.Series(with_one(None, "a", "b"), dtype="string"),
    "category": pandas.Series(with_one(None, "a", "b"), dtype="category"),
    "categories of numbers": pandas.Series(with_one(None, 1, 2), dtype="category"),
    "frame": pandas.DataFrame({"y": with_one(None, "a", "b")}),
    "masked": np.ma.array(with_one(1, 1, 2), mask=np.arange(N) == ROW),
}
MIXED = {
    "objects": objects(3, "a", "b"),
    "a truth value": objects(True, "a", "b"),
    "one text": objects("a", 1, 2),
    "a list": with_one(3, "a", "b"),
    "a series": pandas.Series(with_one(3, "a", "b"), dtype=object),
    "categories": pandas.Series(with_one(3, "a", "b"), dtype="category"),
}
CLASSIFIERS = {name: ESTIMATORS[name] for name in ("SVC", "few vectors", "stream", "OrdinalSVC", "CrossTrainedSVC")} | {
    "NuSVC": slimsvm.NuSVC(nu=0.3),
    "logistic": SVC(loss="logistic"),
    "table": slimsvm.TableClassifier(),
}


@pytest.mark.turns("labels")
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_missing_labels(name, labels):
    extra = {"groups": np.repeat([0, 1], N // 2)} if name == "RankSVM" else {}
    with pytest.raises(ValueError, match=f"at row {ROW}: y must hold a label for every row, and this one is missing"):
        ESTIMATORS[name].fit(X, labels, **extra)


@pytest.mark.turns("labels")
@pytest.mark.parametrize("labels", MIXED.values(), ids=MIXED)
@pytest.mark.parametrize("name", [*CLASSIFIERS, "SVR", "LearnedAxes", "Condense"])
def test_texts_among_numbers(name, labels):
    """A list of these would become texts, "1" and 1 the same class."""
    fit = Condense().fit_resample if name == "Condense" else (CLASSIFIERS | ESTIMATORS)[name].fit
    with pytest.raises(ValueError, match=f"strings or numbers; found both, '?[a1]'? in row 0 and .* in row {ROW}"):
        fit(X, labels)


@pytest.mark.parametrize("value", [True, 3, 1.5])
@pytest.mark.parametrize("name", [*CLASSIFIERS, "Condense"])
def test_objects_that_are_no_texts(name, value):
    """scikit-learn knows none, and says that a target may be one of regression."""
    fit = Condense().fit_resample if name == "Condense" else CLASSIFIERS[name].fit
    with pytest.raises(ValueError, match=f"array of objects, found .* of type {type(value).__name__}; accepted are"):
        fit(X, objects(value, value, type(value)(0)))


@pytest.mark.parametrize("name", [*ESTIMATORS, "OneClassSVM", "NormalRanks", "Condense"])
def test_masked_rows_and_weights(name):
    """NumPy's own functions pass masks over, and take what is below for numbers."""
    masked, y = np.ma.array(X, mask=False), np.arange(N) % 2
    masked[ROW, 1] = np.ma.masked
    estimator = (ESTIMATORS | {"OneClassSVM": OneClassSVM(), "NormalRanks": slimsvm.NormalRanks()}).get(name)
    fit, extra = (Condense().fit_resample, {}) if estimator is None else (estimator.fit, {})
    extra = {"groups": np.repeat([0, 1], N // 2)} if name == "RankSVM" else extra
    with pytest.raises(ValueError, match=f"masked entry at row {ROW}, column 1"):
        fit(masked, y, **extra)
    fit(np.ma.array(X, mask=False), y, **extra)
    if hasattr(estimator, "predict"):
        with pytest.raises(ValueError, match=f"masked entry at row {ROW}, column 1"):
            estimator.predict(masked)
    if name in ("SVC", "SVR", "OrdinalSVC"):
        with pytest.raises(ValueError, match=f"sample_weight contains a masked entry at row {ROW}"):
            fit(X, y, sample_weight=np.ma.array(np.ones(N), mask=np.arange(N) == ROW))


@pytest.mark.parametrize("name", [*ESTIMATORS, "Condense"])
def test_a_column_name_is_no_target(name):
    fit = Condense().fit_resample if name == "Condense" else ESTIMATORS[name].fit
    extra = {"groups": np.repeat([0, 1], N // 2)} if name == "RankSVM" else {}
    with pytest.raises(ValueError, match=r"found the text 'label'|1d array|inconsistent numbers"):
        fit(X, "label", **extra)


@pytest.mark.parametrize("editor", [Condense(), EditedNN()])
def test_editors(editor):
    for labels in LABELS.values():
        with pytest.raises(ValueError, match=f"at row {ROW}: .*missing"):
            editor.fit_resample(X, labels)


def test_other_entrances():
    labels = LABELS["None among texts"]
    for call in (
        lambda: SVC(solver="lasvm").partial_fit(X, labels, classes=["a", "b"]),
        lambda: SVC().fit(X, np.where(X[:, 0] > 0, "a", "b")).certificate(X, labels),
        lambda: SVC(max_basis=3).fit(Blocks([X[:20], X[20:]]), labels),
        lambda: Blocks.with_labels([(X[:5], ["a"] * 5), (X[5:], labels[5:])]),
        lambda: SequenceSVM().fit([X], [labels]),
        lambda: SVC(loss="hinge").fit(X, np.array([[0, 1], [1, 0], [1, None]] * 10, dtype=object)),
    ):
        with pytest.raises(ValueError, match="missing"):
            call()
    assert OneClassSVM().fit(X, None).n_basis_ > 0


@pytest.mark.parametrize("dtype", ["Int64", "UInt64", "int64"])
def test_large_labels_of_pandas_are_exact(dtype):
    labels = [2**53, 2**53 + 1] * (N // 2)
    for estimator in (SVC(), OrdinalSVC(), SVC(max_basis=3)):
        estimator.fit(X, pandas.Series(labels, dtype=dtype))
        assert estimator.classes_.tolist() == [2**53, 2**53 + 1]


@pytest.mark.parametrize("labels", [*LABELS, *MIXED])
def test_labels_of_sequences_and_names_of_queries(labels):
    """NumPy makes texts of all that stands beside texts in a list: NaN was a class, and 1 the same as "1"."""
    values = (LABELS | MIXED)[labels]
    if labels == "frame":
        return
    part = pandas.Series(values).iloc if hasattr(values, "iloc") else values
    first, second = part[:5], part[5:]
    message = "missing|is not a name of a query" if labels in LABELS else "strings or numbers; found both"
    for call in (
        lambda: SequenceSVM().fit([X], [values]),
        lambda: SequenceSVM().fit([X[:5], X[5:]], [first, second]),
        lambda: SequenceSVM().fit(X, values, lengths=[5, N - 5]),
        lambda: SequenceSVM().fit([X], [np.arange(N) % 2]).score([X], [values]),
        lambda: RankSVM().fit(X, np.arange(N), groups=values),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_labels_of_blocks_of_two_kinds():
    for name in ("a list", "objects"):
        with pytest.raises(ValueError, match=f"strings or numbers; found both, 'b' in row 0 and 3 in row {ROW - 5}"):
            Blocks.with_labels([(X[:5], MIXED[name][:5]), (X[5:], MIXED[name][5:])])


def test_masked_rows_of_sequences():
    masked = np.ma.array(X, mask=False)
    masked[ROW, 1] = np.ma.masked
    fitted = SequenceSVM().fit([X], [np.arange(N) % 2])
    for call in (lambda: SequenceSVM().fit([masked], [np.arange(N) % 2]), lambda: fitted.predict([X, masked])):
        with pytest.raises(ValueError, match=rf"sequence [01] contains a masked entry at row {ROW}, column 1"):
            call()
