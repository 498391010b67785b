"""What two versions are compared by: a piece of work of 0.1 to 1 s each, and what comes of it.

Only public names of slimsvm are used, since both versions run this file; the parent process makes the inputs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

import slimsvm
from slimsvm import (
    BCFW,
    BSCA,
    BSGD,
    BVM,
    CPSP,
    CVM,
    LASVM,
    SVC,
    SVR,
    CrossTrainedSVC,
    ExactCuts,
    KernelExpansion,
    LowRank,
    OneClassSVM,
    OrdinalSVC,
    RankSVM,
    Refine,
    SequenceSVM,
    UniformCuts,
    ViolatedCuts,
    datasets,
    kernels,
    tasks,
)

Array = np.ndarray
Inputs = dict[str, Array]
Outcome = Mapping[str, Any]

ROWS, VECTORS = 20_000, 500
FEATURES = (2, 8, 18, 22, 54, 123, 784)
TEST_ROWS = 4_000
# C and gamma of the papers' tables.
C_AND_GAMMA = {
    "checkerboard": (1.0, 10.0),
    "ijcnn1": (32.0, 2.0),
    "cod-rna": (32.0, 2.0**-3),
    "adult": (32.0, 2.0**-7),
    "mnist-38": (10.0, 0.02),
    "mnist": (10.0, 0.02),
}


@dataclass(frozen=True)
class Case:
    """A piece of work.

    Parameters
    ----------
    name : str
        "GROUP what it is".
    inputs : callable
        () -> arrays by name, made once, by the parent process.
    work : callable
        (inputs, n_jobs) -> what is timed, a function of no argument.
    outcome : callable
        (what it returned, inputs) -> what is compared: "values" (an array, relative to its largest number),
        "objective", "error" (in percent), "n_basis", "kernel_evals".
    """

    name: str
    inputs: Callable[[], Inputs]
    work: Callable[[Inputs, int], Callable[[], Any]]
    outcome: Callable[[Any, Inputs], Outcome]


# -- data, in the parent process --------------------------------------------------------------------------------------


@cache
def whole_set(name: str) -> tuple[Any, Array, Any, Array]:
    """X, y, X_test, y_test."""
    if name == "checkerboard":
        train, test = (
            datasets.checkerboard(n, flip=0.05, random_state=seed) for seed, n in enumerate((60_000, 20_000))
        )
        return *train, *test
    data = datasets.load(name)
    return data.X_train, data.y_train, data.X_test, data.y_test


def rows_of(name: str, n: int) -> Inputs:
    """Rows of a set drawn at random, dense float32, and test rows."""
    X, y, X_test, y_test = whole_set(name)
    rng = np.random.default_rng(0)
    train = rng.permutation(len(y))[:n]
    test = rng.permutation(len(y_test))[:TEST_ROWS]
    X, X_test = (part.toarray() if hasattr(part, "toarray") else part for part in (X[train], X_test[test]))
    return {
        "X": X.astype(np.float32), "y": y[train], "X_test": X_test.astype(np.float32), "y_test": y_test[test],
    }  # fmt: skip


def targets_of(n: int) -> Inputs:
    """Rows of cod-rna and a smooth function of them with noise."""
    inputs = rows_of("cod-rna", n)
    noise = np.random.default_rng(0)
    for part in ("", "_test"):
        X = inputs[f"X{part}"]
        inputs[f"y{part}"] = np.sin(X @ np.linspace(0.5, 2.0, 8)) + 0.1 * noise.normal(size=len(X))
    return inputs


def classes_in_order(n: int) -> Inputs:
    """Rows of cod-rna in five ordered classes."""
    inputs = targets_of(n)
    for part in ("", "_test"):
        inputs[f"y{part}"] = np.digitize(inputs[f"y{part}"], [-0.8, -0.3, 0.3, 0.8])
    return inputs


def queries_of(n: int) -> Inputs:
    """Ordered classes, in queries of twenty rows."""
    inputs = classes_in_order(n)
    return inputs | {"groups": np.arange(n) // 20, "groups_test": np.arange(len(inputs["X_test"])) // 20}


def label_sets_of(n: int) -> Inputs:
    """Rows of ijcnn1 with an indicator matrix of three labels."""
    inputs = rows_of("ijcnn1", n)
    for part in ("", "_test"):
        X = inputs[f"X{part}"]
        inputs[f"y{part}"] = (X[:, -3:] + X[:, -6:-3] > np.median(X[:, -3:] + X[:, -6:-3], axis=0)).astype(np.int64)
    return inputs


def words_of(n_words: int) -> Inputs:
    """The first words of the small OCR protocol, and others."""
    data: Any = datasets.load("ocr-letters-small")
    inputs: Inputs = {}
    for part, offsets, n in (("", data.train_offsets, n_words), ("_test", data.test_offsets, 300)):
        X, y = (data.X_test, data.y_test) if part else (data.X_train, data.y_train)
        end = offsets[n]
        inputs |= {f"X{part}": X[:end], f"y{part}": y[:end], f"lengths{part}": np.diff(offsets[: n + 1])}
    return inputs


def random_model(d: int, k: int, m: int, n: int) -> Inputs:
    """A kernel expansion and rows to score, without a pattern."""
    rng = np.random.default_rng(0)
    X, basis = rng.standard_normal((n, d), dtype=np.float32), rng.standard_normal((k, d), dtype=np.float32)
    return {"X": X, "basis": basis, "coef": rng.standard_normal((k, m))}


def saved_model(d: int, k: int) -> Inputs:
    """Bytes of a model file, and rows to predict; of labels without a pattern, so that there are k vectors."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((ROWS, d), dtype=np.float32), rng.integers(0, 2, ROWS)
    clf = SVC(gamma=0.5 / d, solver=LowRank(k, tol_relative=0.1), random_state=0, precision="float32")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.slim"
        clf.fit(X[: 2 * k], y[: 2 * k]).save(path)
        return {"X": X, "model": np.frombuffer(path.read_bytes(), np.uint8)}


