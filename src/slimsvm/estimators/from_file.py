"""A fitted estimator of any class, read from a file."""

from __future__ import annotations

from slimsvm.estimators import EDITING, ESTIMATORS, STRUCTURED
from slimsvm.estimators._shared.estimator_files import read_estimator


def load(path):
    """Read a fitted estimator from a file that ``save`` wrote.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    SVC, SVR, SequenceSVM or CrossTrainedSVC
        Ready to predict. Parameters that a file of data cannot hold (functions, random states) have their defaults.

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
