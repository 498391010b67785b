// From z to kernel values, and the derivative in z, once for every map of slimsvm.h.
//
// z is an inner product of folded rows, or -1/2 of their squared distance. Maps work on vectors of numbers. 2^z has
// functions of its own, since callers take parts of its exponent apart; every other map is a case in `map_values` and
// one in `slope_of`. The runtime finds a kernel by its name in a model file, in `KERNELS`.
#pragma once

#include "kernels/step.h"
#include "slimsvm.h"

namespace slimsvm {

// Greatest degree of a polynomial: a call's time grows with it.
constexpr int64_t MOST_DEGREE = 1000;

struct KnownKernel {
    const char* name;
    Step step;
    int64_t map;
    double unit;      // see `Step`
    bool of_columns;  // a row holds kernel values, a vector is the position of one
    bool of_terms;    // a sum of terms, whose own kernel the file says
};

constexpr KnownKernel KERNELS[] = {{"rbf", Step::SQUARED, SLIMSVM_EXP2, 1.4426950408889634, false, false},
                                   {"laplacian", Step::ABSOLUTE, SLIMSVM_EXP2, 1.4426950408889634, false, false},
                                   {"matern32", Step::SQUARED, SLIMSVM_MATERN32, 3.0, false, false},
                                   {"rational_quadratic", Step::SQUARED, SLIMSVM_RATIONAL, 1.0, false, false},
                                   {"poly", Step::INNER, SLIMSVM_POWER, 1.0, false, false},
                                   {"sigmoid", Step::INNER, SLIMSVM_TANH, 1.0, false, false},
                                   {"linear", Step::INNER, SLIMSVM_IDENTITY, 1.0, false, false},
                                   {"precomputed", Step::INNER, SLIMSVM_IDENTITY, 1.0, true, false},
                                   {"additive", Step::SQUARED, SLIMSVM_EXP2, 1.0, false, true}};

// Below this z, if it is not 0, a map is 0 whatever z is, and is not asked for it: the factor 1 + s of (1 + s) e^-s has
// no bound.
constexpr double lowest_z(int64_t code) { return code == SLIMSVM_MATERN32 ? -1e6 : 0.0; }

}  // namespace slimsvm

// Files that are compiled once read the table alone.
#ifdef SLIMSVM_ISA

#include "simd/exp2.h"

