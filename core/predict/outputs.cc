// What comes of a row's scores; src/slimsvm/deploy/predictors.py has the same in Python.
#include "predict/model.h"

namespace slimsvm::predict {

namespace {

// One-class scores of at most this share of the offset are 0: those of the vectors that the boundary is drawn through.
constexpr double ON_BOUNDARY = 1e-8;

int64_t greatest(const double* values, int64_t n) {
    int64_t best = 0;
    for (int64_t c = 1; c < n; ++c)
        if (values[c] > values[best]) best = c;
    return best;
}

double distance_inside(const Model& model, double score) {
    return __builtin_fabs(score) <= ON_BOUNDARY * __builtin_fabs(model.intercept[0]) ? 0.0 : score;
}

// Votes of the pairs (0, 1), (0, 2), ..., each for its first class or its second. Votes for the first where the score
// is at least 0 if `is_closed`, else above 0.
void count_votes(const double* raw, int64_t k, bool is_closed, double* votes) {
    for (int64_t c = 0; c < k; ++c) votes[c] = 0.0;
    for (int64_t a = 0; a < k; ++a)
        for (int64_t b = a + 1; b < k; ++b, ++raw) votes[*raw > 0.0 || (is_closed && *raw == 0.0) ? a : b] += 1.0;
}

// scikit-learn's decision values of pairs: votes, and less than half a vote for the sum of a class's scores.
void confidences(const double* raw, int64_t k, double* sums, double* out) {
    count_votes(raw, k, true, out);
    for (int64_t c = 0; c < k; ++c) sums[c] = 0.0;
    for (int64_t a = 0; a < k; ++a)
        for (int64_t b = a + 1; b < k; ++b, ++raw) {
            sums[a] += *raw;
            sums[b] -= *raw;
        }
    for (int64_t c = 0; c < k; ++c) out[c] += sums[c] / (3.0 * (__builtin_fabs(sums[c]) + 1.0));
}

// sums[c] = sum over j < c of (score - threshold[j]).
void add_up(const Model& model, double score, double* sums) {
    sums[0] = 0.0;
    for (int64_t c = 1; c < model.n_labels; ++c) sums[c] = sums[c - 1] + (score - model.plain[c - 1]);
}

}  // namespace

void write_scores(const Model& model, const double* raw, double* scratch, double* out) {
    const int64_t k = model.n_labels;
    if (model.kind == Kind::ONE_CLASS) {
        *out = distance_inside(model, *raw);
    } else if (model.kind == Kind::ORDINAL) {
        add_up(model, *raw, scratch);
        if (k == 2)
            *out = scratch[1];
        else
            memcpy(out, scratch, size_t(k) * sizeof *out);
    } else if (model.kind == Kind::PAIRS && !model.wants_pairs) {
        confidences(raw, k, scratch, out);
    } else if (model.kind == Kind::CLASSES && model.wants_pairs) {
        for (int64_t a = 0; a < k; ++a)
            for (int64_t b = a + 1; b < k; ++b) *out++ = raw[a] - raw[b];
    } else {
        memcpy(out, raw, size_t(model.n_outputs) * sizeof *out);
    }
}

void write_prediction(const Model& model, const double* raw, double* scratch, double* out) {
    const int64_t k = model.n_labels;
    switch (model.kind) {
        case Kind::BINARY:
            *out = *raw > 0.0;
            break;
        case Kind::CLASSES:
            *out = double(greatest(raw, k));
            break;
        case Kind::PAIRS:
            if (model.breaks_ties)
                confidences(raw, k, scratch + k, scratch);
            else
                count_votes(raw, k, false, scratch);
            *out = double(greatest(scratch, k));
            break;
        case Kind::LABELS:
            for (int64_t c = 0; c < model.n_outputs; ++c) out[c] = raw[c] > 0.0;
            break;
        case Kind::ONE_CLASS:
            *out = distance_inside(model, *raw) >= 0.0 ? 1.0 : -1.0;
            break;
        case Kind::ORDINAL:
            add_up(model, *raw, scratch);
            *out = double(greatest(scratch, k));
            break;
        default:
            *out = *raw;
    }
}

}  // namespace slimsvm::predict
