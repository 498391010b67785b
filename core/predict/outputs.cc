// What comes of a row's scores; src/slimsvm/deploy/decisions.py has the same in Python.
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

// The scores in rising order.
void sort(const double* raw, int64_t n, double* out) {
    for (int64_t c = 0; c < n; ++c) {
        int64_t at = c;
        for (; at > 0 && out[at - 1] > raw[c]; --at) out[at] = out[at - 1];
        out[at] = raw[c];
    }
}

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
        case Kind::COUNTS:
            for (int64_t c = 0; c < model.n_outputs; ++c) out[c] = __builtin_exp(raw[c]);
            break;
        case Kind::QUANTILES:
            sort(raw, model.n_outputs, out);
            break;
        default:
            memcpy(out, raw, size_t(model.n_outputs) * sizeof *out);
    }
}

// ---------------------------------------------------------------- probabilities

constexpr double LEAST_SHARE = 1e-3, LOG_2 = 0.693147180559945309;

// Log odds of a score by the parameters p. Those that keep its sign are 0 where it is.
double log_odds(double score, const double* p, bool keeps_sign) {
    if (!keeps_sign && p[0] == p[1] && p[2] == 0.0) return p[0] * score + p[3];  // a line
    const bool is_negative = score < 0.0;
    const double size = __builtin_fabs(score), flat = LOG_2 - __builtin_log1p(__builtin_exp(-size));
    double odds = p[is_negative] * (size - flat) + p[!is_negative] * flat + p[2] * __builtin_log1p(size);
    if (keeps_sign) {
        const double own = is_negative ? -p[3] : p[3], least = LEAST_SHARE * odds;
        odds += own < odds ? own : odds;
        if (odds < least) odds = least;
    }
    return (is_negative ? -odds : odds) + (keeps_sign ? 0.0 : p[3]);
}

double logistic(double odds) {
    const double smaller = __builtin_exp(-__builtin_fabs(odds));
    return (odds < 0.0 ? smaller : 1.0) / (1.0 + smaller);
}

// Adds e^exponent to sum e^most, where `most` is the greatest exponent so far.
void add_power(double exponent, double& most, double& sum) {
    const double smaller = __builtin_exp(-__builtin_fabs(exponent - most));
    sum = exponent > most ? sum * smaller + 1.0 : sum + smaller;
    if (exponent > most) most = exponent;
}

// p_i in proportion to 1 / (1 + sum over j of e^-z_ij), z_ij the log odds of class i against j.
void couple(const Model& model, const double* raw, double* most, double* out) {
    const int64_t k = model.n_labels;
    const double* p = model.calibration.data();
    for (int64_t c = 0; c < k; ++c) {
        most[c] = 0.0;
        out[c] = 1.0;
    }
    for (int64_t a = 0; a < k; ++a)
        for (int64_t b = a + 1; b < k; ++b, p += 4) {
            const double odds = log_odds(model.kind == Kind::PAIRS ? *raw++ : raw[a] - raw[b], p, false);
            add_power(-odds, most[a], out[a]);
            add_power(odds, most[b], out[b]);
        }
    double least = most[0], total = 0.0;
    for (int64_t c = 1; c < k; ++c) least = most[c] < least ? most[c] : least;
    for (int64_t c = 0; c < k; ++c) total += out[c] = __builtin_exp(least - most[c]) / out[c];
    for (int64_t c = 0; c < k; ++c) out[c] /= total;
}

// Differences of the probabilities of a class above each threshold, of which `sorted` is room for a copy.
void write_between(const Model& model, double score, double* sorted, double* out) {
    const int64_t k = model.n_labels;
    for (int64_t c = 0; c + 1 < k; ++c) {
        int64_t at = c;
        for (; at > 0 && sorted[at - 1] > model.plain[c]; --at) sorted[at] = sorted[at - 1];
        sorted[at] = model.plain[c];
    }
    const int64_t step = model.calibration.size() > 4 ? 4 : 0;  // a line for each threshold, or one for all
    double above = 1.0;
    for (int64_t c = 0; c < k; ++c) {
        const double* line = model.calibration.data() + (c + 1 < k ? step * c : 0);
        const double next = c + 1 < k ? logistic(log_odds(score - sorted[c], line, k == 2)) : 0.0;
        out[c] = above > next ? above - next : 0.0;
        above = next;
    }
}

void write_probabilities(const Model& model, const double* raw, double* scratch, double* out) {
    if (model.kind == Kind::BINARY) {
        const double odds = log_odds(*raw, model.calibration.data(), true);
        out[0] = logistic(-odds);
        out[1] = logistic(odds);
    } else if (model.kind == Kind::LABELS) {
        for (int64_t c = 0; c < model.n_outputs; ++c)
            out[c] = logistic(log_odds(raw[c], model.calibration.data() + 4 * c, true));
    } else if (model.kind == Kind::ORDINAL) {
        write_between(model, *raw, scratch, out);
    } else {
        couple(model, raw, scratch, out);
    }
}

}  // namespace

void write_answer(const Model& model, Answer answer, const double* raw, double* scratch, double* out) {
    if (model.has_numbers()) answer = Answer::PREDICTION;  // which has the place of scores
    const auto write = answer == Answer::SCORES       ? write_scores
                       : answer == Answer::PREDICTION ? write_prediction
                                                      : write_probabilities;
    write(model, raw, scratch, out);
}

}  // namespace slimsvm::predict
