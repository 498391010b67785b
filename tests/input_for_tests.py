"""What the tests of bad input, of odd input and of files with faults share."""

import numpy as np
import pytest

from slimsvm.datasets import DataError, read_data
from slimsvm.estimators import ESTIMATORS

BOTH = pytest.mark.parametrize("name", sorted(ESTIMATORS))


def problem(name="SVC", n=40, d=3, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if name == "SVR":
        return X, np.sin(2 * X[:, 0])
    y = np.arange(n) % n_classes
    return X + 1.5 * y[:, None], y


def refused(call, *words, error=ValueError):
    """The call raises one error whose message has all the words."""
    with pytest.raises(error) as caught:
        call()
    for word in words:
        assert word in str(caught.value), f"{word!r} is not in: {caught.value}"
    return str(caught.value)


def check_fault(path, sentence, **options):
    """Reading the file is an error of one line that names it and says the sentence."""
    with pytest.raises(DataError) as caught:
        read_data(path, **options)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert sentence in message
    assert "\n" not in message
