// Which instruction sets the processor has. Asked of the processor itself: __builtin_cpu_supports takes its answer from
// the compiler's runtime library, and zig's says no to everything.
#pragma once

#include <stdlib.h>
#include <string.h>

#if defined(SLIMSVM_HAS_AVX2)
#include <cpuid.h>
#endif

namespace slimsvm {

enum class Isa { BASELINE, AVX2, AVX512 };

// The best that the processor has, of those that were compiled.
inline Isa best_isa() {
#if defined(SLIMSVM_HAS_AVX2)
    constexpr unsigned ymm = 0x6;
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_FMA)) return Isa::BASELINE;
    unsigned saved, high;  // registers that the system saves, a bit each
    __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    if ((saved & ymm) != ymm || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2)) return Isa::BASELINE;
#if defined(SLIMSVM_HAS_AVX512)
    constexpr unsigned zmm = 0xe0 | ymm, needed = bit_AVX512F | bit_AVX512DQ | bit_AVX512VL | bit_AVX512BW;
    if ((saved & zmm) == zmm && (b & needed) == needed) return Isa::AVX512;
#endif
    return Isa::AVX2;
#else
    return Isa::BASELINE;
#endif
}

// The same, or the lower one that the environment variable SLIMSVM_ISA names.
inline Isa chosen_isa() {
    const Isa most = best_isa();
    const char* asked = getenv("SLIMSVM_ISA");
    if (!asked) return most;
    if (strcmp(asked, "baseline") == 0) return Isa::BASELINE;
    return strcmp(asked, "avx2") == 0 && most != Isa::BASELINE ? Isa::AVX2 : most;
}

}  // namespace slimsvm
