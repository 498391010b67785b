"""What ``python -m benchmarks all`` runs: cells, each a benchmark with its options, full and quick."""

from __future__ import annotations

from typing import NamedTuple

HOUR = 3600.0


class Cell(NamedTuple):
    """A piece of the run that is done or not.

    ``argv`` and ``quick`` are what follows ``python -m benchmarks``; ``quick`` is empty where a quick run leaves the
    cell out. A cell ends after ``limit`` seconds, a quick one after QUICK_LIMIT.
    """

    name: str
    argv: tuple[str, ...]
    quick: tuple[str, ...] = ()
    limit: float = 6 * HOUR


QUICK_LIMIT = 240.0

BUDGET_SETS = ("checkerboard", "ijcnn1", "cod-rna", "adult", "covtype", "susy")
PAPERS_SUBSPACE_SETS = ("ijcnn1", "adult", "CCAT", "OCR0", "OCR*")
OTHER_SUBSPACE_SETS = ("cod-rna", "covtype")
ORIGINAL_SETS = ("ijcnn1", "adult", "cod-rna")
TABLE_SETS = (
    "banana", "waveform", "splice", "adult-3185", "adult", "forest-50000", "forest-90000", "forest-200000",
)  # fmt: skip
PEER_SETS = (
    "generated 10 features", "generated 30 classes", "checkerboard", "ijcnn1", "cod-rna", "adult", "mnist-38",
    "covtype", "phoneme", "magic", "twonorm", "ring", "spambase", "page-blocks0", "sylva", "satimage", "segment",
    "hiva", "kc1", "shuttle-2_vs_5", "poker-8-9_vs_5", "banana", "letter", "marketing", "optdigits", "penbased",
    "texture", "titanic",
)  # fmt: skip


def budget_cells() -> list[Cell]:
    """BSCA's figures and table, and the paper's algorithms for many epochs, as in its figure 3."""
    small = "--max-basis 100 --seeds 2 --curve-epochs 10 --no-budget-rows 1000 --limit-rows 300 --limit-epochs 200"
    quick = {
        "checkerboard": "budget --quick --sets checkerboard",
        "ijcnn1": f"budget --sets ijcnn1 --no-exact {small}",
    }
    cells = [
        Cell(f"budget {name}", ("budget", "--sets", name), tuple(quick.get(name, "").split()), limit=24 * HOUR)
        for name in BUDGET_SETS
    ]
    many = "--methods bsca bsgd --epochs 1 --curve-epochs 150 --no-budget-rows 0 --limit-rows 0 --no-exact"
    for name in BUDGET_SETS:
        sizes = "--max-basis 200 500" if name in ("adult", "covtype") else "--max-basis 200 500 1000"
        argv = ("budget", "--sets", name, *many.split(), *sizes.split())
        short = f"budget --sets {name} {small} --no-exact --methods bsca bsgd --curve-epochs 50 --no-budget-rows 0"
        cells.append(Cell(f"many-epochs {name}", argv, tuple(short.split()) if name == "ijcnn1" else (), 24 * HOUR))
    return cells


def subspace_cells() -> list[Cell]:
    """CPSP's figures and tables: C and γ chosen for each method and size as in the paper, but for objectives, where all
    methods have those of the exact SVM; time against rows; and the settings that the authors' program was run with.
    """
    quick = "--quick --fixed --max-n 3000 --sizes 10 50 100 --max-seconds 10 --parts sizes"
    few = "--methods cpsp cpsp-paper cpsp-paper-line cpsp-tr nystrom"
    compared = "--methods cpsp cpsp-paper cpsp-tr cpsp-paper-tr nystrom cholesky"
    comparators = "--methods cpsp-paper-tr cholesky"
    sizes = "--choose-each --parts sizes --max-seconds 120"
    beside = f"--beside exact lasvm cvm bvm linear {few}"
    up_to_1000 = "--parts sizes --sizes 10 20 50 100 200 500 1000 --max-seconds 120 --beside exact"
    growth = f"--fixed --parts growth --growth-basis 100 --svc-max-n 30000 --max-seconds 120 {few}"
    original = "--fixed --parts sizes --sizes 100 500 1000 --beside --methods cpsp cpsp-paper cpsp-paper-line"
    of_papers = {
        "subspace": (f"{sizes} {beside}", f"{quick} {beside}"),
        "subspace growth": (growth, ""),
        "objectives": (f"{up_to_1000} {compared}", f"{quick} --beside exact {compared}"),
        "comparators": (f"{sizes} --beside exact {comparators}", f"{quick} --beside exact {comparators}"),
    }
    cells = [
        subspace_cell(f"{kind} {name}", name, argv, short if name == "ijcnn1" else "")
        for kind, (argv, short) in of_papers.items()
        for name in PAPERS_SUBSPACE_SETS
    ]
    cells += [
        subspace_cell(f"subspace {name}", name, f"{sizes} {beside} --max-n 20000") for name in OTHER_SUBSPACE_SETS
    ]
    return cells + [subspace_cell(f"original {name}", name, original) for name in ORIGINAL_SETS]


