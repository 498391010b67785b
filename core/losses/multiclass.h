// Losses of several classes: Crammer and Singer's max_c cost[y, c] + s_c - s_y, and soft maxima.
#pragma once

#include "losses/soft.h"

namespace slimsvm::SLIMSVM_ISA {

// A class and its value. Where it is the row's label y the loss is 0; else value - s_y, with gradient +1 in the class's
// score and -1 in s_y.
template <class N>
struct BestClass {
    int64_t label;
    N value;
};

// The greatest of score(c), c = 0, ..., k - 1, and the lowest such c.
template <class N, class Score>
SLIMSVM_INLINE BestClass<N> best_class(int64_t k, const Score& score) {
    BestClass<N> best = {0, N(-HUGE_VAL)};
    for (int64_t c = 0; c < k; ++c) {
        const N value = score(c);
        const bool is_greater = value > best.value;
        best = {is_greater ? c : best.label, is_greater ? value : best.value};
    }
    return best;
}

// The loss-augmented argmax; `cost` is the label's row of the cost matrix.
template <class N, class Score>
SLIMSVM_INLINE BestClass<N> augmented_class(const double* cost, int64_t k, const Score& score) {
    return best_class<N>(k, [&](int64_t c) { return N(cost[c]) + score(c); });
}

// exp(x) for x <= 0; 0 where that is lost beside 1.
SLIMSVM_INLINE double soft_share(double x) { return x > -SOFT_FAR ? exp2_lanes(x * LOG2_E) : 0.0; }

// The soft argmax of n rows: share (n, k) holds t_c = cost[y, c] + s_c - s_y on entry and
// a_c = exp(t_c / tau) / (sum over the classes) on return; soft[i] is the soft maximum, hard[i] the greatest t_c.
inline void soft_classes(int64_t n, int64_t k, double tau, double* share, double* hard, double* soft) {
    for (int64_t i = 0; i < n; ++i) {
        double* row = share + i * k;
        hard[i] = best_class<double>(k, [&](int64_t c) { return row[c]; }).value;
        for (int64_t c = 0; c < k; ++c) row[c] = (row[c] - hard[i]) / tau;
    }
    for_lanes(0, n * k, [&](auto lanes, int64_t i) {
        typedef decltype(lanes) V;
        const V x = read<V>(share + i);
        write(share + i, choose(x > filled<V>(-SOFT_FAR), exp2_lanes(x * LOG2_E), V{}));
    });
    for (int64_t i = 0; i < n; ++i) {
        double* row = share + i * k;
        double sum = 0.0;
        for (int64_t c = 0; c < k; ++c) sum += row[c];
        const double part = 1.0 / sum;
        for (int64_t c = 0; c < k; ++c) row[c] *= part;
        soft[i] = hard[i] + tau * log(sum);
    }
}

}  // namespace slimsvm::SLIMSVM_ISA
