"""Python calls inside the library during one small fit: what a fit costs apart from its loops, file by file."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import slimsvm

ROWS, FEATURES = 3_000, 5


def run() -> list[dict[str, Any]]:
    """Calls by file, from the most, during the second fit of ``SVC()``: the first one imports and compiles.

    Returns
    -------
    list of dict
        ``file`` within the package and ``calls``; the first row is the sum, with the number of files.
    """
    X = np.random.default_rng(0).normal(size=(ROWS, FEATURES))
    y = np.sign(X[:, 0] * X[:, 1])
    slimsvm.SVC().fit(X, y)
    root, calls = Path(slimsvm.__file__).parent, Counter[str]()

    def count(frame: FrameType, event: str, argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(root):
            calls[path.relative_to(root).as_posix()] += 1

    clf = slimsvm.SVC()
    sys.setprofile(count)
    try:
        clf.fit(X, y)
    finally:
        sys.setprofile(None)
    rows = [{"file": file, "calls": n} for file, n in calls.most_common()]
    return [{"file": f"all {len(rows)} files", "calls": calls.total()}, *rows]
