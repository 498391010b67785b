// The hinge loss max(0, cost_y - y f) of labels y = -1, +1; a cost is the margin asked of a class.
#pragma once

#include "losses/row_loss.h"
#include "losses/soft.h"

namespace slimsvm::SLIMSVM_ISA {

struct Hinge {
    double cost_negative, cost_positive;

    template <class V>
    SLIMSVM_INLINE V cost(V y) const {
        return choose(y > V{}, filled<V>(cost_positive), filled<V>(cost_negative));
    }
    template <class V>
    SLIMSVM_INLINE V slack(V y, V f) const {
        return cost(y) - y * f;
    }
    template <class V>
    SLIMSVM_INLINE V value(V y, V f) const {
        return positive(slack(y, f));
    }
    template <class V>
    SLIMSVM_INLINE V gradient(V y, V f) const {
        return choose(slack(y, f) > V{}, -y, V{});
    }
    // Whether the score's sign is the other label's.
    SLIMSVM_INLINE bool is_wrong(double y, double f) const { return (f > 0.0) != (y > 0.0); }
    // The other label where the slack is positive. Ties go to -1.
    template <class V>
    SLIMSVM_INLINE RowAugmented<V> augmented(V y, V f) const {
        const V left = slack(y, f);
        const auto is_other = (left > V{}) | ((left == V{}) & (y > V{}));
        return {choose(is_other, cost(y), V{}), choose(is_other, y, V{})};
    }
    template <class V>
    SLIMSVM_INLINE RowSmoothed<V> smoothed(V y, V f, double tau) const {
        const V left = slack(y, f);
        const Soft<V> soft = soft_positive(left, tau);
        const V a = soft.slope;
        return {positive(left), soft.value, a * y, a * (1.0 - a) / tau, a * cost(y)};
    }
    // Ascends the dual objective in alpha, 0 <= alpha <= C, given f and size = k(x, x). Returns what the
    // coefficient y alpha gains.
    SLIMSVM_INLINE double dual_step(double y, double f, double C, double size, double& alpha) const {
        const double left = slack(y, f), before = alpha;
        if (size > 0.0)
            alpha = least(most(alpha + left / size, 0.0), C);
        else
            alpha = left > 0.0 ? C : 0.0;
        return y * (alpha - before);
    }
    // Minus C times the subgradient.
    SLIMSVM_INLINE double primal_step(double y, double f, double C) const { return slack(y, f) > 0.0 ? y * C : 0.0; }
};

}  // namespace slimsvm::SLIMSVM_ISA
