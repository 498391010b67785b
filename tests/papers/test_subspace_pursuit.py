"""Joachims and Yu, "Sparse Kernel SVMs via Cutting-Plane Training" (2009): the paper's algorithm on one of its sets."""

import numpy as np
import pytest

from slimsvm import CPSP, SVC


@pytest.mark.parametrize(("n_runs", "tolerance"), [(3, 0.5), pytest.param(9, 0.3, marks=pytest.mark.full)])
def test_100_vectors_err_on_ijcnn1_as_the_authors_program_does(data, n_runs, tolerance):
    """2.98 % with C = 32 and γ = 2. With full steps, as Algorithm 2 is written, cuts are taken at poorer points.

    Single runs of ours err by 2.7 to 4.2 %, by the seed: the authors' one run is compared with the median of several.
    """
    rows = data("ijcnn1")
    form = {"method": "cutting-planes", "tol_relative": None, "fill_basis": False}
    errors = {"line-search": [], "full": []}
    for step, found in errors.items():
        for seed in range(n_runs if step == "line-search" else 1):
            solver = CPSP(100, step=step, keep="last" if step == "full" else "best", **form)
            clf = SVC(C=32, gamma=2, intercept="none", tol=0.01, solver=solver, random_state=seed)
            clf.fit(rows.X_train, rows.y_train)
            assert clf.status_ == "converged"
            assert clf.n_basis_ == 100
            found.append(100 * (1 - clf.score(rows.X_test, rows.y_test)))
    assert abs(np.median(errors["line-search"]) - 2.98) < tolerance
    assert 3.5 < np.mean(errors["full"]) < 6.0