namespace slimsvm::SLIMSVM_ISA {

// Whether numbers from outside name a map.
SLIMSVM_INLINE bool is_map(int64_t code, int64_t degree) {
    return code >= 0 && code <= SLIMSVM_RATIONAL && degree >= 1 && degree <= MOST_DEGREE;
}

template <class T>
SLIMSVM_INLINE Vec<T> power(Vec<T> z, int64_t degree) {
    Vec<T> value = z;
    for (int64_t i = 1; i < degree; ++i) value = value * z;
    return value;
}

// The distance s = sqrt(-2 z); rounding may leave a z a little above 0.
template <class T>
SLIMSVM_INLINE Vec<T> distance(Vec<T> z) {
    T s[LANES<T>];
    store<T>(s, maximum<T>(T(-2) * z, Vec<T>{}));
    for (int l = 0; l < LANES<T>; ++l)
        s[l] = sizeof(T) == 4 ? T(__builtin_sqrtf(float(s[l]))) : T(__builtin_sqrt(s[l]));
    return load<T>(s);
}

// z[v] = (1 + s) e^-s <= 1.
template <class T, int COUNT>
SLIMSVM_INLINE void map_matern32(Vec<T> (&z)[COUNT]) {
    Vec<T> e[COUNT];
    SLIMSVM_EACH (v, COUNT) {
        z[v] = distance<T>(z[v]);
        e[v] = z[v] * T(-1.4426950408889634);
    }
    exp2_bounded<T, COUNT>(e);
    SLIMSVM_EACH (v, COUNT) z[v] = minimum<T>((T(1) + z[v]) * (e[v] * T(1.0 / Exp2<T>::scale)), splat<T>(T(1)));
}

// z[v] = map(z[v]), for every map but 2^z.
template <class T, int COUNT>
SLIMSVM_INLINE void map_values(Vec<T> (&z)[COUNT], int64_t code, int64_t degree) {
    switch (code) {
        case SLIMSVM_POWER:
            SLIMSVM_EACH (v, COUNT) z[v] = power<T>(z[v], degree);
            break;
        case SLIMSVM_TANH:
            SLIMSVM_EACH (v, COUNT)
                for (int l = 0; l < LANES<T>; ++l) z[v][l] = T(tanh(double(z[v][l])));
            break;
        case SLIMSVM_MATERN32:
            map_matern32<T, COUNT>(z);
            break;
        case SLIMSVM_RATIONAL:
            SLIMSVM_EACH (v, COUNT) z[v] = T(1) / (T(1) - minimum<T>(z[v], Vec<T>{}));
            break;
    }
}

// values[j] = map(values[j] + shift), for every map but 2^z; n is a multiple of a vector's lanes. Not inlined: small
// loops call it, and each of their many forms would have all maps in it.
template <class T>
__attribute__((noinline)) void map_array(T* values, T shift, int64_t n, int64_t code, int64_t degree) {
    for (int64_t j = 0; j < n; j += LANES<T>) {
        Vec<T> z[1] = {load<T>(values + j) + shift};
        map_values<T, 1>(z, code, degree);
        store<T>(values + j, z[0]);
    }
}

// The derivative of a map, but for 2^z, at z, where it has the value `value`.
template <class T>
SLIMSVM_INLINE Vec<T> slope_of(Vec<T> z, Vec<T> value, int64_t code, int64_t degree) {
    switch (code) {
        case SLIMSVM_POWER:
            return degree > 1 ? T(degree) * power<T>(z, degree - 1) : splat<T>(T(1));
        case SLIMSVM_TANH:
            return T(1) - value * value;
        case SLIMSVM_MATERN32:  // e^-s: that of the value in s is -s e^-s, that of s in z is -1 / s
            return value / (T(1) + distance<T>(z));
        case SLIMSVM_RATIONAL:
            return value * value;
        default:
            return splat<T>(T(1));
    }
}

// z[v] = 2^(z[v] + half) <= 1: exponents added in full, so that a row has the value 1 with itself.
template <class T, int COUNT>
SLIMSVM_INLINE void values_exp2(Vec<T> (&z)[COUNT], T half) {
    SLIMSVM_EACH (v, COUNT) z[v] = z[v] + half;
    exp2_bounded<T, COUNT>(z);
    SLIMSVM_EACH (v, COUNT) z[v] = minimum<T>(z[v] * T(1.0 / Exp2<T>::scale), splat<T>(T(1)));
}

// values[j] = 2^min(values[j] + added[j] + shift, 0), with 2^0 = 1 exactly; `added` may be null.
template <class T>
inline void map_exp2(T* values, const T* added, T shift, int64_t n) {
    int64_t j = 0;
    for (; j + LANES<T> <= n; j += LANES<T>) {
        Vec<T> z = load<T>(values + j) + shift;
        if (added) z += load<T>(added + j);
        store<T>(values + j, exp2_exact<T>(minimum<T>(z, Vec<T>{})));
    }
    if (j == n) return;
    T rest[LANES<T>] = {};
    for (int64_t i = j; i < n; ++i) rest[i - j] = values[i] + shift + (added ? added[i] : T(0));
    store<T>(rest, exp2_exact<T>(minimum<T>(load<T>(rest), Vec<T>{})));
    for (int64_t i = j; i < n; ++i) values[i] = rest[i - j];
}

// The derivative of a map is slope_factor times the slope; where slope_is_value the slope is the kernel value itself.
SLIMSVM_INLINE constexpr bool slope_is_value(int64_t code) { return code == SLIMSVM_EXP2; }
SLIMSVM_INLINE constexpr double slope_factor(int64_t code) { return code == SLIMSVM_EXP2 ? 0.6931471805599453 : 1.0; }

// values[j] = map(values[j] + added[j] + shift), and its slope to slopes[j]: another array only where slopes differ.
// n is a multiple of a vector's lanes; `added` may be null where slopes are values.
template <class T>
inline void map_with_slopes(T* values, T* slopes, const T* added, T shift, int64_t n, int64_t code, int64_t degree) {
    if (slope_is_value(code)) return map_exp2(values, added, shift, n);
    for (int64_t j = 0; j < n; j += LANES<T>) {
        const Vec<T> z = load<T>(values + j) + (load<T>(added + j) + shift);
        Vec<T> value[1] = {z};
        map_values<T, 1>(value, code, degree);
        store<T>(values + j, value[0]);
        store<T>(slopes + j, slope_of<T>(z, value[0], code, degree));
    }
}

}  // namespace slimsvm::SLIMSVM_ISA

#endif
