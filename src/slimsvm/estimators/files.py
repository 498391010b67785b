"""A fitted estimator of any class, in a file and read from it."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline

from slimsvm.estimators import EDITING, ESTIMATORS, STRUCTURED
from slimsvm.estimators._shared.estimator_files import read_estimator


def load(path):
    """Read a fitted estimator from a file that ``save`` wrote.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    estimator
        Of the class that was saved, ready to predict. Parameters that a file of data cannot hold (functions, random
        states) have their defaults.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ModelFileError
        The file is not a model, or was truncated or altered. Nothing from a file is ever executed.

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
    """Write a fitted estimator to a file, as its own ``save`` does: arrays and a JSON header, no code.

    Parameters
    ----------
    estimator : SVC, SVR or another estimator of slimsvm, fitted
        A file holds one machine. Of a pipeline save the last step, and make the same rows of new ones before
        `predict`; or keep the whole pipeline, as Python objects, by ``joblib.dump``.
    path : str or path-like
        An existing file is replaced only once the new one is complete.

    Raises
    ------
    NotFittedError
        Before ``fit``.
    TypeError
        It is no estimator of slimsvm; the message says what to save of a pipeline or a search. Or the kernel is the
        user's function, which a file of data cannot hold.
    OSError
        The file cannot be written; an older file of that name is left as it was.

    Examples
    --------
    >>> import slimsvm, tempfile, os
    >>> clf = slimsvm.SVC().fit([[0.0], [1.0]], ["no", "yes"])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.slim")
    >>> slimsvm.save(clf, path)
    >>> slimsvm.load(path).predict([[0.9]]).tolist()
    ['yes']
    """
    if isinstance(estimator, Pipeline):
        steps = " and ".join(type(step).__name__ for _, step in estimator.steps[:-1])
        raise TypeError(
            f"a file holds one machine, found a Pipeline: slimsvm.save(pipeline[-1], path) saves its last step, for "
            f"rows that have been through {steps or 'nothing else'}; joblib.dump(pipeline, path) keeps all of it"
        )
    if hasattr(estimator, "best_estimator_"):
        raise TypeError(
            f"a file holds one machine, found a {type(estimator).__name__}: give its best_estimator_, or keep all of "
            "it by joblib.dump"
        )
    if type(estimator) not in (ESTIMATORS | STRUCTURED | EDITING).values():
        raise TypeError(f"a file holds a fitted estimator of slimsvm, found {type(estimator).__name__}")
    estimator.save(path)
