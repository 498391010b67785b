// The logistic loss of several classes.
#pragma once

#include "losses/multiclass.h"

namespace slimsvm::SLIMSVM_ISA {

// exp(x) for x <= 0; 0 where that is lost beside 1.
SLIMSVM_INLINE double soft_share(double x) { return x > -SOFT_FAR ? exp2_lanes(x * LOG2_E) : 0.0; }

// The logistic loss of several classes, log sum_c exp(s_c - s_y): Crammer and Singer's without costs, with a soft
// maximum of temperature 1 whatever is asked for.
struct Softmax {
    const int64_t* labels;
    const double* weights;
    int64_t k;

    explicit Softmax(const struct slimsvm_row_loss& loss)
        : labels(loss.classes), weights(loss.weights), k(loss.n_outputs) {}

    void augment(const struct slimsvm_augment_rows_call& call) const {
        for (int64_t i = 0; i < call.n; ++i) {
            const double* row = call.scores + i * k;
            double *coef = call.coef + i * k, soft;
            const double own = row[labels[i]];
            for (int64_t c = 0; c < k; ++c) coef[c] = row[c] - own;
            soft_classes(1, k, 1.0, coef, &call.delta[i], &soft);
            call.delta[i] = soft;
            for (int64_t c = 0; c < k; ++c) {
                call.delta[i] -= coef[c] * (row[c] - own);
                coef[c] = -coef[c];
            }
            coef[labels[i]] += 1.0;
        }
    }
    AlongSums along(const Line& line, int64_t lo, int64_t hi) const {
        return sum_along(line, labels, weights, k, lo, hi, [&](int64_t label, const auto& score, const double* step) {
            const double most = best_class<double>(k, score).value;
            double total = 0.0, mean = 0.0;
            for (int64_t c = 0; c < k; ++c) {
                const double part = soft_share(score(c) - most);
                total += part;
                mean += part * step[c];
            }
            return AlongSums{most + log(total) - score(label), step[label] - mean / total};
        });
    }
    SmoothSums smooth(const SmoothPlaces& places, int64_t lo, int64_t hi) const {
        SmoothSums sums = {0.0, 0.0, 0.0, 0.0};
        const SmoothPlaces at_one = {places.scores, 1.0, places.residual, places.curvature, places.share};
        const auto no_cost = [](int64_t, int64_t) { return 0.0; };
        soften(labels, weights, k, at_one, no_cost, lo, hi, [&](int64_t i, double, double soft) {
            const double *row = places.scores + i * k, *share = places.share + i * k;
            double mean = 0.0;
            for (int64_t c = 0; c < k; ++c) mean += share[c] * (row[c] - row[labels[i]]);
            sums.loss += weights[i] * soft;
            sums.value += weights[i] * soft;
            sums.dual += weights[i] * (soft - mean);
        });
        return sums;
    }
    template <class T>
    SLIMSVM_INLINE RowGradient gradient(int64_t row, const T* scores, T* r) const {
        const int64_t label = labels[row];
        const BestClass<double> best = best_class<double>(k, [&](int64_t c) { return double(scores[c]); });
        double total = 0.0;
        for (int64_t c = 0; c < k; ++c) {
            const double part = soft_share(double(scores[c]) - best.value);
            r[c] = T(part);
            total += part;
        }
        for (int64_t c = 0; c < k; ++c) r[c] = T(weights[row] * double(r[c]) / total);
        r[label] -= T(weights[row]);
        return {best.value + log(total) - double(scores[label]), best.label != label, true};
    }
};

}  // namespace slimsvm::SLIMSVM_ISA
