"""Code that the estimators share. Parameters and attributes that several of them have are described once, here.

kernel_estimator  the base class: parameters to a problem, a fit to attributes, prediction
automatic         what solver="auto", gamma="scale" and "learn" stand for
validating        C="validate" and gamma="validate": values tried on rows held out
cross_validation  candidates of a grid on folds (`GridSearchSVC`)
input_checks      checks of what users pass in
around_fit        attributes of one fit alone, callbacks, checkpoints
streams           chunks of rows: `partial_fit`
exact_of_nu       ν in place of C (`NuSVC`, `NuSVR`)
fitted            attributes like scikit-learn's, `certificate`, methods that write files or explain scores
calibrating       probabilities: what they are calibrated on, and the calibration
conformal         sets of classes and intervals that are right with a chosen probability
pipeline_steps    encoders and scalers of a pipeline as data, for files and exports
saving            fitted estimators as files, and back (`slimsvm.load` and `slimsvm.save` are in `estimators.files`)
table_search      the models of `TableClassifier`'s and `TableRegressor`'s mean; table_goals, table_additive,
                  table_small, table_saving: what they are trained for, the additive one, preset="small", files
"""

from __future__ import annotations

from typing import TypeVar

from slimsvm.docstrings import completed

Class = TypeVar("Class", bound=type)

PARAMETERS = """
C : float or "validate"
    Weight of one row's loss, as in LIBSVM and scikit-learn. ``inf``, the hard margin, is replaced by 1e10.
    "validate" tries 0.1, 1, … 1000 on four fifths of the rows, and trains on all rows with the value that has the
    lowest error on the other fifth. For regression the values are multiples of the targets' scale. The page "Which
    estimator, which solver" says how it searches; ``validation_`` lists the trials.
kernel : str, Kernel or callable
    A name of `slimsvm.kernels.KERNELS` ("rbf", "poly", "linear", "sigmoid", "precomputed", ...), an object of
    `slimsvm.kernels`, or a function (X, Z) -> array of shape (len(X), len(Z)). "sigmoid" is not an inner product:
    its objective has no unique optimum, so ``lower_bound_``, ``gap_`` and certificates are meaningless.
degree : int
    Degree of the polynomial kernel.
gamma : {"scale", "auto", "learn", "validate"}, float or array of shape (n_features,)
    "scale": 1 / (n_features · X.var()); a row of weight 2 counts twice (scikit-learn ignores weights here).
    "auto": 1 / n_features.
    An array: one gamma per feature, for RBF and other kernels that depend on x - z only.
    "learn": one gamma per feature, learned from dense rows, for the same kernels.
    "validate": "scale" times the power of 4 with the lowest error on held-out rows.
    The page "Which estimator, which solver" says how the last two search.
coef0 : float
    Constant of the polynomial and the sigmoid kernel.
shrinking, cache_size
    Accepted for compatibility with scikit-learn, and ignored; ``cache_size`` must be positive.
tol : float
    Exact solver: the largest violation of the optimality conditions by a pair of rows, as in LIBSVM. For regression it
    is in units of the targets' standard deviation, if that is below 1.
    Cutting-plane solvers: the allowed error in mean loss. For regression it is in units of the same deviation. Up to
    2,000 rows with ``precision="auto"``, they go on to a gap of 1e-10 of the objective (1e-3 if rows times outputs are
    more than 2,000), unless ``tol`` is above its default.
verbose : bool or int
    True shows a progress bar on standard error.
max_iter : int
    Largest number of iterations; -1 means no limit. ``history_`` has a record of each. An iteration of the exact
    solver is one working set, with up to 20 steps per row. The limit applies to each pair of classes separately.
random_state : int, RandomState, Generator or None
    Used by solvers that sample. With a number, fits are repeatable bit for bit, whatever ``n_jobs`` is. Fits of
    the exact solver are always repeatable.
solver : str or Solver
    A name of `slimsvm.solvers.SOLVERS` ("exact", "exact-cuts", "violated-cuts", "cpsp", "refine", ...), or an object
    with its own parameters such as ``ViolatedCuts(sample_size=1000)``. "auto" chooses "exact" for two classes, pairs of
    classes and regression, and "exact-cuts" for other losses ("violated-cuts" above 300,000 rows). With a number as
    ``max_basis`` it chooses "refine" (learned vectors), or "cpsp" for kernels or losses without derivatives and for
    sparse rows of more than 1,000 features. For several classes with up to 20,000 rows, and for two classes with up to
    5,000, it trains the exact SVM and moves some of its vectors (`slimsvm.Compact`). If the exact solver of two classes
    or of a regression would need more than 10¹² kernel evaluations, estimated from a sample, "auto" warns and chooses
    ``max_basis="auto"`` or "violated-cuts" instead.
max_basis : int, "auto" or None
    Largest number of learned vectors, for solvers that have such a limit. "auto" searches for the smallest number
    whose error on held-out rows exceeds the exact solver's by at most a quarter of a percentage point. If there is
    none, the result is the exact model of all rows. The parameters of `slimsvm.Compact` set the extra error and the
    cost of the search; ``validation_`` lists its trials. ``gamma="learn"`` without a number searches likewise.
intercept : {"auto", "regularized", "free", "none"}
    "regularized": the weight of a constant feature 1; ‖w‖² includes it. "free": as in LIBSVM, ‖w‖² does not include it.
    "none": no intercept. "auto" is "free" with the exact solver and with `slimsvm.Compact`, and "regularized" with
    other solvers.
max_seconds : float or None
    Time limit of the whole fit, including searches for C, gamma and the number of vectors. A fit that reaches it
    stops with the best model so far and a warning; ``objective_`` is NaN if its computation would take long. A limit
    that is not reached changes nothing.
precision : {"auto", "float32", "float64"}
    Type of the kernel values. "auto" is float64 up to 2,000 rows and if γ·max‖x − mean‖² > 500, and float32
    otherwise. Sums and objectives are always float64.
memory_limit : float
    Megabytes the solver may use beyond the data and the model.
n_jobs : int or None
    Number of threads. None uses all cores (in a joblib worker, its share).
warm_start : bool
    Start from the last fit's solution for the same rows, e.g. along a path over C or gamma.
probability : bool
    Whether to calibrate probabilities, for ``predict_proba``. Everything else about the estimator stays the same.
calibration_size : float, int, "out-of-fold" or None
    Adds ``predict_set`` (classes), ``predict_interval`` (targets) or ``p_values`` (`OneClassSVM`). The given share in
    (0, 1), or number, of the rows is held out at random (by ``random_state``, if that is a number). Nothing is learned
    from these rows: no vectors, scales of features, C, gamma, mean of y or probabilities. So sets, intervals and
    p-values of new rows are right with the probability that is asked for. "out-of-fold" trains on all rows, and
    approximates each row's score under a model without this row, as ``probability`` does; then there is no guarantee.
    Works for one label or target per row, and not with `partial_fit`.
"""