def scores_and_labels(n: int) -> Inputs:
    """Scores of rows of two classes, a tenth of them positive."""
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(n) < 0.1, 1, -1)
    return {"scores": rng.standard_normal((n, 1)) + 0.5 * labels[:, None], "labels": labels}


def scores_of_words(n: int) -> Inputs:
    """Scores of 26 letters in words of seven, and of their transitions."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 26, 7 * n)
    plain = rng.standard_normal(26 * 26 + 2 * 26)
    return {"scores": rng.standard_normal((7 * n, 26)), "labels": labels, "plain": plain}


# -- work -------------------------------------------------------------------------------------------------------------


def score_rows(kernel: Any, dtype: str, is_sparse: bool, inputs: Inputs, n_jobs: int) -> Callable[[], Array]:
    """Scores of rows by a kernel expansion."""
    form: Any = sp.csr_array if is_sparse else np.asarray
    basis, coef, X = form(inputs["basis"].astype(dtype)), inputs["coef"], form(inputs["X"])
    model = KernelExpansion(basis, coef, np.zeros(coef.shape[1]), np.zeros(0), kernel, dtype)
    return lambda: model.scores(X, n_jobs)


def load_model(inputs: Inputs) -> Any:
    """The estimator that the parent process saved."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.slim"
        path.write_bytes(inputs["model"].tobytes())
        return slimsvm.load(path)


def predict(n: int, inputs: Inputs, n_jobs: int) -> Callable[[], Any]:
    """Labels of the first n rows; the scores of some are what is compared."""
    clf, X = load_model(inputs).set_params(n_jobs=n_jobs), inputs["X"][:n]

    def work() -> Any:
        clf.predict(X)
        return clf

    return work


def fit(estimator: Any, is_sparse: bool, inputs: Inputs, n_jobs: int) -> Callable[[], Any]:
    """A fit; parameters that every one has: random_state and n_jobs."""
    given = estimator.get_params(deep=False)
    unfitted = clone(estimator).set_params(**{key: 0 for key in ("random_state",) if key in given}, n_jobs=n_jobs)
    X = sp.csr_array(inputs["X"]) if is_sparse else inputs["X"]
    more = {key: inputs[key] for key in ("lengths", "groups") if key in inputs}
    if isinstance(estimator, OneClassSVM):
        return lambda: clone(unfitted).fit(X)
    return lambda: clone(unfitted).fit(X, inputs["y"], **more)


def certify(estimator: Any, inputs: Inputs, n_jobs: int) -> Callable[[], Any]:
    """The certificate of a fitted estimator."""
    fitted = clone(estimator).set_params(random_state=0, n_jobs=n_jobs).fit(inputs["X"], inputs["y"])
    return lambda: fitted.certificate(inputs["X"], inputs["y"])


