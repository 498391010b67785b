// Losses of a class and the scores of all classes by their numbers: a loss is a structure (losses/row_loss.h), and a
// line in each of two places here.
#pragma once

#include "losses/multiclass.h"
#include "losses/softmax.h"
#include "slimsvm.h"
#include "support/call.h"

namespace slimsvm::SLIMSVM_ISA {

// A loss, and whether its parameters are a matrix of costs.
struct ClassLoss {
    int64_t code;
    bool has_costs;
};
constexpr ClassLoss CLASS_LOSSES[] = {{SLIMSVM_MULTICLASS, true}, {SLIMSVM_SOFTMAX, false}};

// f(loss), with the structure that has the loss's functions.
template <class F>
SLIMSVM_INLINE void with_class_loss(const struct slimsvm_row_loss& loss, const F& f) {
    switch (loss.code) {
        case SLIMSVM_MULTICLASS:
            return f(ClassMaximum(loss));
        case SLIMSVM_SOFTMAX:
            return f(Softmax(loss));
    }
}

inline bool is_class_loss(const struct slimsvm_row_loss& loss) {
    for (const ClassLoss& known : CLASS_LOSSES)
        if (known.code == loss.code) return true;
    return false;
}

// Whether a loss of classes has one of m classes for each row, and its costs.
inline bool has_classes(const struct slimsvm_row_loss& loss, int64_t m) {
    for (const ClassLoss& known : CLASS_LOSSES)
        if (known.code == loss.code)
            return loss.classes && loss.n_classes == m &&
                   (!known.has_costs || (loss.cost && holds(loss.n_cost, m, m) && loss.n_cost == m * m));
    return false;
}

}  // namespace slimsvm::SLIMSVM_ISA
