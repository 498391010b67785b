"""What `Support` and scikit-learn's other attributes need, in a model file, and read from it."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm.estimators._shared.support import Support, is_balanced, support_by_sign

LISTS = ("n_iter_", "shape_fit_", "class_weight_")


def pack_support(estimator: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """JSON of the attributes, and which rows of which classes the vectors are, where they are rows, as arrays."""
    fitted = {name: np.asarray(getattr(estimator, name)).tolist() for name in LISTS if hasattr(estimator, name)}
    if getattr(estimator, "_sparse", False):
        fitted["_sparse"] = True
    support = getattr(estimator, "_support", None)
    if support is not None and support.rows is not None:
        rows = np.asarray(support.rows)
        arrays["support_rows"] = rows.astype(np.min_scalar_type(int(rows.max(initial=0))))
        if support.classes is not None:
            arrays["support_classes"] = support.classes
    return fitted


def unpack_support(
    estimator: Any, header: dict[str, Any], fitted: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """Give an estimator that has its model what `pack_support` wrote; files of earlier versions say less.

    What is set here is taken out of ``fitted``.
    """
    n_iter = fitted.pop("n_iter_")
    if type(n_iter) not in (int, list):
        raise ValueError(f"n_iter_ is {n_iter!r}, which no fit leaves")
    estimator.n_iter_ = np.array(n_iter, np.int32) if isinstance(n_iter, list) else estimator._iterations(n_iter, [])
    if "shape_fit_" in fitted:
        estimator.shape_fit_ = tuple(fitted.pop("shape_fit_"))
    if "class_weight_" in fitted:
        estimator.class_weight_ = np.array(fitted.pop("class_weight_"), np.float64)
    estimator._sparse = bool(fitted.pop("_sparse", False))
    if "support_rows" not in arrays:
        estimator._support = _of_earlier_version(estimator, header)
        return
    rows, classes = arrays["support_rows"].astype(np.int64), arrays.get("support_classes")
    for name, found in (("support_rows", rows), ("support_classes", classes)):
        if found is not None and (found.dtype.kind not in "ui" or found.shape != (estimator.model_.n_basis,)):
            raise ValueError(f"{name} must have one whole number for each of {estimator.model_.n_basis} vectors")
    if classes is not None and classes.max(initial=0) >= len(getattr(estimator, "classes_", ())):
        raise ValueError(f"support_classes must be numbers of classes, found {classes.max()}")
    estimator._support = Support(estimator.model_, rows, classes)


def _of_earlier_version(estimator: Any, header: dict[str, Any]) -> Support | None:
    """The support vectors of an exact machine, whose coefficients tell their classes."""
    params, model = header["params"], estimator.model_
    solver = params.get("solver")
    name = solver.get("solver") if isinstance(solver, dict) else solver
    kind, is_exact = header["estimator"], name in ("exact", "Exact")
    may_be = name == "auto" and params.get("max_basis") is None and params.get("gamma") != "learn"
    if header["fitted"].get("status_") == "compressed" or not (is_exact or (may_be and is_balanced(model))):
        return None
    if kind == "OneClassSVM":
        return Support(model, None, None)
    if kind == "SVR":
        return support_by_sign(model, None)
    has_pairs = kind == "SVC" and not header["fitted"].get("multilabel_") and model.coef.shape[1] >= 1
    n_classes = len(estimator.classes_) if has_pairs else 0
    is_of_pairs = n_classes == 2 or (n_classes > 2 and estimator.multi_class_ == "ovo")
    return support_by_sign(model, n_classes) if is_of_pairs else None