def compress(estimator: Any, k: int, inputs: Inputs, n_jobs: int) -> Callable[[], Any]:
    """Compression of a fitted estimator."""
    fitted = clone(estimator).set_params(random_state=0, n_jobs=n_jobs).fit(inputs["X"], inputs["y"])
    return lambda: slimsvm.compress(fitted, k, inputs["X"], random_state=0, n_jobs=n_jobs)


def augment(task: Any, inputs: Inputs, n_jobs: int) -> Callable[[], Any]:
    """The worst labelling for scores."""
    labels, plain = inputs["labels"], inputs.get("plain", np.zeros(0))
    examples = task.encode(np.split(labels, len(labels) // 7) if isinstance(task, tasks.Chain) else labels)
    return lambda: task.augment(inputs["scores"], plain, examples)


# -- outcomes ---------------------------------------------------------------------------------------------------------


def of_scores(found: Any, inputs: Inputs) -> Outcome:
    """Scores themselves."""
    return {"values": found}


def of_model(found: Any, inputs: Inputs) -> Outcome:
    """Scores of some rows by an estimator that was loaded."""
    return {"values": found.decision_function(inputs["X"][:TEST_ROWS])}


def of_augmented(found: Any, inputs: Inputs) -> Outcome:
    """Losses, and the coefficients of the subgradient."""
    return {"values": found.coef, "objective": float(np.sum(found.delta))}


def of_certificate(found: Any, inputs: Inputs) -> Outcome:
    """The bound."""
    return {"objective": found.objective, "values": np.array([found.lower_bound])}


def of_fit(found: Any, inputs: Inputs) -> Outcome:
    """What a fit reached, and its test error."""
    X, more = inputs["X_test"], {}
    if "lengths" in inputs:
        more = {"lengths": inputs["lengths_test"]}
    has_scores = hasattr(found, "decision_function")
    outcome = {
        "values": found.decision_function(X, **more) if has_scores else found.predict(X),
        "objective": found.objective_,
        "n_basis": found.n_basis_,
        "kernel_evals": found.n_kernel_evals_,
    }
    if isinstance(found, SVR):
        outcome["error"] = 100 * float(np.mean((found.predict(X) - inputs["y_test"]) ** 2) / np.var(inputs["y_test"]))
    elif isinstance(found, OneClassSVM):
        outcome["error"] = 100 * float(np.mean(found.predict(X) < 0))
    else:
        if "groups" in inputs:
            more = {"groups": inputs["groups_test"]}
        outcome["error"] = 100 * (1 - float(found.score(X, inputs["y_test"], **more)))
    return outcome


# -- the cases --------------------------------------------------------------------------------------------------------


def svc(data: str, solver: Any, **options: Any) -> SVC:
    """An SVC with the C and gamma of a set."""
    C, gamma = C_AND_GAMMA[data]
    return SVC(**{"C": C, "gamma": gamma, "solver": solver} | options)


def scores_case(label: str, d: int, k: int = VECTORS, m: int = 1, n: int = ROWS, **options: Any) -> Case:
    """Scores of rows."""
    kernel = options.get("kernel", kernels.RBF(0.5 / d))
    work = partial(score_rows, kernel, options.get("dtype", "float32"), options.get("is_sparse", False))
    return Case(f"scores {label}", partial(random_model, d, k, m, n), work, of_scores)


def fit_case(label: str, inputs: Callable[[], Inputs], estimator: Any, is_sparse: bool = False) -> Case:
    """A fit."""
    return Case(label, inputs, partial(fit, estimator, is_sparse), of_fit)


def on(solver_name: str, sizes: Mapping[str, int], solver: Callable[[], Any], **options: Any) -> list[Case]:
    """A solver on several sets, with the numbers of rows it takes."""
    return [
        fit_case(f"{solver_name} {data}", partial(rows_of, data, n), svc(data, solver(), **options))
        for data, n in sizes.items()
    ]


ADULT, FEW = svc("adult", "exact"), Refine(20, epochs=60)
WORDS = partial(SequenceSVM, C=10, gamma=0.08)

SCORES = [
    *(scores_case(f"d={d}", d) for d in FEATURES),
    scores_case("d=22 k=64", 22, k=64),
    scores_case("d=22 k=4096", 22, k=4_096, n=4_000),
    scores_case("d=54 10 outputs", 54, m=10),
    scores_case("d=22 float64", 22, dtype="float64"),
    scores_case("d=123 CSR", 123, n=5_000, is_sparse=True),
    scores_case("d=22 polynomial", 22, kernel=kernels.Polynomial(degree=3, gamma=1 / 22, coef0=1.0)),
    scores_case("d=22 sigmoid", 22, kernel=kernels.Sigmoid(gamma=1 / 22, coef0=0.1)),
    scores_case("d=22 Laplacian", 22, kernel=kernels.Laplacian(1 / 22), n=5_000),
    *(Case(f"predict d={d}", partial(saved_model, d, VECTORS), partial(predict, ROWS), of_model) for d in FEATURES),
    *(Case(f"one-row d={d}", partial(saved_model, d, VECTORS), partial(predict, 1), of_model) for d in FEATURES),
]
EXACT = [
    *on("exact", {"checkerboard": 8_000, "ijcnn1": 8_000, "cod-rna": 8_000}, lambda: "exact"),
    *on("exact", {"adult": 4_000, "mnist-38": 4_000}, lambda: "exact"),
    fit_case("exact adult float64", partial(rows_of, "adult", 1_900), ADULT),
    fit_case("exact adult CSR", partial(rows_of, "adult", 4_000), ADULT, is_sparse=True),
    fit_case("exact mnist pairs of classes", partial(rows_of, "mnist", 2_500), svc("mnist", "exact")),
    fit_case("ramp checkerboard", partial(rows_of, "checkerboard", 5_000), svc("checkerboard", "exact", loss="ramp")),
    fit_case("regression exact", partial(targets_of, 2_500), SVR(C=10.0, gamma=0.5, solver="exact")),
    fit_case("one-class exact", partial(rows_of, "cod-rna", 10_000), OneClassSVM(gamma=0.5, nu=0.1)),
    *on("lasvm", {"ijcnn1": 5_000, "adult": 3_000}, LASVM),
    *on("cvm", {"checkerboard": 3_000}, lambda: CVM(1e-3)),
    *on("cvm", {"ijcnn1": 3_000}, lambda: CVM(1e-5)),
    *on("bvm", {"checkerboard": 1_200, "ijcnn1": 2_500}, lambda: BVM(1e-3)),
    Case("certificate ijcnn1", partial(rows_of, "ijcnn1", 6_000), partial(certify, svc("ijcnn1", FEW)), of_certificate),
    Case("certificate adult", partial(rows_of, "adult", 4_000), partial(certify, svc("adult", FEW)), of_certificate),
]
CUTS = [
    *on("exact-cuts", {"checkerboard": 4_000, "ijcnn1": 2_500, "adult": 3_000, "mnist-38": 2_500}, ExactCuts),
    fit_case(
        "exact-cuts mnist ten classes",
        partial(rows_of, "mnist", 1_500),
        svc("mnist", ExactCuts(), precision="float32"),
    ),
    fit_case(
        "exact-cuts adult linear CSR",
        partial(rows_of, "adult", 4_000),
        svc("adult", ExactCuts(), kernel="linear"),
        is_sparse=True,
    ),
    *on("violated-cuts", {"checkerboard": 15_000, "ijcnn1": 5_000, "adult": 5_000}, lambda: ViolatedCuts(200)),
    *on("uniform-cuts", {"checkerboard": 15_000}, lambda: UniformCuts(400)),
    *on("uniform-cuts", {"ijcnn1": 2_200}, lambda: UniformCuts(200)),
    fit_case("cuts F1 adult", partial(rows_of, "adult", 4_000), svc("adult", ExactCuts(), loss="f1", C=1.0)),
    fit_case("cuts ROC area adult", partial(rows_of, "adult", 4_000), svc("adult", ExactCuts(), loss="roc_auc", C=1.0)),
    fit_case("cuts ranking swaps", partial(queries_of, 3_000), RankSVM(C=10.0, gamma=0.5, solver=ExactCuts())),
    fit_case(
        "cuts average precision",
        partial(queries_of, 2_500),
        RankSVM(C=10.0, gamma=0.5, loss="average_precision", solver=ExactCuts()),
    ),
    *on("bcfw", {"ijcnn1": 2_200, "adult": 2_200}, BCFW, C=1.0),
    Case("argmax F1", partial(scores_and_labels, 50_000), partial(augment, tasks.FBeta()), of_augmented),
    Case("argmax ROC area", partial(scores_and_labels, 50_000), partial(augment, tasks.ROCArea()), of_augmented),
]
IN_FEW_VECTORS = [
    *on("refine", {"checkerboard": 3_000, "ijcnn1": 3_000, "cod-rna": 3_000}, lambda: Refine(50)),
    *on("refine", {"adult": 3_000}, lambda: Refine(50, epochs=60)),
    *on("refine", {"mnist-38": 3_000}, lambda: Refine(50, epochs=15)),
    *on("refine-metric", {"ijcnn1": 3_000}, lambda: Refine(50, learn_metric=True)),
    *on("refine-metric", {"mnist-38": 3_000}, lambda: Refine(50, learn_metric=True, epochs=15)),
    *on(
        "refine-steps",
        {"ijcnn1": 8_000, "mnist-38": 4_000},
        lambda: Refine(100, epochs=1, batch_size=1_000, finish=False),
    ),
    fit_case("refine mnist ten classes", partial(rows_of, "mnist", 3_000), svc("mnist", Refine(50, epochs=15))),
    fit_case("refine adult CSR", partial(rows_of, "adult", 3_000), svc("adult", FEW), is_sparse=True),
    fit_case(
        "refine ijcnn1 polynomial",
        partial(rows_of, "ijcnn1", 3_000),
        svc("ijcnn1", Refine(50), kernel="poly", gamma=0.1, coef0=1.0),
    ),
    fit_case("refine regression", partial(targets_of, 3_000), SVR(C=10.0, gamma=0.5, solver=Refine(50))),
    fit_case("refine ordinal", partial(classes_in_order, 3_000), OrdinalSVC(C=10.0, gamma=0.5, solver=FEW)),
    fit_case("refine label sets", partial(label_sets_of, 3_000), svc("ijcnn1", FEW)),
    *on("cpsp", {"ijcnn1": 8_000, "cod-rna": 8_000, "adult": 5_000, "mnist-38": 6_000}, lambda: CPSP(50)),
    *on("cpsp-laplacian", {"ijcnn1": 5_000}, lambda: CPSP(30, preimage="training-rows"), kernel="laplacian"),
    *on("low-rank", {"ijcnn1": 8_000, "adult": 5_000, "mnist-38": 6_000}, lambda: LowRank(200)),
    fit_case(
        "cross-training checkerboard",
        partial(rows_of, "checkerboard", 5_000),
        CrossTrainedSVC(C=1.0, first_C=1.0, gamma=10.0),
    ),
    fit_case("automatic checkerboard", partial(rows_of, "checkerboard", 6_000), svc("checkerboard", "auto")),
    Case("compress adult", partial(rows_of, "adult", 2_500), partial(compress, ADULT, 20), of_fit),
]
ON_A_BUDGET = [
    *on("bsca", {"ijcnn1": 40_000, "cod-rna": 40_000, "adult": 20_000}, lambda: BSCA(100, epochs=2, finish=False)),
    *on("bsgd", {"ijcnn1": 40_000, "cod-rna": 40_000, "adult": 20_000}, lambda: BSGD(100, epochs=3, finish=False)),
    *on("bsca-project", {"ijcnn1": 20_000}, lambda: BSCA(100, epochs=1, finish=False, maintenance="project")),
    *on("bsgd-remove", {"ijcnn1": 40_000}, lambda: BSGD(100, epochs=3, finish=False, maintenance="remove")),
    *on("bsca-finish", {"adult": 20_000}, lambda: BSCA(100, epochs=1)),
    fit_case(
        "bsgd mnist ten classes", partial(rows_of, "mnist", 6_000), svc("mnist", BSGD(100, epochs=1, finish=False))
    ),
    fit_case("one-class BSCA", partial(rows_of, "cod-rna", 3_000), OneClassSVM(gamma=0.5, nu=0.1, solver=BSCA(50))),
]
CHAINS = [
    fit_case("chain BCFW", partial(words_of, 40), WORDS(solver=BCFW())),
    fit_case("chain exact cuts", partial(words_of, 25), WORDS(solver=ExactCuts())),
    fit_case("chain Refine", partial(words_of, 200), WORDS(solver=Refine(50, epochs=20))),
    fit_case("chain CPSP", partial(words_of, 80), WORDS(solver=CPSP(30))),
    fit_case("chain linear", partial(words_of, 50), SequenceSVM(C=0.1, kernel="linear", solver=ExactCuts())),
    Case("argmax chain", partial(scores_of_words, 2_000), partial(augment, tasks.Chain(26)), of_augmented),
]
CASES = {case.name: case for case in (*SCORES, *EXACT, *CUTS, *IN_FEW_VECTORS, *ON_A_BUDGET, *CHAINS)}
