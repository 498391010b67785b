"""Callbacks of our own, for scikit-learn before 1.9: the protocol that scikit-learn's have, told the same."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV

from slimsvm import SVC, SVR, GridSearchSVC, OneClassSVM, OrdinalSVC, Refine
from slimsvm.estimators._shared.around_fit import (
    CallbackSupportMixin,
    OwnCallbackSupport,
    with_callbacks,
    with_own_callbacks,
)

AVAILABLE = SimpleNamespace(CallbackSupportMixin=CallbackSupportMixin, with_callbacks=with_callbacks)
OURS = SimpleNamespace(CallbackSupportMixin=OwnCallbackSupport, with_callbacks=with_own_callbacks)

SUPPORTS = pytest.mark.parametrize("support", [AVAILABLE, OURS], ids=["scikit-learn's or ours", "ours"])


class Watcher:
    """Writes down what it is told; stops after some iterations, or fails where it should."""

    def __init__(self, stop_after=None, fails_in=""):
        self.stop_after, self.fails_in, self.told = stop_after, fails_in, []

    def tell(self, hook, context, *facts):
        self.told.append((hook, context.task_name, context.task_id, context.parent is None, *facts))
        if hook == self.fails_in:
            raise RuntimeError(hook)

    def setup(self, estimator, context):
        self.tell("setup", context)

    def teardown(self, estimator, context):
        self.tell("teardown", context)

    def on_fit_task_begin(self, estimator, context, *, X, metadata):
        self.tell("begin", context, X.sum(), metadata)

    def on_fit_task_end(self, estimator, context, *, y, fitted_estimator=None):
        self.tell("end", context, y, getattr(fitted_estimator, "steps_", None))
        return self.stop_after == context.task_id + 1


def estimator(support, has_models=True):
    """One that counts to five."""

    class Counter(support.CallbackSupportMixin, BaseEstimator):
        @support.with_callbacks
        def fit(self, X, y=None):
            seen = {"estimator": self, "X": X, "y": y, "metadata": {"weight": 2}}
            context = self._init_callback_context(max_subtasks=5)
            context.call_on_fit_task_begin(**seen)
            for self.steps_ in range(1, 6):
                step = context.subcontext(task_name="iteration")
                step.call_on_fit_task_begin(**seen)
                attributes = {"steps_": self.steps_} if has_models else None
                if step.call_on_fit_task_end(**seen, reconstruction_attributes=lambda a=attributes: a):
                    break
            context.call_on_fit_task_end(**seen, reconstruction_attributes={})
            return self

    return Counter()


@SUPPORTS
def test_what_callbacks_are_told(support):
    first, second = Watcher(), Watcher(stop_after=2)
    fitted = estimator(support).set_callbacks(first, second).fit(np.ones(3), "y")
    assert fitted.steps_ == 2
    facts = (3.0, {"weight": 2})
    iterations = [
        event
        for i in range(2)
        for event in (("begin", "iteration", i, False, *facts), ("end", "iteration", i, False, "y", i + 1))
    ]
    expected = [("setup", "fit", 0, True), ("begin", "fit", 0, True, *facts), *iterations]
    expected += [("end", "fit", 0, True, "y", 2), ("teardown", "fit", 0, True)]
    assert first.told == second.told == expected
    assert set(vars(fitted)) == {"_skl_callbacks", "steps_"}


@SUPPORTS
def test_a_fit_without_callbacks_and_one_without_models(support):
    assert estimator(support).fit(np.ones(3)).steps_ == 5
    watcher = Watcher()
    estimator(support, has_models=False).set_callbacks(watcher).fit(np.ones(3))
    assert [event[-1] for event in watcher.told if event[:2] == ("end", "iteration")] == [None] * 5
    dropped = estimator(support).set_callbacks(watcher).set_callbacks()
    assert not hasattr(dropped, "_skl_callbacks")


@SUPPORTS
@pytest.mark.parametrize("hook", ["setup", "begin", "end", "teardown"])
def test_what_was_set_up_is_torn_down_whatever_fails(support, hook):
    before, failing, after = Watcher(), Watcher(fails_in=hook), Watcher()
    with pytest.raises(RuntimeError, match=hook):
        estimator(support).set_callbacks(before, failing, after).fit(np.ones(3))
    assert [watcher.told[-1][0] for watcher in (before, failing)] == ["teardown"] * 2
    assert [event[0] for event in after.told][-1:] == ([] if hook == "setup" else ["teardown"])


@SUPPORTS
def test_a_clone_has_the_same_callbacks(support):
    watcher = Watcher()
    clone(estimator(support).set_callbacks(watcher)).fit(np.ones(3))
    assert watcher.told
    assert not hasattr(clone(estimator(support)), "_skl_callbacks")


@SUPPORTS
@pytest.mark.parametrize("callback", [Watcher, object()], ids=["a class", "no methods"])
def test_what_is_no_callback_is_refused(support, callback):
    with pytest.raises(TypeError, match="callbacks must be instances"):
        estimator(support).set_callbacks(Watcher(), callback)


@SUPPORTS
def test_a_parameter_that_there_is_not_is_named(support):
    class Wrong(Watcher):
        def on_fit_task_begin(self, estimator, context, *, rows):
            pass

    with pytest.raises(TypeError, match=r"on_fit_task_begin of .*Wrong .*parameters .*'rows'"):
        estimator(support).set_callbacks(Wrong()).fit(np.ones(3))


FITS = {
    "pairs": SVC(max_iter=1),
    "classes against the rest": SVC(max_iter=1, multi_class="ovr"),
    "moved vectors": SVC(max_basis=3, max_iter=2),
    "learned vectors": SVC(solver=Refine(3), max_iter=2),
    "cuts": SVC(solver="exact-cuts", max_iter=2),
    "quantiles": SVR(loss="quantile", quantile=[0.2, 0.8], max_iter=1),
    "novelties": OneClassSVM(max_iter=1),
    "ordered classes": OrdinalSVC(max_basis=3, max_iter=2),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", FITS)
def test_fits_of_parts_take_a_callback_and_max_iter(name):
    """scikit-learn refuses more tasks than were foreseen, and parts and stages were not."""
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 4
    watcher = Watcher()
    fitted = clone(FITS[name]).set_params(random_state=0).set_callbacks(watcher).fit(X, y)
    ends = [told for told in watcher.told if told[:2] == ("end", "iteration")]
    assert len(ends) == len(fitted.history_) > 0
    assert watcher.told[-1][0] == "teardown"


@pytest.mark.parametrize("hook", ["begin", "end", None])
def test_callbacks_of_a_fit_that_raises_are_torn_down(hook):
    """The fit's attributes went back to what they were, with those that say what is to be torn down."""
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2
    watcher, fails = Watcher(fails_in=hook or ""), hook is None

    def kernel(A, B):
        if fails:
            raise RuntimeError("kernel")
        return np.asarray(A) @ np.asarray(B).T

    model = SVC(kernel=kernel).set_callbacks(watcher)
    with pytest.raises(RuntimeError, match=hook or "kernel"):
        model.fit(X, y)
    assert [told[0] for told in watcher.told].count("teardown") == 1
    fails, watcher.fails_in = False, ""
    model.fit(X, y)
    assert [told[0] for told in watcher.told].count("teardown") == 2


@pytest.mark.skipif(
    not hasattr(GridSearchCV, "set_callbacks"), reason="searches have callbacks from scikit-learn 1.9 on"
)
def test_callbacks_of_a_search():
    """They were taken, and never told."""
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    watcher = Watcher()
    search = GridSearchSVC(SVC(), {"C": [1.0, 10.0]}, cv=2).set_callbacks(watcher).fit(X, y)
    assert [told[0] for told in watcher.told] == ["setup", "begin", "end", "teardown"]
    watcher.fails_in = "end"
    with pytest.raises(RuntimeError):
        search.fit(X, y)
    assert (watcher.told[-1][0], search.predict(X).shape) == ("teardown", (40,))
