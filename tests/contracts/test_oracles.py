"""What every oracle promises: which cut it makes, and what sampled cuts have to do with the exact one."""

import itertools

import numpy as np
import pytest

import naive
from slimsvm.kernels import RBF
from slimsvm.parts.cuts import CutState, ExactOracle, UniformOracle, ViolatedOracle, oracles, reference_loss
from slimsvm.parts.problem import Problem
from slimsvm.rows import as_rows
from slimsvm.solvers import ExactCuts, UniformCuts
from slimsvm.tasks import Ranking
from slimsvm.tasks.multivariate import AtK
from tasks_for_tests import CASES

# Left out of averages of uniform samples: the mean over subsets of a measure like F1 is not the measure over all rows.
OVER_ALL_ROWS = {name for name, case in CASES.items() if not case.make().decomposes}
BIASED = {("uniform", name) for name in OVER_ALL_ROWS - {"error-rate"}}
# Two rankings of a query are equally good at the QP's solution: which is found is up to rounding.
BIASED.add(("uniform", "average-precision"))
WITHOUT_REDRAW = {
    "exact": lambda r: ExactOracle(),
    "uniform": lambda r: UniformOracle(r),
    "violated": lambda r: ViolatedOracle(r, redraw=False),
    "violated, the paper's": lambda r: ViolatedOracle(r, redraw=False, constant="all"),
}
UNBIASED = [pair for pair in itertools.product(sorted(WITHOUT_REDRAW), sorted(CASES)) if pair not in BIASED]


def test_every_oracle_is_tested():
    tested = {type(make(5)) for make in WITHOUT_REDRAW.values()}
    assert {found for found in vars(oracles).values() if hasattr(found, "needs_all_scores")} == tested


@pytest.fixture(params=sorted(CASES))
def name(request):
    return request.param


def state_after(case, seed, n_steps, sampled=False, C=0.5):
    """An oracle's view of a fit a few steps on, and the slow truth of that point: (state, scores, plain)."""
    task, X, _, examples = case.problem(seed)
    problem = Problem(as_rows(X), examples, task, RBF(0.3), C=C, precision="float64", random_state=seed)
    # Several steps of one solver; the other one's book is asked at the point they lead to.
    run = (UniformCuts(sample_size=20) if sampled else ExactCuts(step="full")).start(problem, None)
    for _ in range(n_steps):
        run.step()
    K = naive.kernel_matrix(RBF(0.3), X, X) + 1.0
    scores = sum((a * K[:, cut.rows] @ cut.coef for cut, a in zip(run.working_set.cuts, run.working_set.alpha)))
    plain = sum(a * cut.plain for cut, a in zip(run.working_set.cuts, run.working_set.alpha))
    augmented = None if sampled else reference_loss(task, run.target, examples)[0]
    return CutState(task, examples, run.book, run.working_set, run.target, augmented), scores, plain


def exact_cut(case, state, scores, plain):
    """(c, dense g over rows and columns, plain part) as the weighted mean over examples, written out.

    Of options that are equally good but for rounding it is the oracle's: which that is hangs on the processor.
    """
    examples, c, g, v = state.examples, 0.0, np.zeros_like(scores), np.zeros_like(plain)
    has_scores = state.augmented is not None
    found = as_dense(ExactOracle().find(state, np.inf, None).cut, g.shape) if has_scores else np.zeros_like(g)
    for rows, options, weight in case.written_out(examples):
        values = naive.option_values(options, scores[rows], plain)
        share = weight / examples.weights.sum()
        tied = np.flatnonzero(values >= values.max() - 1e-12)
        best = tied[np.argmin([np.abs(share * options[1][k] - found[rows]).max() for k in tied])]
        c += share * options[0][best]
        g[rows] += share * options[1][best]
        v += share * options[2][best]
    return c, g, v


def as_dense(cut, shape):
    assert np.all(np.diff(cut.rows) > 0)
    assert cut.rows.dtype == np.int64
    g = np.zeros(shape)
    g[cut.rows] = cut.coef
    np.testing.assert_allclose(cut.intercept, g.sum(axis=0), atol=1e-14)
    return g


