// Vectors of the width of one instruction set, by the compilers' own vector types.
//
// Every file that includes this one is compiled once for each instruction set, with SLIMSVM_ISA naming it: all that is
// defined lies in namespace slimsvm::SLIMSVM_ISA, so that the linker never mixes two sets.
#pragma once

#include <math.h>
#include <stdint.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define SLIMSVM_INLINE inline __attribute__((always_inline))

// Before a loop of few turns over an array of vectors, as many as the compiler knows; and such a loop from 0 on. gcc
// unrolls it by itself, but too late to see that the array needs no memory: it then writes all of it there and reads it
// again.
#if defined(__clang__)
#define SLIMSVM_UNROLL
#else
#define SLIMSVM_UNROLL _Pragma("GCC unroll 16")
#endif
#define SLIMSVM_EACH(v, count) SLIMSVM_UNROLL for (int v = 0; v < (count); ++v)

namespace slimsvm::SLIMSVM_ISA {

// Bytes of a vector, and vectors of a panel: as many as keep the sums of a register tile in registers.
#if defined(__AVX512F__)
constexpr int VECTOR_BYTES = 64, VECTORS = 4;
#elif defined(__AVX2__)
constexpr int VECTOR_BYTES = 32, VECTORS = 2;
#elif defined(__aarch64__)
constexpr int VECTOR_BYTES = 16, VECTORS = 4;
#else
constexpr int VECTOR_BYTES = 16, VECTORS = 2;
#endif

// Bytes that memory for vectors begins at a multiple of.
constexpr int64_t ALIGNMENT = 64;

template <class T>
struct VectorOf;
template <>
struct VectorOf<float> {
    typedef float type __attribute__((vector_size(VECTOR_BYTES)));
    typedef int32_t integers __attribute__((vector_size(VECTOR_BYTES)));
    typedef int32_t integer;
};
template <>
struct VectorOf<double> {
    typedef double type __attribute__((vector_size(VECTOR_BYTES)));
    typedef int64_t integers __attribute__((vector_size(VECTOR_BYTES)));
    typedef int64_t integer;
};

// A vector of numbers T, and one of as many integers of the same size.
template <class T>
using Vec = typename VectorOf<T>::type;
template <class T>
using IntVec = typename VectorOf<T>::integers;

template <class T>
constexpr int LANES = VECTOR_BYTES / int(sizeof(T));
template <class T>
constexpr int PANEL = LANES<T> * VECTORS;

template <class T>
SLIMSVM_INLINE Vec<T> load(const T* place) {
    Vec<T> value;
    __builtin_memcpy(&value, place, sizeof value);
    return value;
}

template <class T>
SLIMSVM_INLINE void store(T* place, Vec<T> value) {
    __builtin_memcpy(place, &value, sizeof value);
}

// A number in every lane.
template <class T>
SLIMSVM_INLINE Vec<T> splat(T number) {
    return Vec<T>{} + number;
}

// Floats as doubles; left to itself gcc 12 converts them in two halves.
typedef float half_vector __attribute__((vector_size(VECTOR_BYTES / 2)));
SLIMSVM_INLINE Vec<double> widened(half_vector value) {
#if defined(__AVX512F__)
    return (Vec<double>)_mm512_maskz_cvtps_pd(0xff, (__m256)value);
#elif defined(__AVX2__)
    return (Vec<double>)_mm256_cvtps_pd((__m128)value);
#else
    return __builtin_convertvector(value, Vec<double>);
#endif
}

// As many doubles as a vector of doubles has lanes, from memory of either type.
SLIMSVM_INLINE Vec<double> load_wide(const double* place) { return load<double>(place); }
SLIMSVM_INLINE Vec<double> load_wide(const float* place) {
    half_vector value;
    __builtin_memcpy(&value, place, sizeof value);
    return widened(value);
}

// The greater (smaller) of both, lane by lane; b where either is NaN.
template <class T>
SLIMSVM_INLINE Vec<T> maximum(Vec<T> a, Vec<T> b) {
    return a > b ? a : b;
}
template <class T>
SLIMSVM_INLINE Vec<T> minimum(Vec<T> a, Vec<T> b) {
    return a < b ? a : b;
}

template <class T>
SLIMSVM_INLINE Vec<T> magnitude(Vec<T> a) {
    typedef typename VectorOf<T>::integer Integer;
    const Integer without_sign = Integer(~(Integer(1) << (8 * sizeof(T) - 1)));
    return (Vec<T>)((IntVec<T>)a & (IntVec<T>{} + without_sign));
}

// The sum of the lanes, halves added to halves: the same order on every call.
template <int BYTES>
struct Lanes {
    typedef double vector __attribute__((vector_size(BYTES)));
    static SLIMSVM_INLINE double total(vector value) {
        typename Lanes<BYTES / 2>::vector halves[2];
        __builtin_memcpy(halves, &value, sizeof value);
        return Lanes<BYTES / 2>::total(halves[0] + halves[1]);
    }
};
template <>
struct Lanes<16> {
    typedef double vector __attribute__((vector_size(16)));
    static SLIMSVM_INLINE double total(vector value) { return value[0] + value[1]; }
};
SLIMSVM_INLINE double total(Vec<double> value) { return Lanes<VECTOR_BYTES>::total(value); }

// The sum of float lanes in float64.
SLIMSVM_INLINE double total(Vec<float> value) {
    float lanes[LANES<float>];
    __builtin_memcpy(lanes, &value, sizeof value);
    return total(load_wide(lanes) + load_wide(lanes + LANES<double>));
}

template <class N>
SLIMSVM_INLINE constexpr N least(N a, N b) {
    return b < a ? b : a;
}
template <class N>
SLIMSVM_INLINE constexpr N most(N a, N b) {
    return a < b ? b : a;
}
// a / b rounded up, for a >= 0 and b > 0.
SLIMSVM_INLINE constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace slimsvm::SLIMSVM_ISA
