"""Parameters that are True or False refuse texts, which are true whatever they say."""

import inspect

import numpy as np
import pytest

import slimsvm
from slimsvm.solvers import SOLVERS
from slimsvm.tasks import Chain

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = (X[:, 0] > 0).astype(int)
# Without effect; a number, too; a name of a score, too.
OTHERS = {"shrinking", "verbose", "refit"}


def flags_of(name):
    """Names of a class's parameters that are True or False by default."""
    cls = getattr(slimsvm, name)
    if not inspect.isclass(cls) or not hasattr(cls, "get_params"):
        return []
    parameters = inspect.signature(cls).parameters.values()
    return [own.name for own in parameters if isinstance(own.default, bool) and own.name not in OTHERS]


FLAGS = [(name, flag) for name in slimsvm.__all__ for flag in flags_of(name)]


def test_there_are_some():
    assert len(FLAGS) > 25


@pytest.mark.parametrize(("name", "flag"), FLAGS)
def test_a_text_is_refused(name, flag):
    cls = getattr(slimsvm, name)
    machine = cls(**{flag: "no"} | ({"task": Chain(2)} if name == "StructuredSVM" else {}))
    if cls in SOLVERS.values() or name == "Compact":
        machine = slimsvm.SVC(solver=machine)
    sequences = [X[:20], X[20:]], [Y[:20], Y[20:]]
    rows = {"SequenceSVM": sequences, "StructuredSVM": sequences}.get(name, (X, Y))
    fit = getattr(machine, "fit_resample", machine.fit)
    of_queries = {"groups": np.arange(40) // 5} if name == "RankSVM" else {}
    with pytest.raises(ValueError, match=f"{flag} must be True or False, found 'no'"):
        fit(*rows, **of_queries)
