// Losses of several classes: Crammer and Singer's max_c cost[y, c] + s_c - s_y, and soft maxima.
#pragma once

#include "losses/row_loss.h"
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

// The soft argmax of rows of k classes, residuals and curvatures of it; f(i, hard, soft) for every row, whose shares
// are in their place.
template <class Cost, class F>
inline void soften(const int64_t* labels, const double* weights, int64_t k, const SmoothPlaces& places,
                   const Cost& cost, int64_t lo, int64_t hi, const F& f) {
    constexpr int64_t ROWS = 64;
    double hard[ROWS], soft[ROWS];
    for (; lo < hi; lo += ROWS) {
        const int64_t n = least(ROWS, hi - lo);
        for (int64_t i = lo; i < lo + n; ++i) {
            const double* row = places.scores + i * k;
            for (int64_t c = 0; c < k; ++c) places.share[i * k + c] = cost(i, c) + row[c] - row[labels[i]];
        }
        soft_classes(n, k, places.tau, places.share + lo * k, hard, soft);
        for (int64_t i = lo; i < lo + n; ++i) {
            const double *share = places.share + i * k, weight = weights[i];
            double *residual = places.residual + i * k, *curvature = places.curvature + i * k;
            for (int64_t c = 0; c < k; ++c) {
                residual[c] = -weight * share[c];
                curvature[c] = weight * share[c] * (1.0 - share[c]) / places.tau;
            }
            residual[labels[i]] = weight * (1.0 - share[labels[i]]);
            f(i, hard[i - lo], soft[i - lo]);
        }
    }
}

// Sums over rows of f(label, score, step), the loss and the gain of a row along the line, where score(c) and step[c]
// are those of class c.
template <class F>
SLIMSVM_INLINE AlongSums sum_along(const Line& line, const int64_t* labels, const double* weights, int64_t k,
                                   int64_t lo, int64_t hi, const F& f) {
    AlongSums sums = {0.0, 0.0};
    for (int64_t i = lo; i < hi; ++i) {
        const double *base = line.base + i * k, *step = line.direction + i * k;
        const AlongSums own = f(labels[i], [&](int64_t c) { return base[c] + line.step * step[c]; }, step);
        sums.loss += weights[i] * own.loss;
        sums.gain += weights[i] * own.gain;
    }
    return sums;
}

// Crammer and Singer's loss: the features' difference is phi(x) times (e_y - e_best).
struct ClassMaximum {
    const int64_t* labels;
    const double *weights, *cost;
    int64_t k;

    explicit ClassMaximum(const struct slimsvm_row_loss& loss)
        : labels(loss.classes), weights(loss.weights), cost(loss.cost), k(loss.n_outputs) {}

    void augment(const struct slimsvm_augment_rows_call& call) const {
        for (int64_t i = 0; i < call.n; ++i) {
            const double *row = call.scores + i * k, *own_cost = cost + labels[i] * k;
            double* coef = call.coef + i * k;
            const int64_t best = augmented_class<double>(own_cost, k, [&](int64_t c) { return row[c]; }).label;
            call.delta[i] = own_cost[best];
            for (int64_t c = 0; c < k; ++c) coef[c] = 0.0;
            coef[labels[i]] = 1.0;
            coef[best] = best == labels[i] ? 0.0 : -1.0;
        }
    }
    AlongSums along(const Line& line, int64_t lo, int64_t hi) const {
        return sum_along(line, labels, weights, k, lo, hi, [&](int64_t label, const auto& score, const double* step) {
            const BestClass<double> best = augmented_class<double>(cost + label * k, k, score);
            return AlongSums{best.value - score(label), step[label] - step[best.label]};
        });
    }
    SmoothSums smooth(const SmoothPlaces& places, int64_t lo, int64_t hi) const {
        SmoothSums sums = {0.0, 0.0, 0.0, 0.0};
        const auto cost_of = [&](int64_t i, int64_t c) { return cost[labels[i] * k + c]; };
        soften(labels, weights, k, places, cost_of, lo, hi, [&](int64_t i, double hard, double soft) {
            const double* share = places.share + i * k;
            double constant = 0.0;
            for (int64_t c = 0; c < k; ++c) constant += share[c] * cost_of(i, c);
            sums.loss += weights[i] * hard;
            sums.value += weights[i] * soft;
            sums.dual += weights[i] * constant;
        });
        return sums;
    }
    template <class T>
    SLIMSVM_INLINE RowGradient gradient(int64_t row, const T* scores, T* r) const {
        const int64_t label = labels[row];
        const auto score = [&](int64_t c) { return double(scores[c]); };
        const BestClass<double> best = augmented_class<double>(cost + label * k, k, score);
        for (int64_t c = 0; c < k; ++c) r[c] = T(0);
        const bool is_wrong = best_class<double>(k, score).label != label;
        if (best.label == label) return {0.0, is_wrong, false};
        r[best.label] = T(weights[row]);
        r[label] = T(-weights[row]);
        return {best.value - double(scores[label]), is_wrong, true};
    }
};

}  // namespace slimsvm::SLIMSVM_ISA
