"""A machine for every C and gamma of a grid, each fit started from its neighbour's."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone


def path(estimator, X, y=None, *, C=None, gamma=None, epsilon=None, sample_weight=None) -> list[Any]:
    """Fit an estimator along C, gamma and epsilon; every fit except the first of each epsilon is a warm start.

    Along C a fit starts from the one before. The first fit of a gamma starts from the first fit of the gamma before.
    A fit passes on its dual point (``solver="exact"``) or its cuts. Each fit meets its own tolerance, so the
    models are those of cold fits up to ``tol``.

    Parameters
    ----------
    estimator : SVC, SVR or another estimator of the library that has ``warm_start``
        It is not changed.
    X, y
        As in its ``fit``.
    C, gamma, epsilon : sequence of numbers or None, default=None
        Values in the order in which they are fitted; for C, ascending is best. None: the estimator's own.
    sample_weight : array-like of shape (n_samples,) or None, default=None

    Returns
    -------
    list of estimators
        Fitted: for every epsilon every gamma, and for every gamma all C.

    Raises
    ------
    ValueError
        A sequence is empty, the estimator lacks the parameter, or a parameter or a value is out of range.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from slimsvm import SVC, path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> machines = path(SVC(solver="exact"), X, y, C=[0.1, 1.0, 10.0])
    >>> [machine.C for machine in machines]
    [0.1, 1.0, 10.0]
    """
    known = estimator.get_params(deep=False)
    if "warm_start" not in known:
        raise ValueError(f"path needs an estimator with the parameter warm_start, found {type(estimator).__name__}")
    grid: dict[str, list[dict[str, Any]]] = {}
    for name, values in (("C", C), ("gamma", gamma), ("epsilon", epsilon)):
        if values is not None and name not in known:
            raise ValueError(f"{type(estimator).__name__} has no parameter {name}")
        grid[name] = [{}] if values is None else [{name: value} for value in values]
        if not grid[name]:
            raise ValueError(f"{name} must hold at least one number, found none")
    machines: list[Any] = []
    for of_epsilon in grid["epsilon"]:
        first_of_gamma = None
        for of_gamma in grid["gamma"]:
            state = first_of_gamma
            for k, of_C in enumerate(grid["C"]):
                machine = clone(estimator).set_params(warm_start=True, **of_epsilon, **of_gamma, **of_C)
                machine._state = state
                fitted = machine.fit(X, y) if sample_weight is None else machine.fit(X, y, sample_weight=sample_weight)
                state = fitted._state
                if k == 0:
                    first_of_gamma = state
                machines.append(fitted.set_params(warm_start=known["warm_start"]))
    return machines
