"""Fitted estimators of any class, or pipelines that end with one: load, save, export, explain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slimsvm.deploy import TARGETS, forms_with, writer_of
from slimsvm.docstrings import described
from slimsvm.estimators._shared import saving
from slimsvm.estimators._shared.fitted import WRITING, explained
from slimsvm.estimators._shared.input_checks import check_path
from slimsvm.estimators._shared.saving import parts_of, plain_model_of, read_estimator
from slimsvm.estimators.cross_trained_svc import CrossTrainedSVC
from slimsvm.estimators.nu import NuSVC, NuSVR
from slimsvm.estimators.one_class_svm import OneClassSVM
from slimsvm.estimators.ordinal_svc import OrdinalSVC
from slimsvm.estimators.rank_svm import RankSVM
from slimsvm.estimators.sequence_svm import SequenceSVM
from slimsvm.estimators.structured_svm import StructuredSVM
from slimsvm.estimators.svc import SVC
from slimsvm.estimators.svr import SVR
from slimsvm.estimators.tables import TableClassifier, TableEstimator, TableRegressor
from slimsvm.estimators.transformers import LearnedAxes, NormalRanks

if TYPE_CHECKING:
    from slimsvm.shapley import Explanation

# Those that take one row per example, and so pass scikit-learn's checks; and the others.
ESTIMATORS = {"OrdinalSVC": OrdinalSVC, "SVC": SVC, "SVR": SVR}
STRUCTURED = {
    "OneClassSVM": OneClassSVM,
    "RankSVM": RankSVM,
    "SequenceSVM": SequenceSVM,
    "StructuredSVM": StructuredSVM,
}
# Those that have ν in place of C or ε: they pass scikit-learn's checks too.
NU = {"NuSVC": NuSVC, "NuSVR": NuSVR}
# Those that choose the rows they train on: they pass scikit-learn's checks too.
EDITING = {"CrossTrainedSVC": CrossTrainedSVC}
# All of one model.
OF_ONE_MODEL = ESTIMATORS | STRUCTURED | NU | EDITING
# Those that encode the columns of a table: several models, which only their own files hold.
OF_TABLES = {"TableClassifier": TableClassifier, "TableRegressor": TableRegressor}
# Steps of pipelines that files make again; other steps come back as what they do.
TRANSFORMERS = {"LearnedAxes": LearnedAxes, "NormalRanks": NormalRanks}


def load(path):
    """Read a fitted estimator from a file that ``save`` wrote.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    estimator
        An estimator of the saved class, ready to predict; or a Pipeline if it was saved with its steps. Scalers and
        `NormalRanks` are what they were, `LearnedAxes` has no derivatives and no estimator; other steps transform as
        they did, and cannot be fitted again. Parameters that a file of data cannot hold (functions, random states) have
        their defaults.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ModelFileError
        The file is not a model, or was truncated or altered. Nothing in a file is ever executed.

    Examples
    --------
    >>> import slimsvm, tempfile, os
    >>> clf = slimsvm.SVC().fit([[0.0], [1.0]], ["no", "yes"])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.slim")
    >>> clf.save(path)
    >>> slimsvm.load(path).predict([[0.9]]).tolist()
    ['yes']
    """
    return read_estimator(path, OF_ONE_MODEL | OF_TABLES, TRANSFORMERS)


@described(WRITING)
def save(estimator: Any, path) -> None:
    """Write a fitted estimator to a file, like its own ``save``: arrays and a JSON header, no code.

    Parameters
    ----------
    estimator : SVC, SVR or another estimator of slimsvm, fitted, or a Pipeline that ends with one
        The steps before the estimator may be `NormalRanks`, `LearnedAxes`, and of scikit-learn ``StandardScaler``,
        ``MinMaxScaler``, ``MaxAbsScaler``, ``RobustScaler``, ``SimpleImputer``, ``OneHotEncoder``, ``OrdinalEncoder``,
        ``TargetEncoder``, and ``ColumnTransformer``, ``FeatureUnion`` and ``Pipeline`` of these: the file contains what
        they do, and `load` returns the pipeline. From another pipeline save only the last step, and transform new rows
        yourself before `predict`; or keep the whole pipeline as Python objects with ``joblib.dump``.
    path

    Raises
    ------
    NotFittedError
    TypeError
        It is not an estimator of slimsvm, or a step of the pipeline is another one; the message says what to do.
        Or the kernel is the user's function, which a file of data cannot hold.
    OSError
        The file cannot be written; an older file of that name is unchanged.

    Examples
    --------
    >>> import slimsvm, tempfile, os
    >>> clf = slimsvm.SVC().fit([[0.0], [1.0]], ["no", "yes"])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.slim")
    >>> slimsvm.save(clf, path)
    >>> slimsvm.load(path).predict([[0.9]]).tolist()
    ['yes']

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> pipeline = make_pipeline(StandardScaler(), slimsvm.SVC()).fit([[0.0], [100.0]], ["no", "yes"])
    >>> slimsvm.save(pipeline, path)
    >>> slimsvm.load(path).predict([[90.0]]).tolist()
    ['yes']
    """
    if isinstance(estimator, TableEstimator):
        estimator.save(path)
        return
    steps, name, found = parts_of(estimator)
    if type(found) not in OF_ONE_MODEL.values():
        raise TypeError(f"a file holds a fitted estimator of slimsvm, found {type(found).__name__}")
    saving.save(found, path, steps=steps, name=name)


@described(WRITING)
def export(model: Any, path, to: str, **options: Any) -> None:
    """Write a fitted model in a form that needs no Python, or no training code; docs/deploy describes the forms.

    Parameters
    ----------
    model : SVC, SVR or another estimator of slimsvm, fitted, or a Pipeline that ends with one
        As in `save`; the written model takes rows as the pipeline does. Steps other than scalers have a place in "c"
        and "json" alone.
    path
    to : {"c", "onnx", "wasm", "json"}
    **options
        Options of the form: ``name``, ``dtype``, ``rows`` and ``alpha`` of a C header, ``dtype`` and ``alpha`` of an
        ONNX graph. See ``to_c`` and the others.

    Raises
    ------
    NotFittedError
    TypeError
        It is not such a model, or the form has no such option.
    ValueError
        The form does not support the kernel, the labels or a step of the pipeline, or the form is unknown.

    Examples
    --------
    >>> import slimsvm, tempfile, os
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> pipeline = make_pipeline(StandardScaler(), slimsvm.SVC()).fit([[0.0], [100.0]], ["no", "yes"])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.h")
    >>> slimsvm.export(pipeline, path, to="c", name="model")
    >>> from pathlib import Path
    >>> "int model_predict(const float *x)" in Path(path).read_text()
    True
    """
    if to not in TARGETS:
        raise ValueError(f"to must be one of {', '.join(map(repr, TARGETS))}, found {to!r}")
    for name in options:
        if to not in (forms := forms_with(name)):
            known = " or ".join(map(repr, forms))
            raise TypeError(
                f"{name} goes with to={known}, found to={to!r}" if forms else f"no form has an option {name}"
            )
    if isinstance(model, TableEstimator):
        model.export(path, to, **options)
        return
    plain = plain_model_of(model, encodes=True)
    check_path(parts_of(model)[2], path)
    writer_of(to)(plain, path, **options)


def explain(
    model: Any, X: Any, background: Any = None, *, n_permutations: int = 100, random_state: Any = 0
) -> Explanation:
    """Explain scores of a fitted model, or of a pipeline of scalers and a model; see the estimator's ``explain``.

    Parameters
    ----------
    model : SVC, SVR or another estimator of slimsvm, fitted, or a Pipeline of scalers and one
        As in `slimsvm.save`.
    X : array-like of shape (n_rows, n_features), or a sparse matrix
        Unscaled rows, as the pipeline takes them.
    background, n_permutations, random_state
        See `SVC.explain`.

    Returns
    -------
    Explanation

    Raises
    ------
    TypeError, ValueError
        As in `SVC.explain` and `slimsvm.save`.

    Examples
    --------
    >>> import slimsvm
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_iris(return_X_y=True)
    >>> pipeline = make_pipeline(StandardScaler(), slimsvm.SVC(max_basis=10, random_state=0)).fit(X, y)
    >>> slimsvm.explain(pipeline, X[:5], background=X[::10]).values.shape
    (5, 4, 3)
    """
    if isinstance(model, TableEstimator):
        return model.explain(X, background, n_permutations=n_permutations, random_state=random_state)
    return explained(model, X, background, n_permutations, random_state)
