"""Docstrings that share text."""

import inspect

import pytest

import slimsvm
from slimsvm.docstrings import completed

SHARED = """
Parameters
----------
C : float
    Weight of a row's loss.
tol : float
    Tolerance.

Raises
------
ValueError
    Something is wrong.
"""


def test_a_name_alone_gets_its_description_and_default():
    def fit(C=1.0):
        """Train."""

    doc = completed("Train.\n\nParameters\n----------\nC\n    More of it.\n", SHARED, fit)
    assert doc.startswith(
        "Train.\n\nParameters\n----------\nC : float, default=1.0\n    Weight of a row's loss.\n    More of it.\n"
    )


def test_a_section_that_is_missing_is_added_in_its_place():
    doc = completed("Train.\n\nParameters\n----------\nC\n\nExamples\n--------\n>>> 1\n1\n", SHARED)
    assert doc.index("Parameters") < doc.index("Raises") < doc.index("Examples")
    assert "tol" not in doc
    assert "Raises" not in completed("Train.", SHARED, adds_sections=False)


def test_the_text_of_an_error_replaces_the_shared_one():
    doc = completed("Train.\n\nRaises\n------\nValueError\n    C is wrong.\n", SHARED)
    assert "C is wrong." in doc
    assert "Something" not in doc


def test_without_docstrings_nothing_is_made():
    assert completed(None, SHARED) is None
    assert completed("Train.", None) == "Train."


@pytest.mark.parametrize(
    "name", ["SVC", "SVR", "OneClassSVM", "NuSVC", "NuSVR", "OrdinalSVC", "RankSVM", "CrossTrainedSVC"]
)
def test_help_describes_the_arguments_of_methods(name):
    for method in ("fit", "predict", "decision_function"):
        found = getattr(getattr(slimsvm, name), method, None)
        if found is not None:
            doc = inspect.getdoc(found)
            assert "X : " in doc, method
            assert "Returns\n-------\n" in doc, method