ATTRIBUTES = """
n_basis_ : int
    Number of basis vectors of the model.
basis_vectors_ : ndarray or csr_array of shape (n_basis, n_features)
basis_coef_ : ndarray of shape (n_basis, n_outputs)
coef_ : ndarray or CSR matrix of shape (n_outputs, n_features)
    Weights of the features, for ``kernel="linear"``; CSR after a fit of sparse rows.
intercept_ : ndarray of shape (n_outputs,)
support_, support_vectors_
    As in scikit-learn, if the basis vectors are training rows: grouped by class in the order of ``classes_``, or in
    the order of the rows if there are no classes. ``basis_vectors_`` and ``basis_coef_`` have another order, which
    does not depend on the classes.
n_support_ : ndarray of int32
    Number of support vectors of each class, or in all if there are no classes.
dual_coef_ : ndarray or CSR matrix
    Coefficients of the support vectors as in scikit-learn: one row, or n_classes − 1 rows for pairs of classes.
fit_status_ : int
    0 if the fit met its tolerance, otherwise 1.
shape_fit_ : tuple
    Shape of the X that was trained on; not after `partial_fit`.
objective_, lower_bound_ : float
    The objective over all training rows (after `partial_fit`, over the last chunk's rows), and a lower bound on the
    objective of every model, or None (sampled cuts give none). After Ctrl-C the objective of sampled cuts, BCFW
    and LASVM is NaN if scores of all rows would have taken more than a tenth of a second.
    After a search for few vectors, the distance between the two includes what few vectors cost, and the rows that the
    bound was computed without; ``counters_["bound_in_basis"]`` bounds the objective of all models over these vectors.
gap_ : float or None
    (``objective_`` − ``lower_bound_``) / abs(``objective_``); None without a bound.
status_ : str
    "converged", "gap above tolerance", "iteration limit", "time limit", "interrupted" or "stopped by a callback".
history_ : list of dict
    One record per iteration.
n_iter_ : int
    Number of iterations.
n_kernel_evals_ : int
model_ : KernelExpansion
kernel_, solver_
    The objects used for ``kernel`` and ``solver``; ``kernel_`` has the gammas that were learned.
C_ : float
    The C that was trained with.
precision_ : str
    The type of the kernel values.
calibration_ : ndarray of shape (n_columns, 4)
    Parameters that turn scores into probabilities, with ``probability=True``, and with ``calibration_size`` for three
    classes and more: four numbers for the score of two classes, for each pair of several classes, for each label, or
    for all thresholds of ordered classes.
guarantee_ : str
    "1 - alpha" if ``calibration_size`` held rows out, "none" with "out-of-fold"; missing without ``calibration_size``.
nonconformity_ : ndarray of shape (n,)
    How badly the label of each held-out row fits its score, and what rounding may do to that, ascending, for at most
    5,000 rows; only with ``calibration_size``.
nonconformity_classes_ : ndarray of shape (n,)
    Numbers of the classes of these rows.
calibration_indices_ : int64 ndarray
    Positions in X of the rows that ``calibration_size`` held out, ascending; not in files.
validation_ : list of dict
    ``C``, ``n_rows`` (the number of training rows), ``error`` and ``seconds`` of every trial of ``C="validate"``, and
    ``gamma`` with ``gamma="validate"``.
"""


