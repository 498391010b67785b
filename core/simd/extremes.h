// Searches in arrays: the two greatest numbers, the least magnitude, the numbers on one side of a bound.
#pragma once

#include "simd/vector.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace slimsvm::SLIMSVM_ISA {

// One bit for each lane of a comparison's result, the first lane's lowest.
template <class T>
SLIMSVM_INLINE uint64_t lane_bits(IntVec<T> result) {
#if defined(__AVX512F__) && defined(__AVX512DQ__)
    if constexpr (sizeof(T) == 4)
        return uint64_t(_mm512_movepi32_mask((__m512i)result));
    else
        return uint64_t(_mm512_movepi64_mask((__m512i)result));
#elif defined(__AVX2__)
    if constexpr (sizeof(T) == 4)
        return uint64_t(uint32_t(_mm256_movemask_ps((__m256)result)));
    else
        return uint64_t(uint32_t(_mm256_movemask_pd((__m256d)result)));
#elif defined(__SSE2__)
    if constexpr (sizeof(T) == 4)
        return uint64_t(uint32_t(_mm_movemask_ps((__m128)result)));
    else
        return uint64_t(uint32_t(_mm_movemask_pd((__m128d)result)));
#else
    uint64_t bits = 0;
    for (int l = 0; l < LANES<T>; ++l) bits |= uint64_t(result[l] != 0) << l;
    return bits;
#endif
}

SLIMSVM_INLINE int64_t lowest_bit(uint64_t bits) { return int64_t(__builtin_ctzll(bits)); }

// Bits of the numbers of one panel that are at least `lowest`.
template <class T>
SLIMSVM_INLINE uint64_t panel_from(const T* panel, T lowest) {
    uint64_t bits = 0;
    SLIMSVM_EACH (v, VECTORS) bits |= lane_bits<T>(load<T>(panel + v * LANES<T>) >= splat<T>(lowest)) << (v * LANES<T>);
    return bits;
}

template <class T>
struct GreatestTwo {
    int64_t place;  // of the greatest
    T other;        // the greatest of the others, -1 if none is above
};

template <class T>
SLIMSVM_INLINE typename VectorOf<T>::integer greatest_lane(const IntVec<T> (&vectors)[VECTORS]) {
    IntVec<T> most_of_lane = vectors[0];
    for (int v = 1; v < VECTORS; ++v) most_of_lane = vectors[v] > most_of_lane ? vectors[v] : most_of_lane;
    typename VectorOf<T>::integer greatest = most_of_lane[0];
    for (int l = 1; l < LANES<T>; ++l) greatest = most(greatest, most_of_lane[l]);
    return greatest;
}

// The two greatest of the first n >= 1 numbers, which are positive, 0 or -1; whole panels are read. Such numbers are in
// the order of their bits, and integers are the faster to compare. Every lane keeps its two greatest numbers, and the
// panel where it met the first of them.
template <class T>
inline GreatestTwo<T> greatest_two(const T* values, int64_t n) {
    typedef typename VectorOf<T>::integer Integer;
    const IntVec<T> none = (IntVec<T>)splat<T>(T(-1));
    IntVec<T> first[VECTORS], second[VECTORS], panel[VECTORS], lane[VECTORS];
    SLIMSVM_EACH (v, VECTORS) {
        first[v] = second[v] = none;
        panel[v] = IntVec<T>{};
        for (int l = 0; l < LANES<T>; ++l) lane[v][l] = Integer(v * LANES<T> + l);
    }
    for (int64_t start = 0; start < n; start += PANEL<T>) {
        const IntVec<T> now = IntVec<T>{} + Integer(start),
                        left = IntVec<T>{} + Integer(least(n - start, int64_t(PANEL<T>)));
        const bool is_whole = n - start >= PANEL<T>;
        SLIMSVM_EACH (v, VECTORS) {
            IntVec<T> numbers = (IntVec<T>)load<T>(values + start + v * LANES<T>);
            if (!is_whole) numbers = lane[v] < left ? numbers : none;
            const IntVec<T> lower = numbers > first[v] ? first[v] : numbers;
            second[v] = lower > second[v] ? lower : second[v];
            panel[v] = numbers > first[v] ? now : panel[v];
            first[v] = numbers > first[v] ? numbers : first[v];
        }
    }
    const Integer greatest = greatest_lane<T>(first);
    uint64_t bits = 0;
    SLIMSVM_EACH (v, VECTORS) bits |= lane_bits<T>(first[v] == greatest) << (v * LANES<T>);
    const int64_t within = lowest_bit(bits);
    Integer panels[PANEL<T>];
    __builtin_memcpy(panels, panel, sizeof panels);
    SLIMSVM_EACH (v, VECTORS) first[v] = lane[v] == Integer(within) ? second[v] : first[v];
    const Integer runner_up = greatest_lane<T>(first);
    GreatestTwo<T> found = {int64_t(panels[within]) + within, T(0)};
    __builtin_memcpy(&found.other, &runner_up, sizeof runner_up);
    return found;
}

// The least |values[j]| of the first n, infinite if there is none.
inline double least_magnitude(const double* values, int64_t n) {
    constexpr int lanes = LANES<double>;
    Vec<double> lowest[4];
    SLIMSVM_EACH (v, 4) lowest[v] = splat<double>(HUGE_VAL);
    int64_t j = 0;
    for (; j + 4 * lanes <= n; j += 4 * lanes)
        SLIMSVM_EACH (v, 4)
            lowest[v] = minimum<double>(magnitude<double>(load<double>(values + j + v * lanes)), lowest[v]);
    const Vec<double> all =
        minimum<double>(minimum<double>(lowest[0], lowest[1]), minimum<double>(lowest[2], lowest[3]));
    double best = HUGE_VAL;
    for (int l = 0; l < lanes; ++l) best = least(best, all[l]);
    for (; j < n; ++j) best = least(best, fabs(values[j]));
    return best;
}

// The first place j < n with |values[j]| <= bound; n if there is none.
inline int64_t first_within(const double* values, int64_t n, double bound) {
    constexpr int lanes = LANES<double>;
    int64_t j = 0;
    for (; j + lanes <= n; j += lanes) {
        const uint64_t bits = lane_bits<double>(magnitude<double>(load<double>(values + j)) <= splat<double>(bound));
        if (bits) return j + lowest_bit(bits);
    }
    while (j < n && !(fabs(values[j]) <= bound)) ++j;
    return j;
}

}  // namespace slimsvm::SLIMSVM_ISA
