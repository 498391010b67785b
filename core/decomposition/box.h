// One variable of the dual between its bounds: rooms, steps, and derivatives on both sides of the kink at 0.
#pragma once

#include "simd/vector.h"

namespace slimsvm::SLIMSVM_ISA {

constexpr int64_t MOST_WORK = int64_t(1) << 32;  // numbers that the steps of one call may go through

constexpr double BIG = 1e100;   // a derivative in a direction that is closed
constexpr double TINY = 1e-12;  // curvature of a direction that has none (LIBSVM's tau)

// How far v can rise, or fall, before its bound or the kink at 0.
SLIMSVM_INLINE double up_room(double v, double hi) { return v >= 0.0 ? hi - v : -v; }
SLIMSVM_INLINE double down_room(double v, double lo) { return v <= 0.0 ? v - lo : v; }

// What the derivative upwards has more than g at v: -epsilon or epsilon, -BIG where v cannot rise.
SLIMSVM_INLINE double rise_at(double v, double hi, double epsilon) {
    return v >= hi ? -BIG : v >= 0.0 ? -epsilon : epsilon;
}
// The same for minus the derivative downwards and -g.
SLIMSVM_INLINE double drop_at(double v, double lo, double epsilon) {
    return v <= lo ? -BIG : v <= 0.0 ? -epsilon : epsilon;
}

// v + step, put exactly on a bound or on 0 that it has reached but for rounding.
inline double moved(double v, double step, double lo, double hi) {
    const double now = v + step;
    if (now >= hi || hi - now < 1e-14 * hi) return hi;
    if (now <= lo || now - lo < -1e-14 * lo) return lo;
    if (v * now < 0.0 || fabs(now) <= 1e-15 * fabs(step)) return 0.0;
    return now;
}

}  // namespace slimsvm::SLIMSVM_ISA
