"""A table as one C99 header: it encodes a row's columns, and averages what the models predict.

Each model is a header of its own (`c_header`), all in one file. The additive one is a linear model of splines; the
linear one is that of a row's features, of which other models see the first ones.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np

from slimsvm.deploy.c_encoding import RANK, codes_in_c
from slimsvm.deploy.c_header import c_header, check_name, name_for
from slimsvm.deploy.c_text import array, classes_array, in_type, named, number
from slimsvm.deploy.plain_model import KERNELS, PROBES, PlainModel
from slimsvm.deploy.table_model import TableModel, counted, model_of_table
from slimsvm.tables.encoders import DAYS_OF_YEAR, Levels, ManyLevels, Numbers, Times
from slimsvm.tables.splines import DEGREE, END, KNOTS, N_SPLINES, AdditiveModel, every_spline, splines_of_columns
from slimsvm.whole_file import write_whole

Array = np.ndarray

NUMBER = """\
    /* {said} */
    missing = !(values[{j}] == values[{j}]);
    x[{at}] = missing ? 0.0f : NAME_rank(values[{j}], {n}, NAME_values{j}, NAME_deviates{j});
"""
TIMES = """\
    /* {said} */
    missing = !(values[{j}] == values[{j}]);
    day = missing ? 0.0 : values[{j}];
    x[{at}] = missing ? 0.0f : NAME_rank(day, {n}, NAME_values{j}, NAME_deviates{j});
"""
CYCLE = "    NAME_wave(missing, {turns}, x + {at});\n"
TURNS = {"year": "NAME_year(day)", "week": "day / 7.0", "day": "day"}
STRAIGHT = "    x[{at}] = NAME_rank(missing ? {middle} : values[{j}], 2, NAME_line{j}, NAME_line{j} + 2);\n"
FLAG = "    x[{at}] = missing ? 1.0f : 0.0f;\n"
LEVELS = """\
    /* {said} */
    for (k = 0; k < {n}; ++k) x[{at} + k] = values[{j}] == (double)k ? 1.0f : 0.0f;
"""
MANY_LEVELS = """\
    /* {said} */
    k = values[{j}] >= 0.0 && values[{j}] < {n}.0 ? (int)values[{j}] : {n};
    for (f = 0; f < {width}; ++f) x[{at} + f] = NAME_means{j}[k][f];
"""
# The terms of both series up to the 14th power: off by 1e-15.
WAVES = """
/* The share of its year that lies before a day, which is counted from 1970 on. */
static inline double NAME_year(double day)
{{
    int64_t year = 1972 + (int64_t)(day / {days_of_year}), start, before;
    do {{
        before = --year - 1;
        start = 365 * (year - 1970) + before / 4 - before / 100 + before / 400 - 477;
    }} while ((double)start > day);
    return (day - (double)start) / {days_of_year};
}}

/* Sine and cosine of an angle in turns; 0 where it is missing. */
static inline void NAME_wave(int missing, double turns, float *x)
{{
    const int64_t quarter = (int64_t)(4.0 * turns + (turns < 0.0 ? -0.5 : 0.5));
    const double angle = (turns - 0.25 * (double)quarter) * 6.283185307179586, square = angle * angle;
    double sine = 1.0, cosine = 1.0, found[2];
    int n;
    for (n = 14; n > 0; n -= 2) {{
        cosine = 1.0 - cosine * square / (double)(n * (n - 1));
        sine = 1.0 - sine * square / (double)(n * (n + 1));
    }}
    sine *= angle;
    found[0] = quarter & 1 ? cosine : sine, found[1] = quarter & 1 ? sine : cosine;
    if (quarter & 2) found[0] = -found[0];
    if ((quarter + 1) & 2) found[1] = -found[1];
    for (n = 0; n < 2; ++n) x[n] = missing ? 0.0f : (float)found[n];
}}
"""
ENCODE = """
/* What NAME_predict takes, of the columns in the order of training: numbers, NaN where missing, NAME_code of levels,
 * and days since 1970-01-01 in UTC of times. Values of columns that were left out do not count. */
