// One formula for a number and for a vector of numbers: V is float, double or a Vec of either.
#pragma once

#include "simd/exp2.h"

namespace slimsvm::SLIMSVM_ISA {

template <class V>
struct NumberOf {
    typedef V type;
};
template <>
struct NumberOf<Vec<float>> {
    typedef float type;
};
template <>
struct NumberOf<Vec<double>> {
    typedef double type;
};

// A number in every lane.
template <class V>
SLIMSVM_INLINE V filled(double number) {
    return V{} + typename NumberOf<V>::type(number);
}

// a where the mask is true, else b, lane by lane.
template <class Mask, class V>
SLIMSVM_INLINE V choose(Mask mask, V a, V b) {
    return mask ? a : b;
}

// max(0, t) and |t|; NaN stays NaN.
template <class V>
SLIMSVM_INLINE V positive(V t) {
    return choose(t < V{}, V{}, t);
}
template <class V>
SLIMSVM_INLINE V absolute(V t) {
    return choose(t < V{}, -t, t);
}
// -1, 0 or +1.
template <class V>
SLIMSVM_INLINE V sign_of(V t) {
    return choose(t > V{}, filled<V>(1.0), V{}) - choose(t < V{}, filled<V>(1.0), V{});
}

// Numbers from memory, as many as V has.
template <class V>
SLIMSVM_INLINE V read(const double* place) {
    V value;
    __builtin_memcpy(&value, place, sizeof value);
    return value;
}
template <class V>
SLIMSVM_INLINE void write(double* place, V value) {
    __builtin_memcpy(place, &value, sizeof value);
}

// f(V{}, i) for the numbers i, i + 1, ... that V has: vectors from lo on, then single numbers to hi - 1.
template <class F>
SLIMSVM_INLINE void for_lanes(int64_t lo, int64_t hi, const F& f) {
    for (; lo + LANES<double> <= hi; lo += LANES<double>) f(Vec<double>{}, lo);
    for (; lo < hi; ++lo) f(0.0, lo);
}

// A sum over `for_lanes`.
struct LaneSum {
    Vec<double> lanes = {};
    double rest = 0.0;

    SLIMSVM_INLINE void add(Vec<double> value) { lanes += value; }
    SLIMSVM_INLINE void add(double value) { rest += value; }
    SLIMSVM_INLINE double value() const { return total(lanes) + rest; }
};

// 2**z for z <= 0.
SLIMSVM_INLINE double exp2_lanes(double z) { return exp2_of(z); }
SLIMSVM_INLINE Vec<double> exp2_lanes(Vec<double> z) {
    Vec<double> values[1] = {z};
    exp2_bounded<double, 1>(values);
    return values[0];
}

}  // namespace slimsvm::SLIMSVM_ISA
