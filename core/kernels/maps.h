// From z to kernel values, once: 2^min(z, 0), z^degree, z, tanh z; and their derivatives in the inner product.
#pragma once

#include "simd/exp2.h"
#include "slimsvm.h"

namespace slimsvm::SLIMSVM_ISA {

// Greatest degree of a polynomial: a call's time grows with it.
constexpr int64_t MOST_DEGREE = 1000;

template <class T>
SLIMSVM_INLINE T power(T z, int64_t degree) {
    T value = z;
    for (int64_t i = 1; i < degree; ++i) value = value * z;
    return value;
}

// values[j] = map(values[j]) for the maps of one number; 2^z has functions of its own (simd/exp2.h).
template <class T>
inline void map_plain(T* values, int64_t n, int64_t code, int64_t degree) {
    if (code == SLIMSVM_POWER)
        for (int64_t j = 0; j < n; ++j) values[j] = power(values[j], degree);
    else if (code == SLIMSVM_TANH)
        for (int64_t j = 0; j < n; ++j) values[j] = T(tanh(double(values[j])));
}

// z[v] = 2^(z[v] + half) <= 1: exponents added in full, so that a row has the value 1 with itself.
template <class T, int COUNT>
SLIMSVM_INLINE void values_exp2(Vec<T> (&z)[COUNT], T half) {
    const Vec<T> none[COUNT] = {};
    for (int v = 0; v < COUNT; ++v) z[v] = z[v] + half;
    exp2_with<T, COUNT>(z, none);
    for (int v = 0; v < COUNT; ++v) z[v] = minimum<T>(z[v] * T(1.0 / Exp2<T>::scale), splat<T>(T(1)));
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

// The derivative of a map in the inner product is slope_factor times the slope; where slope_is_value the slope is the
// kernel value itself.
SLIMSVM_INLINE constexpr bool slope_is_value(int64_t code) { return code == SLIMSVM_EXP2; }
SLIMSVM_INLINE constexpr double slope_factor(int64_t code) { return code == SLIMSVM_EXP2 ? 0.6931471805599453 : 1.0; }

// values[j] = map(values[j] + added[j] + shift), and its slope to slopes[j]: another array only where slopes differ.
template <class T>
inline void map_with_slopes(T* values, T* slopes, const T* added, T shift, int64_t n, int64_t code, int64_t degree) {
    if (code == SLIMSVM_EXP2) return map_exp2(values, added, shift, n);
    for (int64_t j = 0; j < n; ++j) values[j] += added[j] + shift;
    if (code == SLIMSVM_POWER)
        for (int64_t j = 0; j < n; ++j) slopes[j] = T(degree) * (degree > 1 ? power(values[j], degree - 1) : T(1));
    map_plain(values, n, code, degree);
    if (code == SLIMSVM_TANH)
        for (int64_t j = 0; j < n; ++j) slopes[j] = T(1) - values[j] * values[j];
    else if (code == SLIMSVM_IDENTITY)
        for (int64_t j = 0; j < n; ++j) slopes[j] = T(1);
}

}  // namespace slimsvm::SLIMSVM_ISA