# Sections of the methods' docstrings, for all classes whose own docstrings do not say otherwise.
ROWS = """
Parameters
----------
X : array-like or sparse matrix of shape (n_samples, n_features)

Returns
-------
ndarray of shape (n_samples,)"""
TRAINING = """
Parameters
----------
X : array-like or sparse matrix of shape (n_samples, n_features)
y : array-like of shape (n_samples,)
sample_weight : array-like of shape (n_samples,) or None, default=None
    Weights of the rows' losses; rows with a weight of 0 or less are ignored.

Returns
-------
{name}
    The estimator itself.

Raises
------
"""
METHODS = {
    "predict": ROWS,
    "decision_function": f"{ROWS}, float64",
    "score_samples": f"{ROWS}, float64",
    "score": "Returns\n-------\nfloat",
    "ndcg": "Returns\n-------\nfloat",
    "transform": """
Parameters
----------
X : array-like of shape (n_samples, n_features)

Returns
-------
ndarray of shape (n_samples, n_features)
    float32 if X is, otherwise float64.

Raises
------
ValueError
    X has NaN, infinite values, no numbers, or another number of features than in ``fit``.
NotFittedError
    Before ``fit``.""",
    "fit": f"{TRAINING}ValueError\n    A parameter or a value in X or y is out of range; the message names it.",
    "partial_fit": f"""{TRAINING}AttributeError
    The solver has no `partial_fit`.
ValueError
    A value is out of range, or the estimator was trained by `fit` with another solver.""",
    "certificate": """
Parameters
----------
max_seconds : float or None, default=None
    Time limit; the bound so far is then returned.

Returns
-------
Certificate
    As for `SVC`.

Raises
------
NotFittedError
    Before ``fit``.""",
}


def with_shared_parameters(cls: Class) -> Class:
    """Complete the docstrings of a class and of its methods by `slimsvm.docstrings.completed`."""
    for title, shared in (("Parameters", PARAMETERS), ("Attributes", ATTRIBUTES)):
        cls.__doc__ = completed(cls.__doc__, f"{title}\n----------\n{shared}", cls, adds_sections=False)
    for name, shared in METHODS.items():
        if name in vars(cls):
            method = vars(cls)[name]
            for each in {method, getattr(method, "fn", method)}:  # `available_if` keeps the function in fn
                each.__doc__ = completed(each.__doc__, shared.format(name=cls.__name__))
    return cls
