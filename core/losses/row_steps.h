// Steps on single rows, by the loss that a `struct slimsvm_row_steps` names.
#pragma once

#include "losses/epsilon_insensitive.h"
#include "losses/hinge.h"
#include "slimsvm.h"

namespace slimsvm::SLIMSVM_ISA {

inline bool is_known(const struct slimsvm_row_steps& steps) {
    return steps.loss == SLIMSVM_HINGE || steps.loss == SLIMSVM_ONE_VS_REST ||
           steps.loss == SLIMSVM_EPSILON_INSENSITIVE;
}

// f(loss), with the structure that has the loss's functions.
template <class F>
SLIMSVM_INLINE auto with_loss(const struct slimsvm_row_steps& steps, const F& f) {
    if (steps.loss == SLIMSVM_EPSILON_INSENSITIVE) return f(EpsilonInsensitive{steps.epsilon});
    return f(Hinge{steps.cost_negative, steps.cost_positive});
}

// What row i is to be for output c: its label, or whether it is of the class.
SLIMSVM_INLINE double target_of(const struct slimsvm_row_steps& steps, int64_t i, int64_t c) {
    if (steps.loss != SLIMSVM_ONE_VS_REST) return steps.labels[i];
    return double(c) == steps.labels[i] ? 1.0 : -1.0;
}

}  // namespace slimsvm::SLIMSVM_ISA
