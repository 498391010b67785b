"""Support vector classification."""

from __future__ import annotations

import warnings
from numbers import Integral

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from slimsvm import editing, solvers, tasks
from slimsvm.deploy.decisions import TIES_OF_PAIRS
from slimsvm.estimators._shared import with_shared_parameters
from slimsvm.estimators._shared.around_fit import afresh, unchanged_by_failure, with_callbacks
from slimsvm.estimators._shared.automatic import reduces, resolve_multi_class
from slimsvm.estimators._shared.calibrating import Probabilities
from slimsvm.estimators._shared.conformal import PredictsSets
from slimsvm.estimators._shared.input_checks import (
    check_classes,
    check_cost_matrix,
    check_finite,
    check_option,
    class_codes,
    found_classes,
    named_classes,
    takes_label_sets,
)
from slimsvm.estimators._shared.kernel_estimator import KernelEstimator
from slimsvm.estimators._shared.streams import begin_stream, fit_chunk, has_partial_fit
from slimsvm.parts.problem import Problem, check_flag
from slimsvm.parts.solver import Solver
from slimsvm.rows import as_rows

SEEN_ROWS = 1000  # training rows, evenly spread, on which few vectors must be right more often than one class for all


@with_shared_parameters
class SVC(Probabilities, PredictsSets, ClassifierMixin, KernelEstimator):
    """Kernel support vector classification, a drop-in replacement for `sklearn.svm.SVC`.

    Minimises ½‖w‖² + C Σ ω_i ℓ_i. For two classes ℓ is the hinge loss max(0, 1 − y f(x)). For more classes there is a
    two-class problem for each pair, or one problem with a score for each class and Crammer and Singer's loss
    max_c [cost(y, c) + s_c − s_y] (``multi_class``). For several labels per row (an indicator matrix y) ℓ is the sum
    of the labels' hinge losses, over one basis. ``loss`` chooses other losses: logistic, whose scores are log odds, and
    squared hinge; for two classes also the ramp loss, and measures over all rows such as F1 or ROC area.

    Parameters
    ----------
    C, kernel, degree, gamma, coef0, shrinking, cache_size
    probability
    tol
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the rows of each class. "balanced" gives every class the same total weight
        (scikit-learn's ``SVC`` counts rows and ignores their weights).
    verbose, max_iter
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Columns of the decision values for more than two classes: one per class, or one per pair of classes.
    break_ties : bool, default=False
        For pairs of classes: predict the class with the largest "ovr" decision value, not the one with most votes.
    random_state, solver, max_basis, intercept
    cost_matrix : array-like of shape (n_classes, n_classes) or None, default=None
        Δ(y, ŷ) ≥ 0 with a zero diagonal, in the order of ``classes_``: the margin required between the classes.
    loss : str or task, default="hinge"
        "logistic": log(1 + exp(−y f(x))) for two classes and for each of several labels, log Σ_c exp(s_c − s_y) for
        several classes. ``predict_proba`` is then 1 / (1 + exp(−f)), or the softmax of the scores, whatever
        ``probability`` says. "squared_hinge": max(0, 1 − y f(x))²; with several classes each against the rest, over
        one basis. With a number as ``max_basis``, both learn vectors. Without one, all rows are vectors up to 3,000
        rows, by Newton's method. With more rows, the unit vectors are these with the linear kernel and up to 1,000
        features, which loses nothing; otherwise 1,000 rows are drawn, with a warning.
        All other losses are for two classes. "ramp": the hinge capped at 2, so that outliers are not support vectors,
        by the exact solver. Measures over all rows: "f1", "roc_auc", "prbep" (precision/recall break-even point),
        "precision_at_k", "recall_at_k" (k is the number of positive rows), "error_rate" (the same as "hinge"), or an
        object such as `slimsvm.tasks.FBeta(2.0)`. ``classes_[1]`` is the positive class. Training optimises the
        measure, and `score` returns it; weights of rows are not supported. Losses that only rank set ``intercept_`` so
        that the number of training rows predicted positive is the loss's k.
    max_seconds, precision, memory_limit, n_jobs
    multi_class : {"auto", "crammer-singer", "ovo", "ovr"}, default="auto"
        "crammer-singer": one problem with a score for each class. "ovr": a problem and a score for each class, against
        the rest, as in `sklearn.svm.LinearSVC`. "ovo": one problem for each pair (a, b), a < b, as in LIBSVM.
        ``basis_coef_`` then has a column for each pair, positive for a, over a basis that all pairs share;
        ``dual_coef_`` has the same numbers in scikit-learn's n_classes − 1 rows. "auto" chooses "ovo" with the exact
        solver (unless there is a ``cost_matrix``) and with moved vectors (`slimsvm.Compact`), the one with fewer errors
        with ``max_basis="auto"``, and "crammer-singer" otherwise. The pairs of more than 500 classes would fill the
        memory: "auto" then chooses "ovr", or "crammer-singer" for few vectors.
        ``multi_class_`` has the choice.
    warm_start, calibration_size

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        For an indicator matrix, the numbers of its columns.
    multilabel_ : bool
        Whether y was an indicator matrix.
    multi_class_, intercept_kind_ : str
        The choices made for ``multi_class`` and ``intercept``.
    n_basis_, basis_vectors_, basis_coef_, coef_, intercept_, support_, support_vectors_, n_support_, dual_coef_
    class_weight_ : ndarray of shape (n_classes,)
        The factors that ``class_weight`` stands for.
    fit_status_, shape_fit_, objective_, lower_bound_, gap_, status_, history_
    n_iter_ : ndarray of int32
        Iterations: one number, or for pairs of classes one for each pair.
    n_kernel_evals_, model_, kernel_, solver_, C_, precision_, validation_, calibration_
    guarantee_, nonconformity_, nonconformity_classes_, calibration_indices_

    References
    ----------
    Yu, Joachims: Training Structural SVMs with Kernels Using Sampled Cuts, KDD 2008, Algorithms 1 to 3.
    Joachims: A Support Vector Method for Multivariate Performance Measures, ICML 2005.
    Crammer, Singer: On the Algorithmic Implementation of Multiclass Kernel-based Vector Machines, JMLR 2001.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from slimsvm import SVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = make_pipeline(StandardScaler(), SVC(C=1.0)).fit(X, y)
    >>> bool(clf.score(X, y) > 0.97)
    True
    """

    _y_numeric = False
    _decisive = ("loss", "cost_matrix")
    _takes_blocks = True
    _takes_objects = True
    _takes_labels = True
    multilabel_ = False
    _of_one_weighted_class = "Invalid input - all samples with positive weights belong to the same class"

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        takes_classes = isinstance(self.loss, str) and (self.loss == "hinge" or self._is_smooth)
        tags.classifier_tags.multi_class = takes_classes
        tags.classifier_tags.multi_label = takes_classes and takes_label_sets(self.solver)
        return tags

    def __init__(
        self, *, C=1.0, kernel="rbf", degree=3, gamma="scale", coef0=0.0, shrinking=True, probability=False, tol=1e-3,
        cache_size=200, class_weight=None, verbose=False, max_iter=-1, decision_function_shape="ovr", break_ties=False,
        random_state=None, solver="auto", max_basis=None, intercept="auto", cost_matrix=None, loss="hinge",
        max_seconds=None, precision="auto", memory_limit=2000, n_jobs=None, multi_class="auto", warm_start=False,
        calibration_size=None,
    ):  # fmt: skip
        self.C, self.kernel, self.degree, self.gamma, self.coef0 = C, kernel, degree, gamma, coef0
        self.shrinking, self.probability, self.tol, self.cache_size = shrinking, probability, tol, cache_size
        self.class_weight, self.verbose, self.max_iter = class_weight, verbose, max_iter
        self.decision_function_shape, self.break_ties = decision_function_shape, break_ties
        self.random_state, self.solver, self.max_basis, self.intercept = random_state, solver, max_basis, intercept
        self.cost_matrix, self.loss, self.max_seconds, self.precision = cost_matrix, loss, max_seconds, precision
        self.memory_limit, self.n_jobs, self.multi_class = memory_limit, n_jobs, multi_class
        self.warm_start, self.calibration_size = warm_start, calibration_size

    @property
    def _is_smooth(self) -> bool:
        """Whether the loss has two derivatives."""
        return isinstance(self.loss, str) and self.loss in tasks.CLASS_LOSSES

    @with_callbacks
    @afresh
    def fit(self, X, y, sample_weight=None):
        """Train.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a sequence of n_samples objects
            Any real dtype; memory maps are read in blocks. For ``kernel="precomputed"`` the kernel matrix. If
            ``kernel`` is a function, also texts, lists, graphs or whatever it takes, as in scikit-learn: the function
            gets them in their container, and the matrix of its values is held in memory. ``max_basis`` chooses rows.
        y : array-like of shape (n_samples,), or array-like or sparse matrix of shape (n_samples, n_labels)
            Class labels, numbers or strings; or an indicator matrix of 0 and 1, one column per label.
        sample_weight

        Warns
        -----
        ConvergenceWarning
            A limit ended the fit, or the model of ``max_basis`` vectors classifies the training rows no better than
            one class for all rows would.
        """
        check_option("decision_function_shape", self.decision_function_shape, ("ovr", "ovo"))
        check_flag("break_ties", self.break_ties)
        X, y = self._check_X(X, reset=True, y=y)
        X, y, weights, index = self._training_rows(X, y, sample_weight)
        self.multilabel_ = y.ndim == 2
        if self.multilabel_:
            check_classes(y)
            self.classes_ = np.arange(y.shape[1])
            task = self._task()
            self._solve(X, y, task.encode(y, weights), task, weights, index)
            return self
        self.classes_, codes = found_classes(y)
        multi_class = self._resolve_multi_class(X, weights)
        self.multi_class_ = "ovo" if multi_class == "either" else multi_class
        if len(self.classes_) < 2:
            found = f"y must hold at least two classes, found 1 class: {self.classes_[0]!s}"
            if weights is not None:
                found = f"{self._of_one_weighted_class}. Among them {found}"
            raise ValueError(found)
        self.class_weight_ = self._class_weights(y, weights)
        task = self._task(or_scores=multi_class == "either")
        examples = task.encode(codes, self._row_weights(codes, weights))
        self._solve(X, y, examples, task, weights, index, codes=codes)
        if self.max_basis is not None and self.multi_class_ == "crammer-singer" and len(self.classes_) > 2:
            self._warn_of_chance(as_rows(X), codes)
        return self

    def _keep(self, fit, trained):
        """Set the attributes of a fit, with what the solver made of several classes."""
        super()._keep(fit, trained)
        if fit.solved is not None and self.multi_class == "auto" and not self.multilabel_:
            self.multi_class_ = "ovo" if fit.solved.task.class_pairs() else "crammer-singer"

    def _iterations(self, n_iter, history):
        """``n_iter_`` as in scikit-learn: one number per problem that was solved."""
        of_pairs = [record["iterations"] for record in history if "pair" in record or "target" in record]
        if not of_pairs and (n_iter or getattr(self, "multi_class_", None) != "ovo"):
            return np.array([n_iter], np.int32)
        not_reached = self.model_.coef.shape[1] - len(of_pairs)
        return np.array(of_pairs + [0] * not_reached, np.int32)

    def _warn_of_chance(self, rows, codes):
        """Warn if the model of few vectors errs as often on training rows as one class for all of them would.

        Crammer and Singer's loss is lowest for the model 0 if no model of so few vectors reaches the margins.
        """
        if not rows.in_memory:
            return
        some = np.unique(np.linspace(0, rows.n_rows - 1, SEEN_ROWS, dtype=np.int64))
        scores = self.model_.scores(rows.take(some, self.model_.dtype), self.n_jobs)
        right, most = np.mean(scores.argmax(axis=1) == codes[some]), np.bincount(codes[some]).max() / len(some)
        if right <= most:
            warnings.warn(
                f"the model of {self.n_basis_} vectors is right on {100 * right:.1f} % of the training rows, and one "
                f"class for all rows would be right on {100 * most:.1f} %; {len(self.classes_)} classes need more "
                'vectors: raise max_basis, or give max_basis="auto", which finds a number that is enough',
                ConvergenceWarning,
                stacklevel=5,
            )

    def _class_weights(self, y, weights):
        """A positive factor for each class."""
        if self.class_weight is None:
            return np.ones(len(self.classes_))
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            # Written out: compute_class_weight knows weights of rows only in the newest versions of scikit-learn.
            totals = np.bincount(class_codes(y, self.classes_), weights, len(self.classes_))
            with np.errstate(divide="ignore"):
                factors = totals.sum() / (len(totals) * totals)
        else:
            factors = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        bad = ~(np.isfinite(factors) & (factors > 0))
        if bad.any():
            c = int(np.argmax(bad))
            raise ValueError(
                f"class_weight must hold positive numbers; found {factors[c]} for class {self.classes_[c]!s}"
            )
        return factors

    def _row_weights(self, codes, weights):
        """Class weights times sample weights."""
        return self.class_weight_[codes] if weights is None else self.class_weight_[codes] * weights

    def _encode(self, y, weights):
        if self.loss == "ramp":
            raise ValueError("loss='ramp' is not convex: no bound on its objective is known")
        if self.multilabel_:
            return self._task(), self._task().encode(y, weights), 0.0
        task, codes = self._task(), class_codes(y, self.classes_)
        if not hasattr(self, "class_weight_"):  # read from a file
            self.class_weight_ = self._class_weights(y, weights)
        return task, task.encode(codes, self._row_weights(codes, weights)), 0.0

    def _task(self, or_scores: bool = False) -> tasks.Task:
        """The task for the classes found; ``or_scores``: pairs of classes, or one score per class if that errs less."""
        k = len(self.classes_)
        if self.multilabel_:
            loss = self.loss if self._is_smooth else "hinge"
            for name, default in (("loss", loss), ("cost_matrix", None), ("class_weight", None)):
                if getattr(self, name) is not default and getattr(self, name) != default:
                    raise ValueError(f"{name}={getattr(self, name)!r} is for classes, found an indicator matrix y")
            return tasks.task_of_classes(loss, k, has_labels=True) if self._is_smooth else tasks.Multilabel(k)
        if self._is_smooth:
            if self.cost_matrix is not None:
                raise ValueError(f"cost_matrix goes with loss='hinge', found loss={self.loss!r}")
            return tasks.task_of_classes(self.loss, k, has_labels=False)
        if self.loss != "hinge":
            return self._task_of_ramp(k) if self.loss == "ramp" else self._task_over_all_rows(k)
        cost = None if self.cost_matrix is None else check_cost_matrix(self.cost_matrix, k)
        multi_class = getattr(self, "multi_class_", "crammer-singer")
        if k > 2 and multi_class in ("ovo", "ovr"):
            if cost is None:
                return tasks.HingeOneVsRest(k) if multi_class == "ovr" else tasks.OneVsOne(k, or_scores)
            found = "pairs of classes" if multi_class == "ovo" else "each class against the rest"
            raise ValueError(f"cost_matrix goes with multi_class='crammer-singer', found {found} ({multi_class!r})")
        if k > 2:
            return tasks.Multiclass(k, cost)
        return tasks.Binary() if cost is None else tasks.Binary(cost_negative=cost[0, 1], cost_positive=cost[1, 0])

    def _resolve_multi_class(self, X, weights) -> str:
        """The value of ``multi_class``, or what "auto" stands for."""
        check_option("multi_class", self.multi_class, ("auto", "crammer-singer", "ovo", "ovr"))
        if self._is_smooth:
            if self.multi_class in ("ovo", "ovr") and len(self.classes_) > 2:
                raise ValueError(f"multi_class={self.multi_class!r} goes with loss='hinge', found loss={self.loss!r}")
            return "crammer-singer"
        if self.multi_class != "auto":
            return self.multi_class
        is_reduced = isinstance(self.solver, str) and self.solver == "auto" and isinstance(self.max_basis, Integral)
        if is_reduced and len(self.classes_) > 2:
            is_reduced = reduces(as_rows(X), self._resolve_kernel(X, weights))
        has_costs = self.cost_matrix is not None
        k = len(self.classes_)
        return resolve_multi_class(self.solver, self.max_basis, self._learns_metric, has_costs, is_reduced, k)

    def _task_over_all_rows(self, k: int) -> tasks.OverAllRows:
        """The task of a loss over all rows."""
        if not isinstance(self.loss, tasks.OverAllRows):
            check_option("loss", self.loss, ("hinge", *tasks.CLASS_LOSSES, *tasks.MULTIVARIATE, "ramp"))
        self._check_two_classes(k)
        if self.cost_matrix is not None:
            raise ValueError(f"cost_matrix goes with loss='hinge', found loss={self.loss!r}")
        return self.loss if isinstance(self.loss, tasks.OverAllRows) else tasks.MULTIVARIATE[self.loss]()

    def _task_of_ramp(self, k: int) -> tasks.Binary:
        """The hinge loss, because `Ramp` solves a sequence of hinge problems without some of the rows."""
        self._check_two_classes(k)
        if self.cost_matrix is not None:
            raise ValueError("loss='ramp' counts all errors alike, found a cost_matrix")
        return tasks.Binary()

    def _check_two_classes(self, k: int) -> None:
        """Raise a ValueError if a loss for two classes gets more."""
        if k != 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: "
                f"loss={self.loss!r} is for two classes, found {k} classes"
            )

    def _resolve_solver(self, problem: Problem) -> Solver:
        """The solver that the parameters stand for; the ramp loss has its own."""
        if self.loss != "ramp":
            return super()._resolve_solver(problem)
        is_exact = isinstance(self.solver, solvers.Exact) or self.solver in ("auto", "exact")
        if not is_exact or self.max_basis is not None or self._learns_metric:
            raise ValueError(
                "loss='ramp' is solved by solver='exact' (or 'auto', which takes it), without max_basis and "
                f"gamma='learn'; found solver={self.solver!r}, max_basis={self.max_basis!r}, gamma={self.gamma!r}"
            )
        return editing.Ramp(self.solver if isinstance(self.solver, solvers.Exact) else None)

    @available_if(has_partial_fit)
    @unchanged_by_failure
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Process one more chunk of rows, once, with steps of the budgeted or online solver.

        `LASVM` (two classes) keeps the rows of S with their dual variables; ``lower_bound_`` holds for all rows seen.
        `BSGD` minimises ½‖w‖² + C Σ ω ℓ over all rows seen so far. Its step size falls to C, so a C above 1 needs
        many passes. `BSCA` does not change the dual variables of rows from earlier chunks. For several passes over a
        chunk give it several times in a row; its dual variables then continue, as in `LASVM`. Coefficients are not
        optimised again at the end.
        The first chunk determines ``gamma="scale"``. More than two classes are trained each against the rest. After
        ``fit`` with `BSCA` or `BSGD`, chunks continue from its model, of whose rows only the number is known. A stream
        continues after ``save`` and `slimsvm.load` as if it had not stopped. Chunks should hold rows of all classes: a
        stream that is sorted by class ends with a model that predicts the last one.

        ``objective_`` is ½‖w‖² plus C Σ ω ℓ over the rows of this chunk (for `LASVM` also the rows in S), because
        earlier rows are not kept. Use it to compare passes over a chunk. It does not say how far the model is from
        the best one for all rows.

        Parameters
        ----------
        X
        y
        classes : array-like of shape (n_classes,) or None, default=None
            All classes of the whole stream; needed in the first call unless its y has them all.
        sample_weight : array-like of shape (n_samples,) or None, default=None

        Raises
        ------
        AttributeError
        ValueError
            A value is out of range, a label is none of the classes, or the estimator was trained by `fit` with another
            solver.
        """
        is_first = begin_stream(self)
        X, y = self._check_X(X, reset=is_first, y=y)
        if y.ndim == 2:
            raise ValueError("partial_fit takes one class for each row, found an indicator matrix y: fit takes labels")
        check_classes(y)
        if is_first:
            found = np.unique(y if classes is None else named_classes(classes))
            if len(found) < 2:
                raise ValueError(f"classes must hold at least two classes, found {found.tolist()}")
            self.classes_, self._centre = found, 0.0
            self.multi_class_ = self._resolve_multi_class(X, None)
        elif classes is not None and not np.array_equal(np.unique(named_classes(classes)), self.classes_):
            raise ValueError(f"classes are {self.classes_.tolist()} since the first call, found {list(classes)}")
        if self.loss == "ramp":
            raise ValueError("loss='ramp' is trained on all rows at once; partial_fit takes loss='hinge'")
        if isinstance(self.class_weight, str):
            raise ValueError("class_weight='balanced' counts all rows, which partial_fit never sees: give factors")
        codes = class_codes(y, self.classes_, hint="; classes= in the first call names all that will come")
        X, codes, weights, _ = self._weighted_rows(X, codes, sample_weight)
        self.class_weight_ = self._class_weights(self.classes_, None)
        task = self._task()
        fit_chunk(self, X, task.encode(codes, self._row_weights(codes, weights)), task, weights)
        return self

    def score(self, X, y, sample_weight=None):
        """The measure that was trained: accuracy, or the one ``loss`` names. For an indicator matrix, the share of
        rows whose labels are all right.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or None, default=None
            For accuracy only.

        Raises
        ------
        ValueError
            With another loss than "hinge": sample_weight is given, or y does not have both classes.
        """
        check_is_fitted(self, "model_")
        loss = self._fitted_with("loss")
        if isinstance(loss, str) and loss not in tasks.MULTIVARIATE:
            return super().score(X, y, sample_weight)
        if sample_weight is not None:
            raise ValueError(f"sample_weight has no meaning for the measure of loss={loss!r}")
        scores, y = self._scores(X), np.asarray(y)
        if y.shape != (len(scores),):
            raise ValueError(f"y must have one label for each of the {len(scores)} rows of X, found shape {y.shape}")
        codes = class_codes(y, self.classes_)
        task = tasks.MULTIVARIATE[loss]() if isinstance(loss, str) else loss
        return float(task.measure(scores, task.encode(2 * codes - 1)))

    def decision_function(self, X):
        """Scores.

        Returns
        -------
        ndarray, float64
            Two classes: shape (n_samples,), positive for ``classes_[1]``. More: (n_samples, n_classes), or
            (n_samples, n_classes·(n_classes − 1)/2) differences of scores with ``decision_function_shape="ovo"``.
            Several labels per row: (n_samples, n_labels), positive for the row's labels. Pairs: as in scikit-learn.
        """
        scores = self._scores(X)
        if self._kind() == "binary":  # a decision takes a fifth of the time of a single row's score to be made
            return scores[:, 0]
        return self._decision().shown(scores)

    def predict(self, X):
        """Predicted class labels, or an indicator matrix. Ties go to the lowest class.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_labels)

        Raises
        ------
        ValueError
            With ``break_ties=True`` and ``decision_function_shape="ovo"``.
        """
        self._check_fitted()
        if self.break_ties and self.decision_function_shape == "ovo":  # said before the rows are looked at
            raise ValueError(TIES_OF_PAIRS)
        if self._kind() in ("binary", "classes"):  # the greatest score, which the core finds with the scores
            X = self._check_X(X, reset=False, finite=False)
            return self.model_.labels(X, self.classes_, self.n_jobs, check_finite)
        return self._decision().predicted(self._scores(X))
