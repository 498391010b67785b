// Losses of one score by their numbers: a loss is a structure, and a line in each of two places here. Where a row has
// several scores its loss is the sum of theirs.
#pragma once

#include "losses/epsilon_insensitive.h"
#include "losses/hinge.h"
#include "losses/quantile.h"
#include "losses/smooth.h"
#include "slimsvm.h"
#include "support/call.h"

namespace slimsvm::SLIMSVM_ISA {

// A loss's parameters, and whether its labels are signs.
struct ScoreLoss {
    int64_t code, n_cost;
    bool has_signs;
};
constexpr ScoreLoss SCORE_LOSSES[] = {
    {SLIMSVM_HINGE, 2, true},          {SLIMSVM_EPSILON_INSENSITIVE, 1, false},
    {SLIMSVM_LOGISTIC, 0, true},       {SLIMSVM_SQUARED_HINGE, 0, true},
    {SLIMSVM_SQUARED_ERROR, 0, false}, {SLIMSVM_HUBER, 1, false},
    {SLIMSVM_QUANTILE, 1, false},      {SLIMSVM_POISSON, 0, false},
};

// f(loss, labels), with the structure that has the loss's functions.
template <class F>
SLIMSVM_INLINE void with_score_loss(const struct slimsvm_row_loss& loss, const F& f) {
    switch (loss.code) {
        case SLIMSVM_HINGE:
            return f(Hinge{loss.cost[0], loss.cost[1]}, loss.signs);
        case SLIMSVM_EPSILON_INSENSITIVE:
            return f(EpsilonInsensitive{loss.cost[0]}, loss.targets);
        case SLIMSVM_LOGISTIC:
            return f(Smooth<Logistic>{}, loss.signs);
        case SLIMSVM_SQUARED_HINGE:
            return f(Smooth<SquaredHinge>{}, loss.signs);
        case SLIMSVM_SQUARED_ERROR:
            return f(Smooth<Squared>{}, loss.targets);
        case SLIMSVM_HUBER:
            return f(Smooth<Huber>{Huber(loss.cost[0])}, loss.targets);
        case SLIMSVM_QUANTILE:
            return f(Quantile{loss.cost[0]}, loss.targets);
        case SLIMSVM_POISSON:
            return f(Smooth<Poisson>{}, loss.targets);
    }
}

// Whether a loss of one score has a label for each of the n rows' m scores, and its parameters.
inline bool has_labels(const struct slimsvm_row_loss& loss, int64_t n, int64_t m) {
    for (const ScoreLoss& known : SCORE_LOSSES) {
        if (known.code != loss.code) continue;
        const bool is_there = known.has_signs ? loss.signs != nullptr : loss.targets != nullptr;
        const int64_t n_labels = known.has_signs ? loss.n_signs : loss.n_targets;
        return is_there && holds(n_labels, n, m) && n_labels == n * m &&
               (known.n_cost == 0 || (loss.cost && loss.n_cost == known.n_cost));
    }
    return false;
}

}  // namespace slimsvm::SLIMSVM_ISA
