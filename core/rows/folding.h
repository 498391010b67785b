// Folding: rows centred, scaled, with h(x) and factor = 2^(h - its nearest integer) / scale, once per fit.
#pragma once

#include <string.h>

#include "simd/exp2.h"
#include "simd/reduce.h"
#include "slimsvm.h"

namespace slimsvm::SLIMSVM_ISA {

// Beyond this -h, z = h + ... is held no more exactly enough to be rounded to an integer.
template <class T>
constexpr double FAR = sizeof(T) == 4 ? 1048576.0 : 1125899906842624.0;

SLIMSVM_INLINE void store_narrow(double* place, Vec<double> value) { store<double>(place, value); }
SLIMSVM_INLINE void store_narrow(float* place, Vec<double> value) {
    typedef float half_vector __attribute__((vector_size(VECTOR_BYTES / 2)));
    const half_vector narrow = __builtin_convertvector(value, half_vector);
    __builtin_memcpy(place, &narrow, sizeof narrow);
}

// One function whatever the rows' type: the compiler rounds sums of products in its own way in each place it puts them.
template <class T>
__attribute__((noinline)) double squared_length(const T* x, int64_t d) {
    return dot(x, x, d);
}

// out = (raw - centre) * feature_scale. The last numbers go as a vector that ends with the row: a row's bits depend on
// the row alone.
template <class Raw, class T>
inline void fold_row(const Raw* raw, const double* centre, const double* feature_scale, int64_t d, T* out) {
    constexpr int lanes = LANES<double>;
    const auto fold = [&](int64_t c) {
        store_narrow(out + c, (load_wide(raw + c) - load<double>(centre + c)) * load<double>(feature_scale + c));
    };
    for (int64_t c = 0; c + lanes <= d; c += lanes) fold(c);
    if (d >= lanes && d % lanes)
        fold(d - lanes);
    else if (d < lanes)
        for (int64_t c = 0; c < d; ++c) out[c] = T((double(raw[c]) - centre[c]) * feature_scale[c]);
}

// The same for a vector of rows; lanes of `near` stay as they are where the row is not far.
template <class T>
SLIMSVM_INLINE void finish_rows(double inverse, T* half, double* factor, IntVec<double>& near) {
    const Vec<double> minus_h = load<double>(factor);
    const IntVec<double> is_near = (IntVec<double>)(minus_h < FAR<T>);  // not so for NaN
    const Vec<double> bounded = is_near ? minus_h : splat<double>(FAR<T>);
    store_narrow(half, -bounded);
    const Vec<double> rounded = load_wide(half);
    Vec<double> rest[1] = {(Exp2<double>::round - (rounded + Exp2<double>::round)) - bounded}, value[1];
    power_of_rest<double, 1>(rest, value);
    store<double>(factor, is_near ? value[0] * inverse : Vec<double>{});
    near += is_near;
}

// half and factor of n rows from -h in `factor`; returns how many are too far out, or not finite: factor 0.
template <class T>
inline int64_t finish_folding(int64_t norm, double scale, int64_t n, T* half, double* factor) {
    int64_t n_far = 0;
    const double inverse = 1.0 / scale;
    if (norm == SLIMSVM_NO_NORM) {
        for (int64_t i = 0; i < n; ++i) {
            n_far += !(factor[i] < HUGE_VAL);
            half[i] = 0;
            factor[i] = inverse;
        }
        return n_far;
    }
    constexpr int64_t lanes = LANES<double>;
    IntVec<double> near = {};  // minus their number
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) finish_rows<T>(inverse, half + i, factor + i, near);
    if (i < n) {
        double numbers[lanes] = {};
        T halves[lanes];
        memcpy(numbers, factor + i, size_t(n - i) * sizeof(double));
        finish_rows<T>(inverse, halves, numbers, near);
        memcpy(factor + i, numbers, size_t(n - i) * sizeof(double));
        memcpy(half + i, halves, size_t(n - i) * sizeof(T));
        i += lanes;
    }
    for (int64_t l = 0; l < lanes; ++l) i += near[l];
    return i;
}

// Folds rows 0, ..., n - 1; returns how many are far or not finite.
template <class Raw, class T>
inline int64_t fold_rows(const Raw* raw, const double* centre, const double* feature_scale, int64_t norm, double scale,
                         int64_t n, int64_t d, T* out, T* half, double* factor) {
    // A row's length waits until its numbers have left the processor's queue of stores: two of them overlap.
    constexpr int64_t behind = 16;
    for (int64_t i = 0; i < n + behind; ++i) {
        if (i < n) fold_row(raw + i * d, centre, feature_scale, d, out + i * d);
        if (i >= behind) factor[i - behind] = 0.5 * squared_length(out + (i - behind) * d, d);
    }
    const int64_t n_far = finish_folding(norm, scale, n, half, factor);
    if (n_far)
        for (int64_t i = 0; i < n; ++i)
            if (factor[i] == 0.0)
                for (int64_t c = 0; c < d; ++c) out[i * d + c] = 0;
    return n_far;
}

}  // namespace slimsvm::SLIMSVM_ISA