@pytest.mark.parametrize("seed", [0, 1])
def test_exact_cut_is_the_mean_over_all_examples(name, seed):
    case = CASES[name]
    state, scores, plain = state_after(case, seed, 3)
    np.testing.assert_allclose(state.target.scores, scores, atol=1e-12)
    cut = ExactOracle().find(state, np.inf, None).cut
    c, g, v = exact_cut(case, state, scores, plain)
    assert cut.c == pytest.approx(c, rel=1e-12)
    np.testing.assert_allclose(as_dense(cut, g.shape), g, atol=1e-14)
    np.testing.assert_allclose(cut.plain, v, atol=1e-14)
    assert (cut.coef != 0).any(axis=1).all()


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.full)])
@pytest.mark.parametrize(("oracle", "task"), UNBIASED)
def test_cuts_average_to_the_exact_cut(oracle, task, seed):
    case, n_draws, rng = CASES[task], 400, np.random.default_rng(seed)
    state, scores, plain = state_after(case, seed, 3, sampled=oracle == "uniform")
    c, g, v = exact_cut(case, state, scores, plain)
    exact = np.concatenate([[c], g.ravel(), v])
    drawn = []
    for _ in range(n_draws):
        cut = WITHOUT_REDRAW[oracle](5).find(state, -np.inf, rng).cut
        drawn.append(np.concatenate([[cut.c], as_dense(cut, g.shape).ravel(), cut.plain]))
    error = np.abs(np.mean(drawn, axis=0) - exact)
    # Five standard deviations of each coefficient, and of all together.
    deviation = np.std(drawn, axis=0) / np.sqrt(n_draws)
    assert (error <= 5 * deviation + 2 * np.abs(exact).max() / n_draws).all()
    assert np.sum(error**2) <= 4 * np.sum(deviation**2) + 1e-20
    if oracle == "exact":
        assert error.max() < 1e-12
    elif task not in OVER_ALL_ROWS:
        assert len(np.unique(np.array(drawn), axis=0)) > 1


@pytest.mark.turns("threshold")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("threshold", [0.001, 0.01])
def test_a_sampled_cut_is_violated_whenever_the_exact_one_is(name, seed, threshold):
    """By more than eps at the solution of the QP; after any number of steps."""
    violated = 0
    for n_steps in (1, 2, 4):
        # A cheap query's loss is linear near 0: one cut solves it.
        C = 5.0 if isinstance(CASES[name].make(), Ranking) else 0.5
        state, scores, plain = state_after(CASES[name], seed, n_steps, C=C)
        exact = ExactOracle().find(state, np.inf, None).cut
        limit = state.working_set.xi + threshold
        if exact.c - np.sum(exact.coef * scores[exact.rows]) - exact.plain @ plain <= limit:
            continue
        violated += 1
        proposal = ViolatedOracle(3).find(state, limit, np.random.default_rng(seed))
        cut = proposal.cut
        assert cut.c - np.sum(cut.coef * scores[cut.rows]) - cut.plain @ plain > limit
        assert proposal.redraws >= 0
    assert violated > 0 or isinstance(CASES[name].make(), AtK)  # some of which one cut solves


def test_redraws_are_counted_and_needed():
    """A small sample is not violated every time; without the redraw such cuts come through."""
    state, scores, _ = state_after(CASES["binary"], 0, 6)
    limit = state.working_set.xi + 0.001
    rng = np.random.default_rng(0)
    redraws = [ViolatedOracle(3).find(state, limit, rng).redraws for _ in range(50)]
    assert max(redraws) > 0
    cuts = [ViolatedOracle(3, redraw=False).find(state, limit, rng).cut for _ in range(50)]
    values = [cut.c - np.sum(cut.coef * scores[cut.rows]) for cut in cuts]
    assert min(values) < limit < max(values)


def test_sampled_cuts_have_at_most_the_examples_asked_for(name):
    for oracle in ("uniform", "violated"):
        state, _, _ = state_after(CASES[name], 0, 2, sampled=oracle == "uniform")
        cut = WITHOUT_REDRAW[oracle](4).find(state, -np.inf, np.random.default_rng(0)).cut
        of_example = state.examples.example_of_rows()[cut.rows]
        n_units = len(np.unique(of_example)) if state.task.decomposes else len(cut.rows)
        assert n_units <= 4
        assert n_units > 0 or isinstance(state.task, AtK)  # a sample's k rows may all be positive: nothing to flip


