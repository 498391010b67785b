"""Scalers of scikit-learn in a model's file, and what they do to a row in one step."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from slimsvm.deploy.plain_model import check_feature_names
from slimsvm.deploy.scaling import Scaling

Array = np.ndarray
Steps = Sequence[tuple[str, Any]]

SCALERS: dict[str, type] = {
    cls.__name__: cls for cls in (MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler)
}  # fmt: skip


def scaling_of(scalers: Sequence[Any]) -> Scaling:
    """What fitted scalers do to a row, one after the other.

    Each is x ↦ clip((x − offset) · factor) with a positive factor, and so are two of them.
    """
    n_features = scalers[0].n_features_in_
    offset, factor = np.zeros(n_features), np.ones(n_features)
    low, high = np.full(n_features, -np.inf), np.full(n_features, np.inf)
    for scaler in scalers:
        next_offset, next_factor, bounds = _affine(scaler)
        low, high = (np.clip((bound - next_offset) * next_factor, *bounds) for bound in (low, high))
        offset, factor = offset + next_offset / factor, factor * next_factor
    is_clipped = np.isfinite(low).any() or np.isfinite(high).any()
    return Scaling(offset, factor, low if is_clipped else None, high if is_clipped else None)


def _affine(scaler: Any) -> tuple[Array | float, Array | float, tuple[float, float]]:
    """Offset, factor and bounds of one scaler."""
    bounds = -np.inf, np.inf
    if isinstance(scaler, MinMaxScaler):
        low, high = scaler.feature_range
        bounds = (low, high) if scaler.clip else bounds
        return _doubles(scaler.data_min_) - low / _doubles(scaler.scale_), _doubles(scaler.scale_), bounds
    if isinstance(scaler, MaxAbsScaler):
        bounds = (-1.0, 1.0) if getattr(scaler, "clip", False) else bounds
        return 0.0, 1.0 / _doubles(scaler.scale_), bounds
    is_standard = isinstance(scaler, StandardScaler)
    moves = scaler.with_mean if is_standard else scaler.with_centering
    stretches = scaler.with_std if is_standard else scaler.with_scaling
    offset = _doubles(scaler.mean_ if is_standard else scaler.center_) if moves else 0.0
    return offset, 1.0 / _doubles(scaler.scale_) if stretches else 1.0, bounds


def _doubles(values: Any) -> Array:
    return np.asarray(values, np.float64)


def pack_scalers(steps: Steps, machine: str, arrays: dict[str, Array]) -> dict[str, Any]:
    """The header's part on the scalers and the name of the last step; their numbers are added to the arrays.

    Raises
    ------
    TypeError
        A step is no fitted scaler that files know.
    """
    packed = []
    for k, (name, scaler) in enumerate(steps):
        fitted: dict[str, Any] = {}
        for attribute, value in vars(scaler).items():
            if not re.fullmatch(r"[a-z]\w*_", attribute):
                continue
            if attribute == "feature_names_in_":
                fitted[attribute] = list(map(str, value))
            elif isinstance(value, np.ndarray):
                arrays[f"scaling_{k}_{attribute}"] = value
            else:
                fitted[attribute] = value.item() if isinstance(value, np.generic) else value
        defaults = type(scaler)().get_params()
        params = {key: value for key, value in scaler.get_params().items() if value != defaults[key]}
        packed.append({"name": name, "class": type(scaler).__name__, "params": params, "fitted": fitted})
    scaling = scaling_of([scaler for _, scaler in steps])
    arrays |= {f"scaling_{name}": part for name, part in scaling._asdict().items() if part is not None}
    return {"steps": packed, "machine": machine}


def unpack_scalers(header: dict[str, Any], arrays: dict[str, Array], n_features: int) -> list[tuple[str, Any]]:
    """The steps that `pack_scalers` was given; KeyError, TypeError or ValueError where the header is another."""
    steps = []
    for k, step in enumerate(header["steps"]):
        # JSON has no tuples, which scikit-learn wants as ranges.
        params = {key: tuple(value) if isinstance(value, list) else value for key, value in step["params"].items()}
        scaler = SCALERS[step["class"]](**params)
        fitted = dict(step["fitted"])
        prefix = f"scaling_{k}_"
        fitted |= {name.removeprefix(prefix): part for name, part in arrays.items() if name.startswith(prefix)}
        for attribute, value in fitted.items():
            if not re.fullmatch(r"[a-z]\w*_", attribute):
                raise ValueError(f"a scaler has no attribute {attribute!r}")
            if attribute == "feature_names_in_":
                check_feature_names(value, n_features)
                value = np.array(value, dtype=object)
            setattr(scaler, attribute, value)
        steps.append((step["name"], scaler))
    return steps
