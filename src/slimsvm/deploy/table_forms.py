"""Tables in forms without Python: as JSON, and as a C99 header that encodes a row's columns and scores it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from slimsvm.deploy.c_encoding import RANK, codes_in_c
from slimsvm.deploy.c_header import c_header
from slimsvm.deploy.c_text import array, named
from slimsvm.deploy.json_model import json_parts
from slimsvm.deploy.plain_model import PlainModel
from slimsvm.deploy.table_model import TableModel, counted
from slimsvm.tables.encoders import Levels, ManyLevels, Numbers, pack_encoder
from slimsvm.whole_file import write_whole

Array = np.ndarray

FORMAT, VERSION = "slimsvm table", 1

NUMBER = """\
    /* {said} */
    missing = !(values[{j}] == values[{j}]);
    x[{at}] = missing ? 0.0f : NAME_rank(values[{j}], {n}, NAME_values{j}, NAME_deviates{j});
"""
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
ENCODE = """
/* What NAME_scores takes, of the columns in the order of training: numbers, NaN where missing, and NAME_code of levels.
 * Values of columns that were left out do not count. */
static inline void NAME_encode(const double *values, float *x)
{{
    int f, k, missing;
    (void)f, (void)k, (void)missing;
{body}}}
"""


def write_table_json(model: TableModel, path: Any) -> str:
    """Write encoders and models as JSON; say what was written."""
    columns = []
    for encoder in model.encoding.encoders:
        arrays: dict[str, Array] = {}
        facts = pack_encoder(encoder, "own", arrays)
        columns.append(facts | {name.removeprefix("own_"): values.tolist() for name, values in arrays.items()})
    machines = []
    for weight, part, lines in model.machines:
        if isinstance(part, PlainModel):
            facts = json_parts(replace(part, calibration=lines if len(lines) else None))
        else:
            facts = {"kind": "additive", "weights": part.weights.tolist(), "intercept": part.intercept.tolist(),
                     "calibration": lines.tolist()}  # fmt: skip
        machines.append({"weight": weight} | facts)
    classes = None if model.classes is None else model.classes.tolist()
    parts = {"format": FORMAT, "version": VERSION, "classes": classes, "mean": model.mean, "spread": model.spread,
             "are_flags": model.encoding.are_flags.tolist(), "columns": columns, "machines": machines}  # fmt: skip
    text = json.dumps(parts, allow_nan=False) + "\n"
    write_whole(path, [text])
    return f"{path}: JSON, {len(columns)} columns, {counted(machines)}, {len(text):,} bytes"


def write_table_c(
    model: TableModel, path: Any, name: str | None = None, dtype: str = "auto", rows: Any = None, alpha: Any = None
) -> str:
    """Write a C99 header of one model and of the encoders of its columns; say what was written.

    Parameters
    ----------
    model : TableModel
    path : str or path-like
    name : str or None, default=None
        As `slimsvm.deploy.c_header.write_c` has it.
    dtype : {"auto", "float32", "float64"}, default="auto"
    rows, alpha : None

    Raises
    ------
    ValueError
        There are several models, or an additive one, or a column of times: a header has no place for them.
    """
    (_, part, lines), *others = model.machines
    if others or not isinstance(part, PlainModel):
        found = counted(model.machines) if others else "an additive model"
        raise ValueError(f"a C header has one kernel model, found {found}: fit with preset='small', or export JSON")
    for encoder in model.encoding.encoders:
        if encoder.width and not isinstance(encoder, Numbers | Levels | ManyLevels):
            raise ValueError(f"a C header encodes numbers and levels, found column {encoder.name!r}: {encoder.told()}")
    if dtype == "int16" or rows is not None:
        raise ValueError("the header of a table is in float32 or float64, and takes no rows to measure on")
    if alpha is not None:
        raise ValueError(f"alpha={alpha!r}: the header of a table has no sets or intervals; load_predictor has them")
    name = re.sub(r"\W", "_", Path(path).stem.lower(), flags=re.A) if name is None else name
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*", name, flags=re.A):
        raise ValueError(f"name must be an identifier of C (letters, digits, _; no digit first), found {name!r}")
    if model.classes is None:  # the number itself, not in deviations
        part = replace(part, coef=model.spread * part.coef, intercept=model.mean + model.spread * part.intercept)
    else:
        part = replace(part, calibration=lines)
    text, n_bytes, error, dtype = c_header(part, name, dtype)
    encode = _encode(model, name, "double" if dtype == "float64" else "float")
    write_whole(path, [text.removesuffix("\n#endif\n") + encode + "\n#endif\n"])
    said = f"; {error}" if error else ""
    return f"{path}: C99 header, {dtype}, {len(model.encoding.encoders)} columns, {n_bytes:,} bytes of constants{said}"


def _encode(model: TableModel, name: str, real: str) -> str:
    """The functions that encode a row's columns, in which numbers are of type ``real``."""

    def filled(template: str, **values: Any) -> str:
        """A template with its names and types; texts of levels are not looked at."""
        return re.sub(r"\bfloat\b", real, named(template, name)).format(**values)

    constants, body, levels, at = "", "", list[list[str | None]](), 0
    for j, encoder in enumerate(model.encoding.encoders):
        said = (
            f"{encoder.name}: {encoder.told()}".replace("*/", "* /")
            .replace("/*", "/ *")
            .encode("ascii", "replace")
            .decode()
        )
        place = {"j": j, "at": at, "said": said}
        if isinstance(encoder, Numbers):
            n = len(encoder.values)
            for key, values in (("values", encoder.values), ("deviates", encoder.deviates)):
                constants += array(f"{key}{j}", values, f"[{n}]", "float64")
            body += filled(NUMBER, n=n, **place)
            body += filled(FLAG, at=at + 1) * encoder.flags_missing
        elif isinstance(encoder, Levels):
            body += filled(LEVELS, n=len(encoder.levels), **place)
        elif isinstance(encoder, ManyLevels):
            means = (np.vstack([encoder.means, encoder.prior]) - encoder.prior) / encoder.spread
            shape = f"[{len(means)}][{means.shape[1]}]"
            constants += array(f"means{j}", means, shape, "float64" if real == "double" else "float32")
            body += filled(MANY_LEVELS, n=len(encoder.levels), width=encoder.width, **place)
        levels.append(list(encoder.levels) if isinstance(encoder, Levels | ManyLevels) else [])
        at += encoder.width
    body = body if at else "    x[0] = 0;\n"
    encode = named(RANK.format(real=real), name) + filled(ENCODE, body=body)
    return "\n" + named(constants, name) + codes_in_c(levels, name) + encode
