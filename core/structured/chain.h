// Linear chains: Viterbi's recursion, and the loss-augmented argmax built on it.
//
// A labelling y of a sequence of length L scores start[y_1] + sum_t s_t[y_t] + sum_t T[y_t, y_t+1] + end[y_L]. The
// recursion runs from the end, so that among labellings of equal score the one found has the lowest label in the first
// row, then in the second, and so on. Transitions lie transposed, to[c', c] = T[c, c'], so that a vector holds the
// labels c of one row; rows of labels are padded to whole vectors with labels of score -infinity.
#pragma once

#include <string.h>

#include "simd/vector.h"
#include "slimsvm.h"

namespace slimsvm::SLIMSVM_ISA {

struct Chain {
    int64_t k, stride;  // labels, and numbers in a padded row of them
    double *to, *start, *end;

    static int64_t stride_of(int64_t k) { return divide_up(k, LANES<double>) * LANES<double>; }
    static int64_t bytes(int64_t k) { return (stride_of(k) + 2) * stride_of(k) * 8; }

    // Takes the parameters from `plain` (k * k + 2 k): T row by row, start, end. `memory` has `bytes`.
    template <class T>
    static Chain from(const T* plain, int64_t k, void* memory) {
        const int64_t stride = stride_of(k);
        double* place = static_cast<double*>(memory);
        const Chain chain = {k, stride, place, place + stride * stride, place + (stride + 1) * stride};
        for (int64_t i = 0; i < (stride + 2) * stride; ++i) place[i] = -HUGE_VAL;
        for (int64_t c = 0; c < k; ++c) {
            for (int64_t after = 0; after < k; ++after) chain.to[after * stride + c] = double(plain[c * k + after]);
            chain.start[c] = double(plain[k * k + c]);
            chain.end[c] = double(plain[k * k + k + c]);
        }
        return chain;
    }
};

// Memory for one sequence: scores (length, stride) and what the recursions keep.
struct ChainScratch {
    double *scores, *value, *other, *best, *best_other;
    int64_t *choice, *choice_other;

    // For sequences of at most `longest` rows.
    static int64_t bytes(int64_t k, int64_t longest) { return (3 * longest + 4) * Chain::stride_of(k) * 8; }
    static ChainScratch at(void* memory, int64_t k, int64_t longest) {
        const int64_t stride = Chain::stride_of(k), size = longest * stride;
        double *scores = static_cast<double*>(memory), *value = scores + size;
        int64_t* choice = reinterpret_cast<int64_t*>(value + 4 * stride);
        return {scores, value, value + stride, value + 2 * stride, value + 3 * stride, choice, choice + size};
    }

