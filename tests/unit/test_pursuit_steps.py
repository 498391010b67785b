"""Steps of a pursuit: how many vectors join at a time, and what moves them."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification

from slimsvm import CPSP, SVC
from slimsvm.bases.preimage import sums_over


@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_weighted_sums_of_terms_do_not_depend_on_threads(wrap):
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((900, 7)).astype(np.float32)
    terms = (rng.standard_normal((900, 450)) * (rng.random((900, 450)) < 0.3)).astype(np.float32)
    sums = [sums_over(weights, wrap(terms), n_jobs) for n_jobs in (1, 4)]
    np.testing.assert_array_equal(*sums)
    np.testing.assert_allclose(sums[0], weights.T.astype(float) @ terms, atol=1e-3)


def test_many_vectors_at_a_time_while_there_are_few_and_few_at_the_end():
    X, y = make_classification(400, 20, n_informative=15, random_state=0)

    def added(max_basis, **settings):
        clf = SVC(solver=CPSP(max_basis, tol_relative=0.1, **settings), random_state=0).fit(X, y)
        return [record["n_added"] for record in clf.history_ if record["n_added"]]

    assert added(100) == [8] * 4 + [8, 10, 12] + [5] * 7 + [3]
    assert added(12) == [4, 4, 4]
    assert added(12, vectors_per_cut=6) == [6, 6]
