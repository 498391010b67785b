// The quantile loss max(q (y - f), (q - 1) (y - f)), least in the mean where a share q of the targets y is below f.
#pragma once

#include "losses/row_loss.h"
#include "losses/soft.h"

namespace slimsvm::SLIMSVM_ISA {

struct Quantile {
    double q;

    template <class V>
    SLIMSVM_INLINE V value(V y, V f) const {
        const RowAugmented<V> found = augmented(y, f);
        return found.delta - found.coef * f;
    }
    template <class V>
    SLIMSVM_INLINE V gradient(V y, V f) const {
        return -augmented(y, f).coef;
    }
    SLIMSVM_INLINE bool is_wrong(double, double) const { return false; }
    // The slope of the piece that f is on.
    template <class V>
    SLIMSVM_INLINE RowAugmented<V> augmented(V y, V f) const {
        const V slope = choose(y > f, filled<V>(q), filled<V>(q - 1.0));
        return {slope * y, slope};
    }
    template <class V>
    SLIMSVM_INLINE RowSmoothed<V> smoothed(V y, V f, double tau) const {
        const V residual = y - f, below = (q - 1.0) * residual;
        const Soft<V> soft = soft_positive(residual, tau);
        const V a = soft.slope, slope = a + (q - 1.0);
        return {below + positive(residual), below + soft.value, slope, a * (1.0 - a) / tau, slope * y};
    }
};

}  // namespace slimsvm::SLIMSVM_ISA