def test_the_papers_constant_is_that_of_all_examples(name):
    """Algorithm 3's c is exact; only g is sampled. With 0/1 losses the sample's constant is no other."""
    state, scores, plain = state_after(CASES[name], 1, 3)
    c, _, _ = exact_cut(CASES[name], state, scores, plain)
    rng = np.random.default_rng(0)
    for redraw in (True, False):
        oracle = ViolatedOracle(4, redraw, constant="sample" if name in ("binary", "multiclass") else "all")
        assert oracle.find(state, 0.01, rng).cut.c == pytest.approx(c, rel=1e-12)


def test_costs_of_zero_do_not_drop_terms():
    """A wrong class that costs nothing still has a coefficient: it must be among what is sampled."""
    case = CASES["multiclass-costs"]
    state, scores, plain = state_after(case, 0, 3)
    task, examples = state.task, state.examples
    scores = scores.copy()
    free = np.flatnonzero(examples.labels == 1)
    scores[free] = [0.0, 0.0, 5.0]
    augmented = task.augment(scores, plain, examples)
    assert (augmented.delta[free] == 0).all()
    assert augmented.coef[free].any()
    state = CutState(task, examples, state.book, state.working_set, state.target, augmented)
    rng = np.random.default_rng(0)
    seen = np.concatenate([ViolatedOracle(4, redraw=False).find(state, 0, rng).cut.rows for _ in range(100)])
    assert set(free) <= set(seen)


@pytest.mark.turns("patience")
@pytest.mark.parametrize("patience", [1, 4])
def test_uniform_gives_up_after_so_many_samples_in_a_row(name, patience):
    state, _, _ = state_after(CASES[name], 0, 2, sampled=True)
    proposal = UniformOracle(20, patience).find(state, np.inf, np.random.default_rng(0))
    assert proposal.cut is None
    assert proposal.redraws == patience
    assert np.isfinite(proposal.loss)


def test_uniform_cuts_by_the_first_sample_that_breaks_the_rule():
    """Samples with patience 1, one after another from the same random numbers, are those that patience 6 looks at."""
    state, _, _ = state_after(CASES["binary"], 0, 2, sampled=True)
    found = set()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        singles = [UniformOracle(20, 1).find(state, np.inf, rng).loss for _ in range(6)]
        threshold = np.mean(np.sort(singles)[-2:])  # which one of the six is above
        first = int(np.argmax(singles))
        proposal = UniformOracle(20, 6).find(state, threshold, np.random.default_rng(seed))
        assert proposal.cut is not None
        assert proposal.redraws == first
        assert proposal.loss == pytest.approx(singles[first], rel=1e-12)
        found.add(first)
    assert len(found) > 3


def test_uniform_judges_by_the_samples_loss():
    """With every row in the sample many times over, the estimate is the loss over all rows."""
    case = CASES["binary"]
    state, scores, plain = state_after(case, 0, 2, sampled=True)
    proposal = UniformOracle(100_000, 1).find(state, np.inf, np.random.default_rng(0))
    values = [w * naive.option_values(o, scores[rows], plain).max() for rows, o, w in case.written_out(state.examples)]
    assert proposal.loss == pytest.approx(sum(values) / state.examples.weights.sum(), rel=0.02)


def test_uniform_products_are_those_with_the_live_cuts(name):
    state, _, _ = state_after(CASES[name], 0, 3, sampled=True)
    proposal = UniformOracle(10).find(state, -np.inf, np.random.default_rng(0))
    cut, X = proposal.cut, CASES[name].problem(0)[1]
    K = naive.kernel_matrix(RBF(0.3), X, X) + 1.0
    assert len(state.working_set.cuts) > 0
    for live, product in zip(state.working_set.cuts, proposal.products, strict=True):
        expected = np.sum(live.coef * (K[np.ix_(live.rows, cut.rows)] @ cut.coef))
        assert product == pytest.approx(expected, abs=1e-12)


def test_nothing_violated_gives_an_empty_cut():
    """Where no example has a coefficient there is nothing to draw from: an empty cut, not an error."""
    state, _, _ = state_after(CASES["binary"], 0, 2)
    task, examples = state.task, state.examples
    augmented = task.augment(1e3 * examples.labels[:, None].astype(float), np.zeros(0), examples)
    assert not augmented.coef.any()
    state = CutState(task, examples, state.book, state.working_set, state.target, augmented)
    cut = ViolatedOracle(5).find(state, 0.0, np.random.default_rng(0)).cut
    assert (cut.c, len(cut.rows)) == (0.0, 0)
