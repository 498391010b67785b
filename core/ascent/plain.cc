// Dual coordinate ascent on a whole kernel matrix, for problems no larger than a budget.
//
// Hsieh, Chang, Lin, Keerthi, Sundararajan, "A Dual Coordinate Descent Method for Large-scale Linear SVM", ICML 2008.
#include "losses/row_steps.h"
#include "simd/reduce.h"
#include "slimsvm.h"

namespace slimsvm::SLIMSVM_ISA {

namespace {

template <class Loss>
void ascend_by(const Loss& loss, const struct slimsvm_ascend_call& call) {
    const struct slimsvm_row_steps& steps = *call.steps;
    const int64_t n = call.n, m = call.m;
    for (int64_t s = 0; s < call.n_order; ++s) {
        const int64_t i = call.order[s];
        const double* row = call.K + i * n;
        bool is_changed = false;
        for (int64_t c = 0; c < m; ++c) {
            call.step[c] = loss.dual_step(target_of(steps, i, c), call.scores[i * m + c], steps.C_of_row[i], row[i],
                                          call.alpha[i * m + c]);
            call.beta[i * m + c] += call.step[c];
            is_changed |= call.step[c] != 0.0;
        }
        if (!is_changed) continue;
        if (m == 1)
            add_scaled(call.step[0], row, call.scores, n);
        else
            for (int64_t j = 0; j < n; ++j) add_scaled(row[j], call.step, call.scores + j * m, m);
    }
}

}  // namespace

int32_t ascend(struct slimsvm_ascend_call* call) {
    const struct slimsvm_row_steps& steps = *call->steps;
    if (steps.n != call->n || steps.method != SLIMSVM_DUAL || call->m < 1 || !is_known(steps))
        return SLIMSVM_BAD_ARGUMENT;
    with_loss(steps, [&](const auto& loss) { ascend_by(loss, *call); });
    return SLIMSVM_OK;
}

}  // namespace slimsvm::SLIMSVM_ISA
