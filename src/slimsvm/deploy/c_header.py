"""A model as one C99 header: no allocation, no library.

The header has the constants of the model and the functions ``NAME_scores`` and ``NAME_predict``, of a calibrated model
``NAME_probabilities``, too, in float32 or float64 (c_floating_point.py) or int16 fixed point (c_fixed_point.py), where
probabilities are float32. Exponentials, logarithms, square roots and powers are its own (c_text.py): it compiles
where there is no ``math.h``.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from slimsvm.deploy.c_encoding import encoding_in_c
from slimsvm.deploy.c_fixed_point import fixed_point, fixed_point_bytes, fixed_point_text
from slimsvm.deploy.c_floating_point import Float32Model, floating_point_bytes, floating_point_text
from slimsvm.deploy.c_text import OfC, Values, array, classes_array, in_type, named
from slimsvm.deploy.conformal import bound_for_export
from slimsvm.deploy.decisions import AS_THEY_ARE, DECISIONS, NUMBERS
from slimsvm.deploy.plain_model import PlainModel, describe
from slimsvm.deploy.predictors import PREDICTORS
from slimsvm.deploy.probes import (
    GOOD_SHARE,
    PROMISED_SHARE,
    check_rows_in_float32,
    check_scores_in_float32,
    error_of_misfits,
    errors_on,
    probes,
    rows_type,
    share_of_error,
)
from slimsvm.deploy.rows import as_rows, check_finite, check_names, dense_rows
from slimsvm.whole_file import write_whole

Array = np.ndarray

DTYPES = "auto", "float32", "float64", "int16"

HEAD = """\
/* {text}
 *
 * Written by slimsvm. C99, {numbers}
 *
{usage}
 */
#ifndef NAME_H
#define NAME_H

#include <stdint.h>

#define NAME_N_FEATURES {n_features}
#define NAME_N_OUTPUTS {n_outputs}
"""
# What a header says of its ``NAME_predict``, for the kinds of models that have one.
COMMENTS = {
    "binary": "1 where the score is positive, else 0: the class is NAME_classes[NAME_predict(x)].",
    "classes": "The class of the greatest score, the first of equals, is NAME_classes[NAME_predict(x)].",
    "pairs": "Each score is that of a pair of classes, (0, 1), (0, 2), ..., and a vote for the first where it is "
    "positive,\n * else for the second. The class with most votes, the first of equals, is "
    "NAME_classes[NAME_predict(x)].",
    "ordinal": "The class c of the greatest sum of (score - threshold[j]) over j < c, the first of equals, is\n"
    " * NAME_classes[NAME_predict(x)].",
    "labels": "Writes NAME_N_OUTPUTS numbers: 1 for each label that the row has, else 0.",
    "one class": "1 inside, -1 outside.",
    "regression": "The number itself.",
    "counts": "The exponential of the score; of several scores writes those of all NAME_N_OUTPUTS.",
    "targets": "Writes the NAME_N_OUTPUTS numbers.",
    "quantiles": "Writes the NAME_N_OUTPUTS quantiles, in rising order.",
    "ranking": "The score, by which the rows of a query are sorted, falling.",
}
BY_PROBABILITY = "The class of the greatest probability, the first of equals, is NAME_classes[NAME_predict(x)]."
# What it says of ``NAME_probabilities``, of classes and of labels.
CALIBRATED, OF_TRAINING = "calibrated on rows that\n * the model was not trained on", "as the loss is\n * trained for"
PROBABILITIES = "Writes the probabilities of the NAME_N_CLASSES classes, {whence}."
PROBABILITIES_OF_LABELS = "Writes the probability of each of the NAME_N_OUTPUTS labels, {whence}."
SET = "Writes 1 for each class of a set that has the right one with a probability of at least 1 - {alpha}, else 0."
INTERVAL = "Writes where an interval begins and ends that has the target with a probability of at least 1 - {alpha}."
SCORES = Values(lambda column: f"scores[{column}]", "NAME_N_OUTPUTS")


def write_c(
    model: PlainModel, path: Any, name: str | None = None, dtype: str = "auto", rows: Any = None, alpha: Any = None
) -> str:
    """Write a model as a C99 header; say in a sentence what was written. `Fitted.to_c` has parameters and errors."""
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(map(repr, DTYPES))}; found {dtype!r}")
    name = name_for(path) if name is None else name
    check_name(name)
    check_names(rows, model.feature_names, "rows")
    scored = replace(model, encoding=None)
    if model.encoding is not None and rows is not None:
        rows = model.encoding.features(model.encoding.columns(rows))
    text, n_bytes, error, dtype = c_header(scored, name, dtype, rows, alpha)
    if model.encoding is not None:
        encode = encoding_in_c(model.encoding, name, "double" if dtype == "float64" else "float")
        text = text.removesuffix("\n#endif\n") + encode + "\n#endif\n"
    write_whole(path, [text])
    said = f"; {error}" if error else ""
    return f"{path}: C99 header, {dtype}, {describe(model)}, {n_bytes:,} bytes of constants{said}"


def name_for(path: Any) -> str:
    """The beginning of the names in C by a file's name."""
    return re.sub(r"\W", "_", Path(os.fsdecode(path)).stem.lower(), flags=re.A)


