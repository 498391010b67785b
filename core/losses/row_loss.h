// What a loss of one score f and one label y says: the same for every such loss.
//
// A loss is a structure with the functions
//     value(y, f)               the loss
//     gradient(y, f)            its derivative in f; 0 where it is 0
//     is_wrong(y, f)            whether the prediction is another label than y
//     augmented(y, f)           the loss-augmented argmax, as a constant and a coefficient: the loss is delta - coef f
//     smoothed(y, f, tau)       the loss with a soft maximum of temperature tau
//     dual_step(y, f, C, size, alpha)    a step of dual coordinate ascent
//     primal_step(y, f, C)               a step of stochastic subgradient descent
// where y and f are numbers or vectors of numbers (simd/lanes.h), but for the steps and is_wrong.
#pragma once

#include "simd/lanes.h"

namespace slimsvm::SLIMSVM_ISA {

template <class V>
struct RowAugmented {
    V delta, coef;
};

// residual: minus the derivative of `value` in f; curvature: the second derivative; constant: what the soft argmax
// makes of the loss's constants, so that it is a dual point of the loss itself.
template <class V>
struct RowSmoothed {
    V loss, value, residual, curvature, constant;
};

}  // namespace slimsvm::SLIMSVM_ISA
