// Vectors at the end of an array: its last n < LANES numbers, without a look at what lies behind them.
#pragma once

#include "simd/vector.h"

namespace slimsvm::SLIMSVM_ISA {

#if defined(__AVX2__) && !defined(__AVX512F__)
SLIMSVM_INLINE __m256i first_floats(int64_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(int(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
SLIMSVM_INLINE __m256i first_doubles(int64_t n) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
}
#endif

// The first n numbers from place on; zeros in the other lanes.
template <class T>
SLIMSVM_INLINE Vec<T> load_part(const T* place, int64_t n) {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4)
        return (Vec<T>)_mm512_maskz_loadu_ps(__mmask16((1u << n) - 1u), place);
    else
        return (Vec<T>)_mm512_maskz_loadu_pd(__mmask8((1u << n) - 1u), place);
#elif defined(__AVX2__)
    if constexpr (sizeof(T) == 4)
        return (Vec<T>)_mm256_maskload_ps(place, first_floats(n));
    else
        return (Vec<T>)_mm256_maskload_pd(place, first_doubles(n));
#else
    T lanes[LANES<T>] = {};
    for (int64_t i = 0; i < n; ++i) lanes[i] = place[i];
    return load<T>(lanes);
#endif
}

// The same as doubles, from memory of either type.
SLIMSVM_INLINE Vec<double> load_part_wide(const double* place, int64_t n) { return load_part<double>(place, n); }
SLIMSVM_INLINE Vec<double> load_part_wide(const float* place, int64_t n) {
#if defined(__AVX512F__)
    return widened((half_vector)_mm256_maskz_loadu_ps(__mmask8((1u << n) - 1u), place));
#elif defined(__AVX2__)
    return widened((half_vector)_mm_maskload_ps(place, _mm256_castsi256_si128(first_floats(n))));
#else
    double lanes[LANES<double>] = {};
    for (int64_t i = 0; i < n; ++i) lanes[i] = double(place[i]);
    return load<double>(lanes);
#endif
}

// The first n lanes of value to place.
template <class T>
SLIMSVM_INLINE void store_part(T* place, Vec<T> value, int64_t n) {
    T lanes[LANES<T>];
    store<T>(lanes, value);
    for (int64_t i = 0; i < n; ++i) place[i] = lanes[i];
}

// A vector of S, from memory of S, or of floats where S is double.
template <class S, class T>
SLIMSVM_INLINE Vec<S> load_as(const T* place) {
    if constexpr (sizeof(S) == sizeof(T))
        return load<S>(place);
    else
        return load_wide(place);
}
template <class S, class T>
SLIMSVM_INLINE Vec<S> load_part_as(const T* place, int64_t n) {
    if constexpr (sizeof(S) == sizeof(T))
        return load_part<S>(place, n);
    else
        return load_part_wide(place, n);
}

}  // namespace slimsvm::SLIMSVM_ISA
