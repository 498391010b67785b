// Losses of one score with two derivatives. Each says what it is at a score; the functions of a loss
// (losses/row_loss.h) follow. They need no soft maximum: at any temperature the smoothed form is the loss itself.
#pragma once

#include <math.h>

#include "losses/row_loss.h"
#include "losses/soft.h"

namespace slimsvm::SLIMSVM_ISA {

// The loss, minus its derivative in f, and its second derivative.
template <class V>
struct Bend {
    V value, residual, curvature;
};

// The functions of a loss, of what it is at a score. Its tangent stands for the loss-augmented argmax: with v minus the
// derivative, value + v f is minus the conjugate at -v, so that v is a dual point of the loss.
template <class Curve>
struct Smooth {
    Curve curve;

    template <class V>
    SLIMSVM_INLINE V value(V y, V f) const {
        return curve.at(y, f).value;
    }
    template <class V>
    SLIMSVM_INLINE V gradient(V y, V f) const {
        return -curve.at(y, f).residual;
    }
    SLIMSVM_INLINE bool is_wrong(double y, double f) const { return curve.is_wrong(y, f); }
    template <class V>
    SLIMSVM_INLINE RowAugmented<V> augmented(V y, V f) const {
        const Bend<V> found = curve.at(y, f);
        return {found.value + found.residual * f, found.residual};
    }
    template <class V>
    SLIMSVM_INLINE RowSmoothed<V> smoothed(V y, V f, double) const {
        const Bend<V> found = curve.at(y, f);
        return {found.value, found.value, found.residual, found.curvature, found.value + found.residual * f};
    }
};

struct OfSigns {
    SLIMSVM_INLINE bool is_wrong(double y, double f) const { return (f > 0.0) != (y > 0.0); }
};
struct OfTargets {
    SLIMSVM_INLINE bool is_wrong(double, double) const { return false; }
};

// log(1 + exp(-y f)): a hinge without margin, with a soft maximum of temperature 1.
struct Logistic : OfSigns {
    template <class V>
    SLIMSVM_INLINE Bend<V> at(V y, V f) const {
        const Soft<V> soft = soft_positive(-y * f, 1.0);
        return {soft.value, y * soft.slope, soft.slope * (1.0 - soft.slope)};
    }
};

// max(0, 1 - y f)^2.
struct SquaredHinge : OfSigns {
    template <class V>
    SLIMSVM_INLINE Bend<V> at(V y, V f) const {
        const V left = positive(1.0 - y * f);
        return {left * left, 2.0 * y * left, choose(left > V{}, filled<V>(2.0), V{})};
    }
};

// (y - f)^2 / 2.
struct Squared : OfTargets {
    template <class V>
    SLIMSVM_INLINE Bend<V> at(V y, V f) const {
        const V residual = y - f;
        return {0.5 * residual * residual, residual, filled<V>(1.0)};
    }
};

// (y - f)^2 / 2 where |y - f| is at most epsilon, and the tangent from there. What is within is no difference to what
// is beyond: that has no digits of it left, and the slope would be none of the loss.
struct Huber : OfTargets {
    double epsilon;

    explicit Huber(double threshold) : epsilon(threshold) {}
    template <class V>
    SLIMSVM_INLINE Bend<V> at(V y, V f) const {
        const V residual = y - f, width = filled<V>(epsilon), over = positive(absolute(residual) - width);
        const V kept = sign_of(residual) * choose(over > V{}, width, absolute(residual));
        return {kept * kept * 0.5 + over * width, kept, choose(over > V{}, V{}, filled<V>(1.0))};
    }
};

SLIMSVM_INLINE double log_lanes(double x) { return log(x); }
SLIMSVM_INLINE Vec<double> log_lanes(Vec<double> x) {
    for (int64_t l = 0; l < LANES<double>; ++l) x[l] = log(x[l]);
    return x;
}

// exp(f) - y f for counts y >= 0, less what that is at its least, at f = log y. From FAR_SCORE on, which no count comes
// near, exp(f) is continued by its tangent: steps beyond float64 would tell nothing.
constexpr double FAR_SCORE = 80.0;
struct Poisson : OfTargets {
    template <class V>
    SLIMSVM_INLINE Bend<V> at(V y, V f) const {
        const V far = positive(f - filled<V>(FAR_SCORE)), near = choose(far > V{}, filled<V>(FAR_SCORE), f);
        const V small = exp2_lanes(absolute(near) * -LOG2_E), mean = choose(near > V{}, 1.0 / small, small);
        const V least = choose(y > V{}, y * (1.0 - log_lanes(choose(y > V{}, y, filled<V>(1.0)))), V{});
        return {positive(mean * (1.0 + far) - y * f - least), y - mean, mean};
    }
};

}  // namespace slimsvm::SLIMSVM_ISA
