// Sums and products over arrays in float64, in an order that depends on their length alone.
#pragma once

#include "simd/vector.h"

namespace slimsvm::SLIMSVM_ISA {

// sum_i a[i] b[i] of the first n; either may be float32.
template <class A, class B>
SLIMSVM_INLINE double dot(const A* a, const B* b, int64_t n) {
    constexpr int lanes = LANES<double>;
    Vec<double> sums[4] = {};
    int64_t i = 0;
    for (; i + 4 * lanes <= n; i += 4 * lanes)
        for (int v = 0; v < 4; ++v) sums[v] += load_wide(a + i + v * lanes) * load_wide(b + i + v * lanes);
    for (; i + lanes <= n; i += lanes) sums[0] += load_wide(a + i) * load_wide(b + i);
    double rest = 0.0;
    for (; i < n; ++i) rest += double(a[i]) * double(b[i]);
    return total((sums[0] + sums[1]) + (sums[2] + sums[3])) + rest;
}

// sum_i a[i] of the first n.
template <class A>
SLIMSVM_INLINE double sum(const A* a, int64_t n) {
    constexpr int lanes = LANES<double>;
    Vec<double> sums[4] = {};
    int64_t i = 0;
    for (; i + 4 * lanes <= n; i += 4 * lanes)
        for (int v = 0; v < 4; ++v) sums[v] += load_wide(a + i + v * lanes);
    for (; i + lanes <= n; i += lanes) sums[0] += load_wide(a + i);
    double rest = 0.0;
    for (; i < n; ++i) rest += double(a[i]);
    return total((sums[0] + sums[1]) + (sums[2] + sums[3])) + rest;
}

// out[i] += factor x[i].
template <class T, class X>
SLIMSVM_INLINE void add_scaled(T factor, const X* x, T* out, int64_t n) {
    for (int64_t i = 0; i < n; ++i) out[i] += factor * T(x[i]);
}

}  // namespace slimsvm::SLIMSVM_ISA