def subspace_cell(title: str, data: str, argv: str, quick: str = "") -> Cell:
    """A cell of the benchmark on one set."""
    of_set = ("subspace", "--sets", data)
    return Cell(title, (*of_set, *argv.split()), (*of_set, *quick.split()) if quick else (), 24 * HOUR)


def cross_training_cells() -> list[Cell]:
    """Cross-training's figures and table."""
    parts = {
        "overlap": "cross-training --quick --parts overlap",
        "gaussians": "cross-training --quick --parts gaussians",
        "noise": "cross-training --parts noise --sizes 1000 2000 --noise 0 0.1 --seeds 1",
        "comparators": "",
    }
    cells = [
        Cell(f"cross-training {part}", ("cross-training", "--parts", part), tuple(quick.split()), 24 * HOUR)
        for part, quick in parts.items()
    ]
    for name in TABLE_SETS:
        argv = ("cross-training", "--parts", "sets", "--sets", name)
        quick = (*argv, "--seeds", "1") if name in ("banana", "waveform") else ()
        cells.append(Cell(f"cross-training {name}", argv, quick, 24 * HOUR))
    return cells


def peer_cells() -> list[Cell]:
    """What users would take instead, set by set."""
    return [
        Cell(
            f"peers {name}",
            ("peers", "--sets", name),
            ("peers", "--quick", "--sets", name) if name in PEER_SETS[:3] else (),
        )
        for name in PEER_SETS
    ]


def block_cells() -> list[Cell]:
    """Rows beyond memory, by files and by Dask."""
    quick = {"files": ("blocks", "--quick", "--parts", "files")}
    return [
        Cell(f"blocks {part}", ("blocks", "--parts", part), quick.get(part, ()))
        for part in ("files", "kills", "peers", "accuracy")
    ]


def sampled_cells() -> list[Cell]:
    """The figures and the table of sampled cuts: each part on each set, as the paper has it."""
    quick = "sampled-cuts --quick --parts scaling sample-size --max-n 3000 --max-seconds 5"
    parts = {
        "scaling checkerboard": "--parts scaling --sets checkerboard",
        "scaling covtype": "--parts scaling --sets covtype",
        "sample-size": "--parts sample-size",
        "fixed-c1": "--parts fixed-c1",
    }
    cells = [
        Cell(f"sampled-cuts {name}", ("sampled-cuts", *argv.split()), limit=24 * HOUR) for name, argv in parts.items()
    ]
    return [cells[0]._replace(quick=tuple(quick.split())), *cells[1:]]


def own_cells() -> list[Cell]:
    """What README and docs/measured.md show: ours beside scikit-learn and scikit-learn-intelex."""
    beside = "--methods slimsvm scikit-learn scikit-learn-intelex --threads 2 --slow-max-n 200000"
    sets = "checkerboard ijcnn1 mnist-38 money-fx"
    few = ("few-vectors", "--sets", "ijcnn1", "cod-rna", "adult", "two classes", "five classes")
    few_methods = "--max-seconds 5 --methods SVC() max_basis=100"
    quick = ("few-vectors", "--sets", "two classes", "--max-rows", "2000", "--sizes", "25", "--seeds", "2")
    return [
        Cell("first-screen", ("few-vectors", "--sets", "ijcnn1")),
        Cell("few-vectors", few, quick),
        Cell("defaults", ("defaults",), tuple(["defaults", "--sets", "moons", "diabetes", "--max-rows", "2000"])),
        Cell("probabilities", ("probabilities", "--side", "report"), limit=HOUR),
        Cell("guarantees", ("guarantees", "--side", "report", "--max-rows", "400"), limit=4 * HOUR),
        *board_cells(),
        Cell("exact", tuple(f"exact --sets {sets} {beside}".split()), tuple(["exact", "--quick", "--threads", "1"])),
        Cell("scaling", ("scaling",), tuple(f"scaling --sets cod-rna --sizes 1000 2000 4000 {few_methods}".split())),
        Cell("onnx", ("onnx",), limit=HOUR),
        Cell("fixed-point", ("fixed-point",), limit=HOUR),
        Cell("search", tuple(["search", "--threads", "1"]), limit=HOUR),
        Cell("learned-bases", tuple(["learned-bases", "--seeds", "3"]), limit=HOUR),
        Cell("exact covtype", tuple(f"exact --sets covtype --max-n 20000 {beside}".split())),
    ]


def board_cells() -> list[Cell]:
    """Tables as they are, without explainable boosting, which takes half a minute a table, and without a grid; and the
    methods that bring PyTorch: a network, and kernels with learned axes.
    """
    methods = {
        "board": (
            "slimsvm", "slimsvm, small", "CatBoost", "LightGBM", "XGBoost", "histogram boosting", "random forest",
            "linear",
        ),
        "networks": ("slimsvm", "CatBoost", "random forest", "RealMLP", "xRFM"),
    }  # fmt: skip
    few = ("--side", "report", "--splits", "1", "--max-rows", "1000", "--methods")
    return [Cell(name, ("board", *few, *those), limit=24 * HOUR) for name, those in methods.items()]


CELLS = {
    cell.name: cell
    for cell in (
        *own_cells(),
        *peer_cells(),
        *block_cells(),
        *cross_training_cells(),
        *budget_cells(),
        *sampled_cells(),
        *subspace_cells(),
    )
}