def check_name(name: Any) -> None:
    """An error where names of C cannot begin so."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*", name, flags=re.A):
        raise ValueError(f"name must be an identifier of C (letters, digits, _; no digit first), found {name!r}")


def c_header(
    model: PlainModel, name: str, dtype: str = "auto", rows: Any = None, alpha: Any = None
) -> tuple[str, int, str, str]:
    """The text of a header, its bytes of constants, what its arithmetic does to scores, and its type; see `write_c`."""
    _check_says(model)
    if dtype == "int16":
        fixed = fixed_point(model)
        check_rows_in_float32(model)
        text, n_bytes, error = fixed_point_text(fixed), fixed_point_bytes(fixed), measured(model, fixed, rows)
    else:
        single, is_asked = Float32Model(**vars(model)), dtype == "float32"
        if is_asked:
            check_rows_in_float32(model)
        elif dtype == "auto":
            dtype = "float32" if _is_good(model, single, rows) else "float64"
        text, n_bytes = floating_point_text(model, dtype), floating_point_bytes(model, dtype)
        if is_asked:
            check_scores_in_float32(model, single.scores)
        error = measured(model, single, rows) if dtype == "float32" else ""
    scores = (fixed if dtype == "int16" else single).scores
    of_misfits = None if dtype == "float64" else partial(error_of_misfits, model, scores, np.float32)
    bound = bound_for_export(model, alpha, of_misfits)
    return _header(model, name, dtype, error, text, alpha, bound), n_bytes, error, dtype


def _is_good(model: PlainModel, header: PlainModel, rows: Any) -> bool:
    """Whether scores near the vectors are right to `GOOD_SHARE`, and scores of given rows to `PROMISED_SHARE`."""
    if rows_type(model) == np.float64 or share_of_error(model, header.scores) > GOOD_SHARE:
        return False
    if rows is None:
        return True
    (found,) = errors_on(model, header.scores, [_given(model, rows)], np.float64)
    return max(found.error / found.largest, found.share_of_probabilities) <= PROMISED_SHARE


def _check_says(model: PlainModel) -> None:
    """An error where a header has no such kernel or no such labels."""
    if model.kernel.form == "columns" or model.kind not in COMMENTS or model.options.get("break_ties"):
        found = "break_ties=True" if model.options.get("break_ties") else f"{model.kind}, kernel {model.kernel.name}"
        raise ValueError(f"a C header scores rows of features and votes: there is none for {found}")


def _header(model: PlainModel, name: str, dtype: str, error: str, text: str, alpha: Any, bound: Any) -> str:
    """The text with what is the same for all types of numbers around it."""
    reals = "float64" if dtype == "float64" else "float32"
    c = OfC(reals)
    comment = BY_PROBABILITY if model.options.get("by_probability") else COMMENTS[model.kind]
    functions = f"/* {comment} */\n{_predict(model, c)}"
    usage = [" *     float x[NAME_N_FEATURES] = {...}, scores[NAME_N_OUTPUTS];", " *     NAME_scores(x, scores);"]
    if model.calibration is not None:
        comment = PROBABILITIES_OF_LABELS if model.kind == "labels" else PROBABILITIES
        whence = OF_TRAINING if (model.calibration == AS_THEY_ARE).all() else CALIBRATED
        functions += f"\n/* {comment.format(whence=whence)} */\n{_probabilities(model, c)}"
        n = "OUTPUTS" if model.kind == "labels" else "CLASSES"
        usage += [f" *     float probabilities[NAME_N_{n}];", " *     NAME_probabilities(x, probabilities);"]
    if bound is not None:
        comment = SET if model.classes is not None else INTERVAL
        functions += f"\n/* {comment.format(alpha=float(alpha))} */\n{_guaranteed(model, c, bound)}"
    numbers = f"{dtype}, no allocation, no library." + (f"\n * In this arithmetic, {error}." if error else "")
    head = HEAD.format(text=describe(model), numbers=numbers, usage=in_type("\n".join(usage), reals),
                       n_features=model.n_features, n_outputs=model.n_outputs)  # fmt: skip
    labels = ""
    if model.classes is not None:
        head += f"#define NAME_N_CLASSES {len(model.classes)}\n\n"
        labels = classes_array(model.classes, name)  # a label may be NAME_1, too
    constants = "".join(array(part, values, shape, reals) for part, (values, shape) in c.arrays.items())
    helpers = (in_type(function, reals) for function in c.functions.values())
    text += "".join(function for function in helpers if function not in text)  # the kernel may have some, too
    text = f"{constants}{text}\n{in_type(functions, reals)}\n#endif\n"
    return named(head, name) + labels + named(text, name)


def _predict(model: PlainModel, c: OfC) -> str:
    """The function that predicts, by the rule of `slimsvm.deploy.decisions`."""
    decision = DECISIONS[model.kind](model, c)
    codes = decision.codes(SCORES)
    returned, arguments, code = "int" if decision.labels is not None else "float", "const float *x", codes.at("0")
    if not decision.is_single:
        kind, name = ("uint8_t", "labels") if model.kind == "labels" else ("float", "numbers")
        returned, arguments = "void", f"const float *x, {kind} *{name}"
        last = f"for (int c = 0; c < NAME_N_OUTPUTS; ++c) {name}[c] = ({kind})({codes.at('c')});"
    else:
        last = f"return {code} ? 1 : -1;" if model.kind == "one class" else f"return {code};"
    return _function(f"{returned} NAME_predict({arguments})", [*c.take_lines(), last])


def _probabilities(model: PlainModel, c: OfC) -> str:
    """The function that writes probabilities, by the rule of `slimsvm.deploy.decisions`."""
    found = DECISIONS[model.kind](model, c).probabilities(SCORES)
    last = f"for (int c = 0; c < {found.n}; ++c) probabilities[c] = {found.at('c')};"
    return _function("void NAME_probabilities(const float *x, float *probabilities)", [*c.take_lines(), last])


def _guaranteed(model: PlainModel, c: OfC, bound: float) -> str:
    """The function that writes a set of classes, or an interval, by the rule of `slimsvm.deploy.decisions`."""
    decision = DECISIONS[model.kind](model, c)
    if model.classes is None:
        found, kind, name = decision.interval(SCORES, bound), "float", "interval"
    else:
        found, kind, name = c.at_most(decision.misfit(decision.margins(SCORES)), bound), "uint8_t", "set"
    last = f"for (int c = 0; c < {found.n}; ++c) {name}[c] = {found.at('c')};"
    return _function(f"void NAME_predict_{name}(const float *x, {kind} *{name})", [*c.take_lines(), last])


def _function(declared: str, lines: list[str]) -> str:
    """A function of a row whose scores the lines take."""
    body = "".join(f"    {line}\n" for line in ["float scores[NAME_N_OUTPUTS];", "NAME_scores(x, scores);", *lines])
    return f"static inline {declared}\n{{\n{body}}}\n"


def measured(model: PlainModel, header: PlainModel, rows: Any) -> str:
    """Measure how a header's arithmetic changes scores and labels, on these rows or on the worse of `probes`."""
    is_blind = model.vectors is None and model.examples is None
    where = "given" if rows is not None else "of normal numbers" if is_blind else "near the vectors"
    groups = errors_on(model, header.scores, probes(model) if rows is None else [_given(model, rows)], np.float64)
    if not groups:
        return ""
    worst = max(groups, key=lambda found: found.error / found.largest)
    error, rows = worst.error / worst.largest, worst.rows
    if not np.isfinite(error):
        raise ValueError(f"scores of rows {where} are beyond float32: scale the features, or take float64")
    text = f"on {len(rows):,} rows {where} scores differ by at most {error:.1e} of the largest"
    if model.kind in NUMBERS:
        return text
    before, after = (np.asarray(PREDICTORS[each.kind](each).predict(rows)) for each in (model, header))
    n_other = int((before != after).reshape(len(rows), -1).any(axis=1).sum())
    if model.calibration is not None:
        text += f", probabilities by at most {worst.of_probabilities:.1e}"
    return f"{text}; {n_other:,} predictions differ"


def _given(model: PlainModel, rows: Any) -> Array:
    rows = as_rows(rows, "rows")
    if rows.shape[1] != model.n_features or not rows.shape[0]:
        raise ValueError(f"rows must be some of {model.n_features} features as in training, found shape {rows.shape}")
    rows = dense_rows(rows, 0, rows.shape[0])
    with np.errstate(over="ignore"):
        check_finite(rows.astype(np.float32), "rows")  # errors are measured on rows of float32
    return rows
