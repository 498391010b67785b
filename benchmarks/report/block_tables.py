"""The tables of the docs about rows beyond memory: files, Dask, killed workers, boosted trees."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.report.doc_writing import markdown, seconds
from benchmarks.report.found import Found, Rows

WAYS = {
    "memory": "`SVC`, array",
    "parquet": "`SVC`, Parquet",
    "dask": "`slimsvm.dask.SVC`",
    "LightGBM": "LightGBM, array",
    "lightgbm.dask": "`lightgbm.dask`",
}


def files(found: Found) -> str:
    """The same rows from an array, from Parquet and by Dask, in turn."""
    records = done(found, "blocks files")
    least = mean([r for r in records if r["fit"] == "memory"], "cpu_seconds")
    rows = []
    for fit, own in by(records, "fit").items():
        rows.append((
            WAYS[fit], ", ".join(seconds(r["cpu_seconds"]) for r in own), f"{mean(own, 'cpu_seconds') / least:.2f}",
            ", ".join(seconds(r["seconds"]) for r in own), f"{max(r['peak_bytes'] for r in own) / 1e6:,.0f} MB",
            ", ".join(sorted({f"`{r['file'][:8]}`" for r in own})),
        ))  # fmt: skip
    head = ("rows", "processor seconds", "by an array's", "seconds", "memory", "model file (SHA-256)")
    return markdown(head, rows, ["blocks files"], found)


def killed(found: Found) -> str:
    """A worker killed at random moments."""
    records = done(found, "blocks kills")
    unharmed = next(r for r in records if "kill" not in r)
    rows = [
        (f"{r['kill']:.1f} s" if "kill" in r else "–", seconds(r["seconds"]),
         f"{r['seconds'] / unharmed['seconds']:.2f}", "yes" if r["file"] == unharmed["file"] else "no")
        for r in sorted(records, key=lambda r: r.get("kill", 0.0))
    ]  # fmt: skip
    head = ("a worker killed after", "seconds of the fit", "by those without a kill", "the same model file")
    return markdown(head, rows, ["blocks kills"], found)


def trees(found: Found) -> str:
    """Rows from files, beside boosted trees."""
    rows = [
        (f"{r['set']}, {r['rows']:,}", WAYS[r["fit"]], f"{100 * r['test_error']:.3f} %", seconds(r["cpu_seconds"]),
         seconds(r["seconds"]), f"{r['peak_bytes'] / 1e6:,.0f} MB")
        for r in done(found, "blocks peers")
    ]  # fmt: skip
    head = ("set, rows", "fit", "test error", "processor seconds", "seconds", "memory")
    return markdown(head, rows, ["blocks peers"], found)


def accuracy(found: Found) -> str:
    """Real sets repeated with noise: by Dask and from memory."""
    rows = []
    for name, own in by(done(found, "blocks accuracy"), "set").items():
        local, remote = (next(r for r in own if r["fit"] == fit) for fit in ("memory", "dask"))
        rows.append((
            f"{name}, {local['rows']:,}",
            *(f"{100 * r['test_error']:.2f} %, {seconds(r['cpu_seconds'])} s" for r in (local, remote)),
            "yes" if local["file"] == remote["file"] else "no",
        ))  # fmt: skip
    head = ("set, rows", f"{WAYS['memory']}: test error, processor", f"{WAYS['dask']}", "the same model file")
    return markdown(head, rows, ["blocks accuracy"], found)


def done(found: Found, cell: str) -> Rows:
    """Fits of a cell that ended well."""
    return [record for record in found.results(cell)["records"] if record["status"] == "done"]


def by(records: Rows, key: str) -> dict[str, Rows]:
    """Records by a value, in the order in which they came."""
    return {value: [r for r in records if r[key] == value] for value in dict.fromkeys(r[key] for r in records)}


def mean(records: Rows, key: str) -> float:
    """Mean of a number."""
    return sum(record[key] for record in records) / len(records)


BLOCK_TABLES: dict[str, Callable[[Found], str]] = {
    "blocks-files": files,
    "blocks-kills": killed,
    "blocks-peers": trees,
    "blocks-accuracy": accuracy,
}
