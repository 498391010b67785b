// Folding: rows centred, scaled, with h(x) and factor = 2^(h - its nearest integer) / scale, once per fit.
#pragma once

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

// half and factor of n rows from -h in `factor`; returns how many are too far out, or not finite: factor 0.
template <class T>
inline int64_t finish_folding(int64_t norm, double scale, int64_t n, T* half, double* factor) {
    int64_t n_far = 0;
    const double inverse = 1.0 / scale;
    for (int64_t i = 0; i < n; ++i) {
        const double minus_h = factor[i];
        if (norm == SLIMSVM_NO_NORM) {
            n_far += !(minus_h < HUGE_VAL);
            half[i] = 0;
            factor[i] = inverse;
            continue;
        }
        const bool is_near = minus_h < FAR<T>;  // not so for NaN
        const double rounded = is_near ? double(T(-minus_h)) : 0.0;
        half[i] = is_near ? T(rounded) : T(-FAR<T>);
        const double value = exp2_of_rest(-rint(rounded) - (is_near ? minus_h : 0.0)) * inverse;
        factor[i] = is_near ? value : 0.0;
        n_far += factor[i] == 0.0;
    }
    return n_far;
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