static inline void NAME_encode(const double *values, float *x)
{{
    double day = 0.0;
    int f, k, missing;
    (void)day, (void)f, (void)k, (void)missing;
{body}}}
"""
HEAD = """\
/* A table of {n_columns} columns: {text}.
 *
 * Written by slimsvm. C99, {dtype}, no allocation, no library.
 *
 *     double row[NAME_N_COLUMNS] = {{...}}; float x[NAME_N_FEATURES];
 *     NAME_encode(row, x);
 *     NAME_predict(x);
 */
#ifndef NAME_H
#define NAME_H

#include <stdint.h>

#define NAME_N_FEATURES {n_features}
"""
# de Boor: A Practical Guide to Splines, 1978, the recurrence over degrees.
SPLINES = """
/* The flags of a row, and of each of its numbers the {n_splines} splines that the additive model is a sum of. */
static inline void NAME_splines(const float *x, float *splines)
{{
    static const int flags[] = {{{flags}}}, numbers[] = {{{numbers}}};
    static const float knots[] = {{{knots}}};
    int f, r, degree;
    (void)numbers;
    for (f = 0; f < {n_flags}; ++f) splines[f] = x[flags[f]];
    for (f = 0; f < {n_numbers}; ++f) {{
        float *own = splines + {n_flags} + {n_splines} * f, value = x[numbers[f]];
        int at = {last};
        if (value < -{end}f) value = -{end}f;
        if (value > {end}f) value = {end}f;
        while (at < {n_splines} - 1 && value >= knots[at + 1]) ++at;
        for (r = 0; r < {n_splines}; ++r) own[r] = 0.0f;
        own += at - {last};
        own[0] = 1.0f;
        for (degree = 1; degree <= {last}; ++degree) {{
            float carried = 0.0f;
            for (r = 0; r < degree; ++r) {{
                const float above = knots[at + r + 1], below = knots[at + r + 1 - degree];
                const float part = own[r] / (above - below);
                own[r] = carried + (above - value) * part;
                carried = (value - below) * part;
            }}
            own[degree] = carried;
        }}
    }}
}}
"""
MEAN_OF_CLASSES = """
/* Writes the probabilities of the NAME_N_CLASSES classes: the weighted mean of those of the models. */
static inline void NAME_probabilities(const float *x, float *probabilities)
{{
    float own[NAME_N_CLASSES], total = 0.0f;
    int c;
    for (c = 0; c < NAME_N_CLASSES; ++c) probabilities[c] = 0.0f;
{body}    for (c = 0; c < NAME_N_CLASSES; ++c) total += probabilities[c];
    for (c = 0; c < NAME_N_CLASSES; ++c) probabilities[c] /= total;
}}

/* The class of the greatest probability, the first of equals, is NAME_classes[NAME_predict(x)]. */
static inline int NAME_predict(const float *x)
{{
    float probabilities[NAME_N_CLASSES];
    int c, best = 0;
    NAME_probabilities(x, probabilities);
    for (c = 1; c < NAME_N_CLASSES; ++c) if (probabilities[c] > probabilities[best]) best = c;
    return best;
}}
"""
ADD_PROBABILITIES = """\
    NAME_{j}_probabilities({row}, own);
    for (c = 0; c < NAME_N_CLASSES; ++c) probabilities[c] += {weight} * own[c];
