"""C headers on a Cortex-M4, under QEMU and by Unicorn: the same scores, in few instructions."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import slimsvm
from cortex_for_tests import compiled, run_on_processor
from slimsvm.deploy.c_fixed_point import fixed_point
from slimsvm.estimators._shared.saving import plain_model_of

PAGE = Path(__file__).parents[2] / "docs" / "deploy" / "microcontroller.md"
TOOLS = "arm-none-eabi-gcc", "arm-none-eabi-size", "qemu-system-arm"
MISSING = [tool for tool in TOOLS if shutil.which(tool) is None]
needs_board = pytest.mark.skipif(bool(MISSING), reason=f"no {', '.join(MISSING)}")

FPU = {"fpu": ["-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"], "no fpu": ["-mfloat-abi=soft"]}
N_ROWS = 20
PROGRAM = """
#include <stdint.h>
#include "model.h"
#include "rows.h"
void print(const char *text);
void print_number(long number);
void start_counter(void);
uint32_t counted(void);
volatile float seen;
int main(void)
{
    union { float value; int32_t bits; } score;
    uint32_t ticks;
    int i;
    start_counter();
    for (i = 0; i < N_ROWS; ++i) {
        model_scores(rows[i], &score.value);
        seen = score.value; /* or the compiler would leave it out */
    }
    ticks = counted();
    for (i = 0; i < N_ROWS; ++i) {
        model_scores(rows[i], &score.value);
        print_number((long)score.bits);
        print("\\n");
    }
    print_number((long)ticks);
    return 0;
}
"""


def run_on_board(folder, flags):
    """Scores, instructions of a row, and bytes of code and constants; ``model.h`` and ``rows.h`` are in the folder."""
    page = PAGE.read_text(encoding="utf-8")
    for name in ("board.c", "board.ld"):
        text = re.search(rf"^`{re.escape(name)}`:\n\n```\w+\n(.*?)^```", page, flags=re.S | re.M).group(1)
        (folder / name).write_text(text)
    (folder / "main.c").write_text(PROGRAM)
    (folder / "only.c").write_text(
        '#include "model.h"\nfloat out(const float *x) { float s; model_scores(x, &s); return s; }\n'
    )
    compiler = ["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", *flags, "-O2", "-std=c99"]
    compiler += ["-Wall", "-Wextra", "-Werror"]
    linked = ["-nostdlib", "-nostartfiles", "-T", "board.ld", "main.c", "board.c", "-lgcc", "-o", "model.elf"]
    subprocess.run([*compiler, *linked], cwd=folder, check=True)
    subprocess.run([*compiler, "-c", "only.c"], cwd=folder, check=True)
    size = subprocess.run(["arm-none-eabi-size", "only.o"], cwd=folder, check=True, capture_output=True, text=True)
    board = ["qemu-system-arm", "-M", "mps2-an386", "-nographic", "-icount", "shift=0"]
    hosted = ["-semihosting-config", "enable=on,target=native", "-kernel", "model.elf"]
    done = subprocess.run(
        [*board, *hosted], cwd=folder, check=True, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
    )
    numbers = [int(word) for word in (done.stdout + done.stderr).split()]
    # SysTick runs at 25 MHz, and an instruction takes a nanosecond.
    return np.array(numbers[:-1], np.int32).view(np.float32), numbers[-1] * 40 / N_ROWS, int(size.stdout.split()[6])


def model_of_50_vectors(folder, dtype):
    """The estimator, whose header is written, and rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 8)).astype(np.float32)
    y = (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0).astype(int)
    clf = slimsvm.SVC(gamma=0.2, max_basis=50, random_state=0).fit(X, y)
    clf.to_c(folder / "model.h", dtype=dtype)
    return clf, X[:N_ROWS]


def assert_scores_are_right(scores, clf, X, dtype):
    model, X = plain_model_of(clf), X.astype(np.float64)
    expected = (fixed_point(model) if dtype == "int16" else model).scores(X)[:, 0]
    np.testing.assert_allclose(scores, expected, rtol=0, atol=5e-6 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("dtype", "fpu", "most_instructions", "most_bytes"),
    [("float32", "fpu", 6_000, 3_300), ("int16", "fpu", 6_000, 2_400), ("int16", "no fpu", 9_000, 4_000)],
)
def test_50_vectors_of_8_features_without_a_cross_compiler(dtype, fpu, most_instructions, most_bytes, tmp_path):
    """The same, compiled by zig; without an FPU the bytes include what takes its place."""
    pytest.importorskip("ziglang", reason="no zig: pip install ziglang")
    pytest.importorskip("unicorn", reason="no Unicorn: pip install unicorn")
    clf, X = model_of_50_vectors(tmp_path, dtype)
    scores, instructions, n_bytes = run_on_processor(compiled(tmp_path, fpu), X, fpu)
    assert_scores_are_right(scores, clf, X, dtype)
    assert 1_000 < instructions < most_instructions
    assert 800 < n_bytes < most_bytes


@needs_board
@pytest.mark.parametrize(
    ("dtype", "fpu", "most_instructions", "most_bytes"),
    [("float32", "fpu", 6_000, 2_600), ("int16", "fpu", 6_500, 1_800), ("int16", "no fpu", 10_000, 1_800)],
)
def test_50_vectors_of_8_features(dtype, fpu, most_instructions, most_bytes, tmp_path):
    """In under 15,000 instructions a row, as counted under QEMU, and with room to spare."""
    clf, X = model_of_50_vectors(tmp_path, dtype)
    rows = ",\n".join("{" + ", ".join(f"{value!r}f" for value in row) + "}" for row in X.astype(float).tolist())
    (tmp_path / "rows.h").write_text(f"#define N_ROWS {N_ROWS}\nstatic const float rows[N_ROWS][8] = {{{rows}}};\n")
    scores, instructions, n_bytes = run_on_board(tmp_path, FPU[fpu])
    assert_scores_are_right(scores, clf, X, dtype)
    assert 1_000 < instructions < most_instructions
    assert 800 < n_bytes < most_bytes
