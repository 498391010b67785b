"""A fitted estimator of any class, in a file and read from it."""

from __future__ import annotations

from typing import Any

from slimsvm.deploy import TARGETS, forms_with, writer_of
from slimsvm.estimators import EDITING, ESTIMATORS, STRUCTURED
from slimsvm.estimators._shared import estimator_files
from slimsvm.estimators._shared.estimator_files import read_estimator
from slimsvm.estimators._shared.pipelines import parts_of, plain_model_of
from slimsvm.estimators._shared.written import check_target


def load(path):
    """Read a fitted estimator from a file that ``save`` wrote.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    estimator
        An estimator of the saved class, ready to predict; or a Pipeline if it was saved with its scalers. Parameters
        that a file of data cannot hold (functions, random states) have their defaults.

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
    return read_estimator(path, ESTIMATORS | STRUCTURED | EDITING)


def save(estimator: Any, path) -> None:
    """Write a fitted estimator to a file, like its own ``save``: arrays and a JSON header, no code.

    Parameters
    ----------
    estimator : SVC, SVR or another estimator of slimsvm, fitted, or a Pipeline that ends with one
        The steps before the estimator may be ``StandardScaler``, ``MinMaxScaler``, ``MaxAbsScaler`` and
        ``RobustScaler`` of scikit-learn: the file contains them, and `load` returns the pipeline. From another pipeline
        save only the last step, and transform new rows yourself before `predict`; or keep the whole pipeline as Python
        objects with ``joblib.dump``.
    path : str or path-like
        An existing file is replaced only once the new one is complete.

    Raises
    ------
    NotFittedError
        Before ``fit``.
    TypeError
        It is not an estimator of slimsvm, or a step of the pipeline is not such a scaler; the message says what to do.
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
    scalers, name, machine = parts_of(estimator)
    if type(machine) not in (ESTIMATORS | STRUCTURED | EDITING).values():
        raise TypeError(f"a file holds a fitted estimator of slimsvm, found {type(machine).__name__}")
    estimator_files.save(machine, path, scalers=scalers, name=name)


def export(model: Any, path, to: str, **options: Any) -> None:
    """Write a fitted model in a form that needs no Python, or no training code; docs/deploy describes the forms.

    Parameters
    ----------
    model : SVC, SVR or another estimator of slimsvm, fitted, or a Pipeline of scalers and one
        As in `save`; the written model takes unscaled rows, as the pipeline does.
    path : str or path-like
        An existing file is replaced only once the new one is complete.
    to : {"c", "onnx", "wasm", "json"}
    **options
        Options of the form: ``name``, ``dtype`` and ``rows`` of a C header, ``dtype`` of an ONNX graph. See ``to_c``
        and the others.

    Raises
    ------
    NotFittedError
        Before ``fit``.
    TypeError
        It is not such a model, or the form has no such option.
    ValueError
        The form does not support the kernel or the labels, or the form is unknown.

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
    plain = plain_model_of(model)
    check_target(parts_of(model)[2], path)
    writer_of(to)(plain, path, **options)