"""
MEAN_OF_NUMBERS = """
/* The number itself: the weighted mean of those of the models. */
static inline float NAME_predict(const float *x)
{{
    float number = 0.0f;
{body}    return number;
}}
"""
ADD_NUMBER = "    number += {weight} * NAME_{j}_predict({row});\n"


def write_table_c(
    model: TableModel, path: Any, name: str | None = None, dtype: str = "auto", rows: Any = None, alpha: Any = None
) -> str:
    """Write a C99 header of the encoders of columns, and of the models; say what was written.

    The parameters are those of `slimsvm.deploy.c_header.write_c`, of which the header of a table takes no rows to
    measure on, no int16 and no alpha; ``dtype="auto"`` is float32 if that is good enough for every model.
    """
    if dtype == "int16" or rows is not None:
        raise ValueError("the header of a table is in float32 or float64, and takes no rows to measure on")
    if alpha is not None:
        raise ValueError(f"alpha={alpha!r}: the header of a table has no sets or intervals; load_predictor has them")
    name = name_for(path) if name is None else name
    check_name(name)
    parts = [_as_users_have_it(model, part, lines) for _, part, lines in model.members]
    if len(parts) == 1 and parts[0].vectors is not None:
        text, n_bytes, error, dtype = c_header(parts[0], name, dtype)
        said, text = f"; {error}" if error else "", text.removesuffix("\n#endif\n")
    else:
        said, (text, n_bytes, dtype) = f" of {counted(parts)}", _mean(model, parts, name, dtype)
    encode = _encode(model, name, "double" if dtype == "float64" else "float")
    write_whole(path, [text + encode + "\n#endif\n"])
    return f"{path}: C99 header, {dtype}, {len(model.encoding.encoders)} columns, {n_bytes:,} bytes of constants{said}"


def _as_users_have_it(model: TableModel, part: Any, lines: Array) -> PlainModel:
    """A model that predicts numbers themselves, not their deviations, or probabilities; the additive one is linear
    in splines.
    """
    if isinstance(part, AdditiveModel):
        weights = part.weights
        linear = model_of_table(KERNELS["linear"](), len(weights), None, weights, part.intercept, model.classes)
        part = replace(linear, examples=_some_splines(part, model.encoding.are_flags))
    if model.classes is not None:
        return replace(part, calibration=lines)
    return replace(part, coef=model.spread * part.coef, intercept=model.mean + model.spread * part.intercept)


def _some_splines(part: AdditiveModel, are_flags: Array) -> Array:
    """Rows as the linear model sees them: random flags, and splines of normal deviates, or these themselves."""
    numbers = np.random.default_rng(0).standard_normal((PROBES, part.n_features))
    flags = np.flatnonzero(are_flags)
    numbers[:, flags] = numbers[:, flags] > 0
    splines = [every_spline(*own) for own in splines_of_columns(numbers[:, ~part.are_flags])]
    return np.hstack([numbers[:, part.are_flags], *splines])


def _mean(model: TableModel, parts: list[PlainModel], name: str, dtype: str) -> tuple[str, int, str]:
    """A header of all models and of their mean, its bytes of constants, and its type."""
    names = [f"{name}_{j}" for j in range(len(parts))]
    written = [c_header(part, own, dtype) for part, own in zip(parts, names, strict=True)]
    if {found for *_, found in written} != {"float32"}:
        dtype = "float64"
        written = [c_header(part, own, dtype) for part, own in zip(parts, names, strict=True)]
    dtype = written[0][-1]
    body, splines, are_flags = "", "", model.encoding.are_flags
    for j, (part, (weight, own, _)) in enumerate(zip(parts, model.members, strict=True)):
        has_splines = isinstance(own, AdditiveModel) and not own.are_flags.all()
        if has_splines and not splines:
            splines = _splines(are_flags, dtype)
            body += f"    float splines[{part.n_features}];\n    NAME_splines(x, splines);\n"
        added = ADD_NUMBER if model.classes is None else ADD_PROBABILITIES
        body += added.format(j=j, row="splines" if has_splines else "x", weight=number(weight, dtype))
    mean = splines + (MEAN_OF_NUMBERS if model.classes is None else MEAN_OF_CLASSES).format(body=body)
    facts = {"n_columns": len(model.encoding.encoders), "text": f"the weighted mean of {counted(parts)}"}
    head = HEAD.format(dtype=dtype, n_features=model.encoding.n_features, **facts)
    head, mean = named(in_type(head, dtype), name), named(in_type(mean, dtype), name)
    if model.classes is not None:
        head += named(f"#define NAME_N_CLASSES {len(model.classes)}\n\n", name) + classes_array(model.classes, name)
    text = "\n".join([head, *(own for own, *_ in written)]) + mean
    return text, sum(n_bytes for _, n_bytes, *_ in written), dtype


def _splines(are_flags: Array, dtype: str) -> str:
    """The function that makes splines of a row."""
    flags, numbers = np.flatnonzero(are_flags), np.flatnonzero(~are_flags)
    return SPLINES.format(n_flags=len(flags), flags=_words(flags, "int32"), n_numbers=len(numbers),
                          numbers=_words(numbers, "int32"), n_splines=N_SPLINES, last=DEGREE, end=END,
                          knots=_words(KNOTS, dtype))  # fmt: skip


def _words(values: Array, dtype: str) -> str:
    """Constants between commas; 0 where there are none, as C has no empty array."""
    return ", ".join(number(value, dtype) for value in values) or "0"


def _encode(model: TableModel, name: str, real: str) -> str:
    """The functions that encode a row's columns, in which numbers are of type ``real``."""

    def filled(template: str, **values: Any) -> str:
        """A template with its names and types; texts of levels are not looked at."""
        return re.sub(r"\bfloat\b", real, named(template, name)).format(**values)

    constants, body, levels, at = "", "", list[list[str | None]](), 0
    straight = iter(range(len(model.encoding.are_flags), model.encoding.n_features))
    for j, encoder in enumerate(model.encoding.encoders):
        said = f"{encoder.name}: {encoder.told()}".replace("*/", "* /").replace("/*", "/ *")
        said = said.encode("ascii", "replace").decode()
        place = {"j": j, "at": at, "said": said}
        if isinstance(encoder, Numbers | Times):
            n, cycles = len(encoder.values), encoder.cycles if isinstance(encoder, Times) else ()
            for key, values in (("values", encoder.values), ("deviates", encoder.deviates)):
                constants += array(f"{key}{j}", values, f"[{n}]", "float64")
            body += filled(TIMES if isinstance(encoder, Times) else NUMBER, n=n, **place)
            for k, cycle in enumerate(cycles):
                body += filled(CYCLE, turns=named(TURNS[cycle], name), at=at + 1 + 2 * k)
            body += filled(FLAG, at=at + encoder.width - 1) * encoder.flags_missing
            if isinstance(encoder, Numbers) and encoder.straight:
                constants += array(f"line{j}", np.concatenate(encoder.line), "[4]", "float64")
                body += filled(STRAIGHT, j=j, at=next(straight), middle=number(encoder.middle, "float64"))
        elif isinstance(encoder, Levels):
            body += filled(LEVELS, n=len(encoder.levels), **place)
        elif isinstance(encoder, ManyLevels):
            means = encoder.features_of_levels
            shape = f"[{len(means)}][{means.shape[1]}]"
            constants += array(f"means{j}", means, shape, "float64" if real == "double" else "float32")
            body += filled(MANY_LEVELS, n=len(encoder.levels), width=encoder.width, **place)
        levels.append(list(encoder.levels) if isinstance(encoder, Levels | ManyLevels) else [])
        at += encoder.width
    body = body if at else "    x[0] = 0;\n"
    has_cycles = any(isinstance(encoder, Times) and encoder.cycles for encoder in model.encoding.encoders)
    waves = filled(WAVES, days_of_year=DAYS_OF_YEAR) if has_cycles else ""
    encode = named(RANK.format(real=real), name) + waves + filled(ENCODE, body=body)
    return "\n" + named(constants, name) + codes_in_c(levels, name) + encode
