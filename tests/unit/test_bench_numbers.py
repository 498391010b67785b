"""Numbers of the papers' report, computed a second time from the committed records, by other means than its own."""

import json
from itertools import groupby

import numpy as np
import pytest

from benchmarks.report import bsca, cpsp, cross_training, sampled_cuts
from benchmarks.report.doc_tables import RESULTS
from benchmarks.report.found import Found
from benchmarks.report.papers import PAPERS, claims
from benchmarks.report.verdicts import Verdict


def records_of(*folders):
    """Records of cells by their folders, as they lie there."""
    paths = [path for folder in folders for path in (RESULTS / "cells").glob(f"{folder}/*.json")]
    return [record for path in paths for record in json.loads(path.read_text(encoding="utf-8")).get("records", [])]


@pytest.fixture(scope="module")
def texts():
    """What each paper's section says: titles, and the lines of what was checked."""
    found = Found(RESULTS)
    return {
        module: "\n".join(line for title, text, *_ in module.items(found) for line in (title, str(text), *told(text)))
        for module in (sampled_cuts, bsca, cross_training, cpsp)
    }


def told(text):
    return [check.told for check in getattr(text, "checks", [])]


def test_every_claim_has_its_size_and_why_it_was_not_reproduced_or_at_a_smaller_size():
    rows = claims(Found(RESULTS))
    assert [row for row in rows if row["outcome"] not in ("reproduced", "not measured") and not row["why"]] == []
    assert [row for row in rows if row["outcome"] != "not measured" and row["size here / there"] == "–"] == []


def test_no_line_says_agree_without_a_size():
    found = Found(RESULTS)
    texts = [text for items in PAPERS.values() for _, text, *_ in items(found) if isinstance(text, Verdict)]
    lines = [line for text in texts for line in str(text).splitlines() if "checks agree" in line]
    assert len(lines) >= len(PAPERS)
    assert [line for line in lines if "size" not in line.lower()] == []


def test_errors_of_table_1_of_sampled_cuts(texts):
    for data, folder, C in (("checkerboard", "scaling-checkerboard", 1.0), ("covtype", "scaling-covtype", 1.0),
                            ("adult", "sample-size", 100.0)):  # fmt: skip
        fits = [fit for fit in records_of(f"sampled-cuts-{folder}") if "test_error" in fit and fit["C"] == C]
        n = max(fit["n_train"] for fit in fits)
        for method, (train, test) in {
            "uniform r=1000, paper's steps": {"checkerboard": (2.96, 3.14), "covtype": (18.34, 18.55),
                                              "adult": (7.65, 10.29)}[data],
            "violated r=400, paper's steps": {"checkerboard": (2.90, 2.99), "covtype": (18.16, 18.28),
                                              "adult": (7.43, 10.19)}[data],
        }.items():  # fmt: skip
            own = [fit for fit in fits if (fit["method"], fit["n_train"]) == (method, n)]
            for which, papers in (("train", train), ("test", test)):
                away = 100 * sum(fit[f"{which}_error"] for fit in own) / len(own) - papers
                assert f"{data}, {method}, {which} error: {away:+.2f} points" in texts[sampled_cuts]


def test_seconds_that_libsvm_is_expected_to_take(texts):
    svc = [fit for fit in records_of("sampled-cuts-scaling-checkerboard") if fit["method"] == "scikit-learn SVC"]
    (a, b, c) = sorted((np.log(fit["n_train"]), np.log(fit["cpu_seconds"])) for fit in svc)[-3:]
    x, y = np.array([a, b, c]).T
    slope = ((x - x.mean()) @ y) / ((x - x.mean()) @ (x - x.mean()))
    seconds = np.exp(c[1] + slope * (np.log(1_000_000) - c[0]))
    assert f"{seconds:,.0f} s of LIBSVM (expected by n^{slope:.2f}" in texts[sampled_cuts]


@pytest.mark.parametrize("data", ["susy", "covtype", "cod-rna", "ijcnn1", "adult"])
def test_last_errors_of_bsca_and_bsgd(data, texts):
    fits = [fit for fit in records_of(f"many-epochs-{data}") if fit["max_basis"] == 200]
    mean = {}
    for method in ("bsca", "bsgd"):
        runs = [fit["curve"][-5:] for fit in fits if fit["method"] == method]
        mean[method] = np.mean([np.mean([100 * point["test_error"] for point in run]) for run in runs])
    assert f"{data} {mean['bsca']:.3g}, {mean['bsgd']:.3g}" in texts[bsca]


@pytest.mark.parametrize("data", ["banana", "splice", "adult", "forest-50000"])
def test_vectors_and_errors_of_cross_training(data, texts):
    own = [fit for fit in records_of(f"cross-training-{data}") if fit["method"] == "paper"]
    right, vectors = 100 - 100 * np.mean([fit["test_error"] for fit in own]), np.mean([fit["n_vectors"] for fit in own])
    assert f"{data} {right:.1f} % with {vectors:,.0f} vectors" in texts[cross_training]


@pytest.mark.parametrize("data", ["CCAT", "OCR0", "adult", "ijcnn1"])
def test_errors_of_cpsp_and_of_the_exact_machine_at_one_number_of_rows(data, texts):
    fits = [fit for fit in records_of(f"subspace-{data}") if fit.get("part") == "sizes" and "test_error" in fit]
    sizes = {
        n: list(own) for n, own in groupby(sorted(fits, key=lambda fit: fit["n_train"]), lambda fit: fit["n_train"])
    }
    own = sizes[max(sizes)]
    sized = [fit for fit in own if fit["method"] == "CPSP (paper's)" and fit["max_basis"] <= 1000]
    k = max(fit["max_basis"] for fit in sized)
    of_cpsp = 100 * np.mean([fit["test_error"] for fit in sized if fit["max_basis"] == k])
    exact = 100 * np.mean([fit["test_error"] for fit in own if fit["method"] == "scikit-learn SVC"])
    assert f"{data} {of_cpsp:.2f}, {exact:.2f} ({k} vectors)" in texts[cpsp]
