// Losses of the rows of a tile, and their gradients in the scores.
#pragma once

#include "gradients/tile.h"
#include "losses/class_losses.h"
#include "losses/score_losses.h"
#include "structured/chain.h"

namespace slimsvm::SLIMSVM_ISA {

// Where losses come from: rows, sequences, gradients that the caller gives; or nowhere, for scores alone.
struct BatchLoss {
    const struct slimsvm_row_loss* rows;
    const struct slimsvm_sequence_loss* sequences;
    const int64_t* ends;  // of sequences: the place in the index where the one ends that a place belongs to
    const void* given;    // (n, m) of every place in the index
};

// Weighted loss and weight of wrong predictions.
struct LossTotals {
    double loss, wrong;
};

// A loss of one score, for each of a row's m: r = its gradient, weighted. Returns how many rows have one; their places
// go to `active`.
template <class T, class Loss, class Label>
inline int64_t score_losses(const Loss& loss, const Label* labels, const double* weights, int64_t n, int64_t m,
                            int64_t outputs, const Tile<T>& tile, LossTotals& totals) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) {
        const int64_t row = tile.chosen[i];
        const double weight = weights[row];
        bool is_active = false;
        for (int64_t c = 0; c < m; ++c) {
            const double y = double(labels[row * m + c]), f = double(tile.scores[i * outputs + c]);
            const double slope = loss.gradient(y, f);
            tile.r[i * m + c] = T(weight * slope);
            totals.loss += weight * loss.value(y, f);
            totals.wrong += loss.is_wrong(y, f) ? weight / double(m) : 0.0;
            is_active |= slope != 0.0;
        }
        tile.active[count] = i;
        count += is_active;
    }
    return count;
}

// The same for a loss of a class and the scores of all classes.
template <class T, class Loss>
inline int64_t class_losses(const Loss& loss, int64_t n, int64_t m, int64_t outputs, const Tile<T>& tile,
                            LossTotals& totals) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) {
        const int64_t row = tile.chosen[i];
        const double weight = loss.weights[row];
        const RowGradient found = loss.gradient(row, tile.scores + i * outputs, tile.r + i * m);
        if (found.is_wrong) totals.wrong += weight;
        if (!found.is_active) continue;
        totals.loss += weight * found.loss;
        tile.active[count++] = i;
    }
    return count;
}

template <class T>
inline int64_t row_losses(const struct slimsvm_row_loss& loss, int64_t n, int64_t m, int64_t outputs,
                          const Tile<T>& tile, LossTotals& totals) {
    int64_t count = 0;
    with_class_loss(loss,
                    [&](const auto& of_classes) { count = class_losses(of_classes, n, m, outputs, tile, totals); });
    with_score_loss(loss, [&](const auto& of_score, const auto* labels) {
        count = score_losses(of_score, labels, loss.weights, n, m, outputs, tile, totals);
    });
    return count;
}

// Gradients that are given, of places from `position` on.
template <class T>
inline int64_t given_losses(const T* given, int64_t n, int64_t m, const Tile<T>& tile) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) {
        bool is_any = false;
        for (int64_t c = 0; c < m; ++c) {
            tile.r[i * m + c] = given[i * m + c];
            is_any |= given[i * m + c] != T(0);
        }
        tile.active[count] = i;
        count += is_any;
    }
    return count;
}

// part += weight times (path's transitions, first and last label less those of y).
inline void add_transitions(const int64_t* y, const int64_t* path, int64_t length, int64_t k, double weight,
                            double* part) {
    for (int64_t t = 1; t < length; ++t) {
        if (path[t] == y[t] && path[t - 1] == y[t - 1]) continue;
        part[path[t - 1] * k + path[t]] += weight;
        part[y[t - 1] * k + y[t]] -= weight;
    }
    part[k * k + path[0]] += weight;
    part[k * k + y[0]] -= weight;
    part[k * k + k + path[length - 1]] += weight;
    part[k * k + k + y[length - 1]] -= weight;
}

// Losses of the sequences of a tile, whose n rows begin at place `start` of the index. The gradient in the plain
// parameters, times `share`, is added to `part`. Of a sequence counts that any label is wrong, or each wrong label
// times the number of sequences per row.
template <class T>
inline int64_t sequence_losses(const BatchLoss& batch, const Parameters<T>& parameters, int64_t start, int64_t n,
                               int64_t longest, double share, const Tile<T>& tile, double* part, LossTotals& totals) {
    const struct slimsvm_sequence_loss& loss = *batch.sequences;
    const int64_t k = parameters.m;
    const Chain chain = Chain::from(parameters.plain, k, tile.chain);
    const ChainScratch scratch = ChainScratch::at(tile.chain + Chain::bytes(k), k, longest);
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) tile.truth[i] = loss.classes[tile.chosen[i]];
    for (int64_t i = 0; i < n * k; ++i) tile.r[i] = T(0);
    for (int64_t a = 0; a < n;) {
        const int64_t z = least(n, batch.ends[start + a] - start), length = z - a;
        const double weight = loss.weights[tile.chosen[a]];
        const int64_t* y = tile.truth + a;
        int64_t *path = tile.path + a, wrong = 0;
        scratch.copy_scores(tile.scores + a * parameters.outputs, length, chain, parameters.outputs);
        viterbi(chain, scratch, length, path);
        for (int64_t t = 0; t < length; ++t) wrong += path[t] != y[t];
        totals.wrong += weight * (loss.code == SLIMSVM_HAMMING ? double(wrong) * loss.per_row : wrong > 0 ? 1.0 : 0.0);
        totals.loss += weight * augmented_chain(chain, scratch, length, y, loss.code, path).value;
        for (int64_t t = 0; t < length; ++t) {
            if (path[t] == y[t]) continue;
            tile.r[(a + t) * k + path[t]] = T(weight);
            tile.r[(a + t) * k + y[t]] = T(-weight);
            tile.active[count++] = a + t;
        }
        add_transitions(y, path, length, k, weight * share, part);
        a = z;
    }
    return count;
}

}  // namespace slimsvm::SLIMSVM_ISA