    // Scores (length, k), whose rows lie row_stride apart, to padded rows.
    template <class T>
    void copy_scores(const T* rows, int64_t length, const Chain& chain, int64_t row_stride) const {
        for (int64_t t = 0; t < length; ++t) {
            double* row = scores + t * chain.stride;
            for (int64_t c = 0; c < chain.k; ++c) row[c] = double(rows[t * row_stride + c]);
            for (int64_t c = chain.k; c < chain.stride; ++c) row[c] = 0.0;
        }
    }
    // Scores score(t * k + c) of the rows t and labels c, to padded rows.
    template <class Score>
    SLIMSVM_INLINE void set_scores(int64_t length, const Chain& chain, const Score& score) const {
        for (int64_t t = 0; t < length; ++t) {
            double* row = scores + t * chain.stride;
            for (int64_t c = 0; c < chain.k; ++c) row[c] = score(t * chain.k + c);
            for (int64_t c = chain.k; c < chain.stride; ++c) row[c] = 0.0;
        }
    }
    template <class T>
    void copy_scores(const T* rows, int64_t length, const Chain& chain) const {
        set_scores(length, chain, [&](int64_t i) { return double(rows[i]); });
    }
};

// best[c] = max over c' of T[c, c'] + later[c'], and choice[c] the lowest such c', of COUNT vectors of labels c: one
// alone would wait for its own comparisons.
template <int COUNT>
SLIMSVM_INLINE void extend_labels(const Chain& chain, const double* later, int64_t c, double* best, int64_t* choice) {
    Vec<double> greatest[COUNT];
    IntVec<double> chosen[COUNT];
    SLIMSVM_EACH (v, COUNT) greatest[v] = splat<double>(-HUGE_VAL);
    SLIMSVM_EACH (v, COUNT) chosen[v] = IntVec<double>{};
    const double* to = chain.to + c;
    for (int64_t after = 0; after < chain.k; ++after, to += chain.stride)
        SLIMSVM_EACH (v, COUNT) {
            const Vec<double> value = load<double>(to + v * LANES<double>) + later[after];
            const IntVec<double> is_greater = (IntVec<double>)(value > greatest[v]);
            greatest[v] = is_greater ? value : greatest[v];
            chosen[v] = is_greater ? IntVec<double>{} + after : chosen[v];
        }
    SLIMSVM_EACH (v, COUNT) store<double>(best + c + v * LANES<double>, greatest[v]);
    __builtin_memcpy(choice + c, chosen, sizeof chosen);
}

// The same of all labels.
SLIMSVM_INLINE void extend_chain(const Chain& chain, const double* later, double* best, int64_t* choice) {
    constexpr int64_t lanes = LANES<double>;
    int64_t c = 0;
    for (; c + 4 * lanes <= chain.stride; c += 4 * lanes) extend_labels<4>(chain, later, c, best, choice);
    for (; c + 2 * lanes <= chain.stride; c += 2 * lanes) extend_labels<2>(chain, later, c, best, choice);
    if (c < chain.stride) extend_labels<1>(chain, later, c, best, choice);
}

// The label of the greatest value[c] + start[c].
SLIMSVM_INLINE int64_t first_label(const Chain& chain, const double* value, double& greatest) {
    int64_t label = 0;
    greatest = -HUGE_VAL;
    for (int64_t c = 0; c < chain.k; ++c)
        if (value[c] + chain.start[c] > greatest) {
            label = c;
            greatest = value[c] + chain.start[c];
        }
    return label;
}

// The labelling of the greatest score to `path`; returns that score.
inline double viterbi(const Chain& chain, const ChainScratch& scratch, int64_t length, int64_t* path) {
    const int64_t stride = chain.stride;
    for (int64_t c = 0; c < stride; ++c) scratch.value[c] = scratch.scores[(length - 1) * stride + c] + chain.end[c];
    for (int64_t t = length - 2; t >= 0; --t) {
        extend_chain(chain, scratch.value, scratch.best, scratch.choice + t * stride);
        for (int64_t c = 0; c < stride; ++c) scratch.value[c] = scratch.scores[t * stride + c] + scratch.best[c];
    }
    double greatest;
    int64_t label = first_label(chain, scratch.value, greatest);
    for (int64_t t = 0; t < length; ++t) {
        path[t] = label;
        if (t < length - 1) label = scratch.choice[t * stride + label];
    }
    return greatest;
}

// The same among the labellings that differ from y (-infinity: there is one label only). Beside the greatest value of
// every suffix this keeps that of the suffixes that differ from y's.
inline double viterbi_other(const Chain& chain, const ChainScratch& scratch, int64_t length, const int64_t* y,
                            int64_t* path) {
    const int64_t stride = chain.stride;
    double *value = scratch.value, *other = scratch.other;
    for (int64_t c = 0; c < stride; ++c) value[c] = other[c] = scratch.scores[(length - 1) * stride + c] + chain.end[c];
    other[y[length - 1]] = -HUGE_VAL;
    for (int64_t t = length - 2; t >= 0; --t) {
        const double* scores = scratch.scores + t * stride;
        extend_chain(chain, value, scratch.best, scratch.choice + t * stride);
        extend_chain(chain, other, scratch.best_other, scratch.choice_other + t * stride);
        for (int64_t c = 0; c < stride; ++c) value[c] = other[c] = scores[c] + scratch.best[c];
        other[y[t]] = scores[y[t]] + scratch.best_other[y[t]];
    }
    double greatest;
    int64_t label = first_label(chain, other, greatest);
    bool is_same = true;
    for (int64_t t = 0; t < length; ++t) {
        path[t] = label;
        is_same = is_same && label == y[t];
        if (t < length - 1) label = (is_same ? scratch.choice_other : scratch.choice)[t * stride + label];
    }
    return greatest;
}

// Score of one labelling, added up from the end as the recursions do: equal labellings have equal bits.
SLIMSVM_INLINE double chain_score(const Chain& chain, const ChainScratch& scratch, int64_t length, const int64_t* y) {
    double total = scratch.scores[(length - 1) * chain.stride + y[length - 1]] + chain.end[y[length - 1]];
    for (int64_t t = length - 2; t >= 0; --t)
        total = scratch.scores[t * chain.stride + y[t]] + (chain.to[y[t + 1] * chain.stride + y[t]] + total);
    return total + chain.start[y[0]];
}

// Delta(y, path) and the loss Delta + score(path) - score(y).
struct ChainLoss {
    double delta, value;
};

// The loss-augmented argmax of one sequence to `path`. The Hamming loss is added to the scratch's scores.
inline ChainLoss augmented_chain(const Chain& chain, const ChainScratch& scratch, int64_t length, const int64_t* y,
                                 int64_t loss, int64_t* path) {
    if (loss == SLIMSVM_HAMMING) {
        for (int64_t t = 0; t < length; ++t) {
            double* scores = scratch.scores + t * chain.stride;
            const double own = scores[y[t]];
            for (int64_t c = 0; c < chain.stride; ++c) scores[c] += 1.0;
            scores[y[t]] = own;
        }
        const double greatest = viterbi(chain, scratch, length, path);
        double wrong = 0.0;
        for (int64_t t = 0; t < length; ++t) wrong += path[t] != y[t] ? 1.0 : 0.0;
        return {wrong, greatest - chain_score(chain, scratch, length, y)};
    }
    const double other = 1.0 + viterbi_other(chain, scratch, length, y, path);
    const double truth = chain_score(chain, scratch, length, y);
    int64_t first = 0;
    while (first < length - 1 && path[first] == y[first]) ++first;
    if (other > truth || (other == truth && path[first] < y[first])) return {1.0, other - truth};
    memcpy(path, y, size_t(length) * sizeof *path);
    return {0.0, 0.0};
}

}  // namespace slimsvm::SLIMSVM_ISA
