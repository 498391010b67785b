// The soft maximum: tau log sum_c exp(t_c / tau) lies between max_c t_c and that plus tau log(number of terms).
#pragma once

#include "simd/lanes.h"

namespace slimsvm::SLIMSVM_ISA {

// exp(-40) is lost beside 1 in float64: terms this far below the greatest, in units of tau, are taken as none.
constexpr double SOFT_FAR = 40.0, LOG2_E = 1.4426950408889634;

// log(1 + e) for 0 <= e <= 1, as 2 artanh(s), s = e / (2 + e) <= 1/3.
template <class V>
SLIMSVM_INLINE V log1p_of_share(V e) {
    const V s = e / (e + 2.0), q = s * s;
    V p = filled<V>(1.0 / 33.0);
    for (int odd = 31; odd >= 1; odd -= 2) p = p * q + 1.0 / odd;
    return (s + s) * p;
}

// Soft version of max(0, t), and its slope: tau log(1 + exp(t / tau)), 1 / (1 + exp(-t / tau)).
template <class V>
struct Soft {
    V value, slope;
};
template <class V>
SLIMSVM_INLINE Soft<V> soft_positive(V t, double tau) {
    const V x = t / tau, far = absolute(x);
    const V e = choose(far < filled<V>(SOFT_FAR), exp2_lanes(far * -LOG2_E), V{});
    const V share = 1.0 / (e + 1.0);
    return {positive(t) + tau * log1p_of_share(e), choose(x < V{}, e * share, share)};
}

}  // namespace slimsvm::SLIMSVM_ISA
