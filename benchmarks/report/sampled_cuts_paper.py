"""What the paper of sampled cuts says: its settings and its table 1 (Yu and Joachims 2008)."""

from __future__ import annotations

from typing import NamedTuple

LIBSVM = "scikit-learn SVC"
# All sample sizes and C of figures 4 to 7.
PAPERS_SAMPLE_SIZES, PAPERS_C = (100, 400, 1000, 4000, 10_000), (0.01, 0.1, 1.0, 10.0, 100.0)
OF_PAPER = (
    "ε = 0.001 of the mean loss, cuts that are idle for 20 iterations dropped, uniform cuts end after p = 4 samples in "
    "a row, no intercept, three runs"
)
OF_SCALING = (
    "C = 1 (there C n), uniform cuts of r = 1,000 rows, violated cuts of 400; board σ² = 0.05, covtype 1.7; "
    f"{OF_PAPER}."
)
OF_SAMPLES = (
    f"Adult, 22,697 rows, σ² = 20; r = 100, 400, 1,000, 4,000, 10,000; C = 0.01 to 100; {OF_PAPER}. With r = 10,000 "
    "and C = 10 and 100 the paper's uniform cuts did not end within five days."
)


class Line(NamedTuple):
    """A method's line of the paper's table 1 on one set: means of three runs, deviations in brackets there."""

    seconds: float
    seconds_deviation: float
    train: float
    train_deviation: float
    test: float
    test_deviation: float


# The paper's table 1: rows, and lines by our names of the methods.
PAPERS_TABLE_1: dict[str, tuple[int, dict[str, Line]]] = {
    "checkerboard": (1_000_000, {
        "uniform r=400, paper's steps": Line(1_411, 40, 3.12, 0.01, 3.23, 0.06),
        "uniform r=1000, paper's steps": Line(1_854, 175, 2.96, 0.01, 3.14, 0.13),
        "violated r=400, paper's steps": Line(60_101, 1_042, 2.90, 0.01, 2.99, 0.01),
        "violated r=1000, paper's steps": Line(151_759, 3_334, 2.89, 0.00, 2.95, 0.05),
        "Cholesky(250)": Line(2_447, 0, 3.11, 0.0, 3.32, 0.0),
        LIBSVM: Line(36_533, 0, 2.87, 0.0, 2.94, 0.0),
    }),
    "adult": (22_697, {
        "uniform r=400, paper's steps": Line(17_487, 1_175, 7.90, 0.05, 10.45, 0.08),
        "uniform r=1000, paper's steps": Line(38_617, 604, 7.65, 0.01, 10.29, 0.07),
        "violated r=400, paper's steps": Line(11_136, 640, 7.43, 0.09, 10.19, 0.15),
        "violated r=1000, paper's steps": Line(15_191, 612, 7.44, 0.01, 10.19, 0.15),
        "Cholesky(250)": Line(604, 0, 15.10, 0.0, 15.09, 0.0),
        "Cholesky(500)": Line(537, 0, 14.60, 0.0, 14.50, 0.0),
        "Cholesky(5000)": Line(3_386, 0, 10.89, 0.0, 12.43, 0.0),
        "Cholesky(10000)": Line(8_836, 0, 9.12, 0.0, 11.41, 0.0),
        LIBSVM: Line(11_630, 0, 7.52, 0.0, 10.37, 0.0),
    }),
    "covtype": (522_910, {
        "uniform r=400, paper's steps": Line(3_496, 408, 18.49, 0.11, 18.61, 0.13),
        "uniform r=1000, paper's steps": Line(12_946, 1_400, 18.34, 0.09, 18.55, 0.02),
        "violated r=400, paper's steps": Line(62_184, 485, 18.16, 0.03, 18.28, 0.02),
        "violated r=1000, paper's steps": Line(155_196, 6_649, 17.96, 0.03, 18.22, 0.02),
        "Cholesky(250)": Line(1_937, 0, 21.73, 0.0, 21.85, 0.0),
        "Cholesky(500)": Line(3_093, 0, 20.29, 0.0, 20.35, 0.0),
        LIBSVM: Line(273_021, 0, 17.87, 0.0, 18.09, 0.0),
    }),
}  # fmt: skip
PAPERS_RUNS = 3
