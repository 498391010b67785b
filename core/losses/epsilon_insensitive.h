// The epsilon-insensitive loss max(0, |y - f| - epsilon): residuals inside the tube cost nothing.
#pragma once

#include "losses/row_loss.h"
#include "losses/soft.h"

namespace slimsvm::SLIMSVM_ISA {

struct EpsilonInsensitive {
    double epsilon;

    template <class V>
    SLIMSVM_INLINE V value(V y, V f) const {
        return positive(absolute(y - f) - filled<V>(epsilon));
    }
    template <class V>
    SLIMSVM_INLINE V gradient(V y, V f) const {
        return -augmented(y, f).coef;
    }
    // Of targets that are numbers no prediction is wrong.
    SLIMSVM_INLINE bool is_wrong(double, double) const { return false; }
    // With s = sign(y - f): the constant s y - epsilon and the coefficient s outside the tube, zeros inside.
    template <class V>
    SLIMSVM_INLINE RowAugmented<V> augmented(V y, V f) const {
        const V residual = y - f, width = filled<V>(epsilon), one = filled<V>(1.0);
        const V above = choose(residual > width, one, V{}), below = choose(residual < -width, one, V{});
        const V sign = above - below;
        return {sign * y - (above + below) * width, sign};
    }
    // Two soft hinges, at most one of which has a positive argument.
    template <class V>
    SLIMSVM_INLINE RowSmoothed<V> smoothed(V y, V f, double tau) const {
        const V width = filled<V>(epsilon), above = y - width - f, below = f - y - width;
        const Soft<V> up = soft_positive(above, tau), down = soft_positive(below, tau);
        const V a = up.slope, b = down.slope, residual = a - b;
        return {positive(above) + positive(below), up.value + down.value, residual,
                (a * (1.0 - a) + b * (1.0 - b)) / tau, residual * choose(a > b, y - width, y + width)};
    }
    // Ascends the dual objective in alpha, |alpha| <= C, given f and size = k(x, x). Returns what alpha gains.
    SLIMSVM_INLINE double dual_step(double y, double f, double C, double size, double& alpha) const {
        const double residual = y - f, before = alpha;
        if (size > 0.0) {
            const double z = alpha * size + residual;
            alpha = sign_of(z) * least(positive(fabs(z) - epsilon) / size, C);
        } else {
            alpha = fabs(residual) > epsilon ? sign_of(residual) * C : 0.0;
        }
        return alpha - before;
    }
    // Minus C times the subgradient.
    SLIMSVM_INLINE double primal_step(double y, double f, double C) const { return C * augmented(y, f).coef; }
};

}  // namespace slimsvm::SLIMSVM_ISA
