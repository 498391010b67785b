"""A C header on a Cortex-M4 without a cross compiler: compiled by zig, run by Unicorn, both from PyPI."""

import struct
import subprocess
import sys

import numpy as np

ROW, STACK, END = 0x20000100, 0x20010000, 0xF0000
SOURCE = '#include "model.h"\nfloat _start(const float *x) { float s; model_scores(x, &s); return s; }\n'
LAYOUT = """ENTRY(_start)
SECTIONS { . = 0x10000; .text : { *(.text*) *(.rodata*) } .data : { *(.data*) *(.bss*) } }
"""
TARGETS = {
    "fpu": ["thumb-freestanding-eabihf", "cortex_m4+vfp4d16sp"],
    "no fpu": ["thumb-freestanding-eabi", "cortex_m4"],
}


def compiled(folder, fpu):
    """The bytes of an image with the model of ``model.h``, which begins with the function of a row's score."""
    (folder / "only.c").write_text(SOURCE)
    (folder / "only.ld").write_text(LAYOUT)
    target, processor = TARGETS[fpu]
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", target, f"-mcpu={processor}", "-g0", "-O2"]
    warnings = ["-std=c99", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*compiler, *warnings, "-T", "only.ld", "only.c", "-o", "only.elf"], cwd=folder, check=True)
    return (folder / "only.elf").read_bytes()


def run_on_processor(image, X, fpu):
    """Scores of rows, instructions of a row, and bytes of code and constants."""
    import unicorn
    from unicorn import arm_const as arm

    machine = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
    machine.ctl_set_cpu_model(arm.UC_CPU_ARM_CORTEX_M4)
    for address in (0, ROW & ~0xFFFFF):
        machine.mem_map(address, 1 << 20)
    begin, headers = struct.unpack_from("<II", image, 24)
    n_bytes, n_instructions, scores = 0, 0, []
    for i in range(struct.unpack_from("<H", image, 44)[0]):
        kind, offset, address, _, size, _ = struct.unpack_from("<6I", image, headers + 32 * i)
        if kind == 1:
            machine.mem_write(address, image[offset : offset + size])
            n_bytes += size

    def count(*_):
        nonlocal n_instructions
        n_instructions += 1

    machine.hook_add(unicorn.UC_HOOK_CODE, count)
    if fpu == "fpu":
        machine.reg_write(arm.UC_ARM_REG_FPEXC, 1 << 30)
    for row in X.astype("<f4"):
        machine.mem_write(ROW, row.tobytes())
        for register, value in ((arm.UC_ARM_REG_R0, ROW), (arm.UC_ARM_REG_SP, STACK), (arm.UC_ARM_REG_LR, END | 1)):
            machine.reg_write(register, value)
        machine.emu_start(begin | 1, END)
        scores.append(machine.reg_read(arm.UC_ARM_REG_S0 if fpu == "fpu" else arm.UC_ARM_REG_R0))
    return np.array(scores, np.uint32).view(np.float32), n_instructions / len(X), n_bytes
