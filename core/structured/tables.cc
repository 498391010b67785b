// Loss-augmented argmax of losses over all rows of two classes, for sorted scores.
//
// Joachims, "A Support Vector Method for Multivariate Performance Measures", ICML 2005, Algorithms 2 and 3. With
// Psi = (1/n) sum_i y_i phi(x_i) / 2 a labelling is worth Delta - (1/n) sum of y_i s_i over the rows where it differs
// from y. Measures of the contingency table depend on it by a, the positives that stay positive, and b, the negatives
// that become positive, alone; for given (a, b) the best labelling keeps the a highest positives and flips the b
// highest negatives. Less a constant its worth is, with S(k) the sum of the k highest scores of a class and P
// positives,
//
//     Delta(a, b) + (S_+(a) + S_-(b)) / n - S_+(P) / n.
#include "support/call.h"

namespace slimsvm::SLIMSVM_ISA {

namespace {

// sums[k] = the sum of the first k numbers, k = 0, ..., n.
void sum_up(const double* numbers, int64_t n, double* sums) {
    sums[0] = 0.0;
    for (int64_t k = 0; k < n; ++k) sums[k + 1] = sums[k] + numbers[k];
}

// Where the worth of a table with a true positives stops rising in b, from b = start on: there it is concave.
// `near` is where it did for the a before: not far from here, as a rule.
int64_t last_rise(const struct slimsvm_best_f_table_call& call, int64_t a, int64_t start, int64_t near) {
    const double n = double(call.P + call.Q), fixed = call.beta_squared * double(call.P) + double(a);
    const double gain = (1.0 + call.beta_squared) * double(a) * n;
    // The loss rises by (1 + beta^2) a / (e (e + 1)) for e = beta^2 P + a + b > 0; where e = 0, a is 0 too.
    const auto rises = [&](int64_t b) {
        const double either = fixed + double(b);
        return gain + call.negatives[b] * (either * (either + 1.0)) > 0.0;
    };
    // Steps of doubled length from `near` to where b is between two of them, then halving.
    int64_t lo = start, hi = call.Q, step = 1;
    near = most(start, near);
    if (near < hi && rises(near)) {
        lo = near + 1;
        while (lo + step < hi && rises(lo + step - 1)) {
            lo += step;
            step *= 2;
        }
        hi = least(hi, lo + step);
    } else {
        hi = least(hi, near);
        while (hi - step > lo && !rises(hi - step)) {
            hi -= step;
            step *= 2;
        }
        lo = most(lo, hi - step);
    }
    while (lo < hi) {
        const int64_t b = (lo + hi) / 2;
        if (rises(b))
            lo = b + 1;
        else
            hi = b;
    }
    return lo;
}

// The rows of one class that are positive in a table: the `count` highest.
struct Highest {
    double threshold;  // rows above it are, and some that are equal
    int64_t equal;

    Highest(const double* falling, int64_t count) : threshold(HUGE_VAL), equal(0) {
        if (count == 0) return;
        threshold = falling[count - 1];
        int64_t lo = 0, hi = count;  // to the first place that is not above the threshold
        while (lo < hi) {
            const int64_t middle = (lo + hi) / 2;
            if (falling[middle] > threshold)
                lo = middle + 1;
            else
                hi = middle;
        }
        equal = count - lo;
    }
    SLIMSVM_INLINE bool has(double score) {
        if (score != threshold || equal == 0) return score > threshold;
        --equal;
        return true;
    }
};

}  // namespace

int32_t best_f_table(struct slimsvm_best_f_table_call* call) {
    const int64_t P = call->P, Q = call->Q;
    if (call->at < 0 || call->at > P + 1 || call->max_steps < 1 || !(call->beta_squared > 0.0) || P + Q < 1 ||
        call->b < 0 || call->b > Q)
        return SLIMSVM_BAD_ARGUMENT;
    if (call->at == 0) {
        sum_up(call->positives, P, call->kept);
        sum_up(call->negatives, Q, call->flipped);
        call->a = call->b = 0;
        call->worth = -HUGE_VAL;
    }
    const double n = double(P + Q), beta_squared = call->beta_squared;
    // Without positives b = 0 is faultless and b = 1 has the loss 1: concave from b = 1 on.
    const int64_t start = P == 0 ? least(int64_t(1), Q) : 0, end = call->at + least(P + 1 - call->at, call->max_steps);
    int64_t b = call->b;
    for (int64_t a = call->at; a < end; ++a) {
        b = last_rise(*call, a, start, b);
        const double either = beta_squared * double(P) + double(a + b);
        const double loss = either > 0.0 ? 1.0 - (1.0 + beta_squared) * double(a) / either : 0.0;
        const double worth = loss + (call->kept[a] + call->flipped[b]) / n;
        if (worth > call->worth || (worth == call->worth && a + b < call->a + call->b)) {
            call->a = a;
            call->b = b;
            call->worth = worth;
        }
    }
    call->at = end;
    if (P == 0 && call->worth <= 0.0) call->b = 0;
    return SLIMSVM_OK;
}

int32_t best_table_at_k(struct slimsvm_best_table_at_k_call* call) {
    const int64_t P = call->P, Q = call->Q, k = call->k;
    if (k < 0 || k > P + Q || call->per < 0) return SLIMSVM_BAD_ARGUMENT;
    sum_up(call->positives, P, call->kept);
    sum_up(call->negatives, Q, call->flipped);
    call->a = 0;
    call->worth = -HUGE_VAL;
    for (int64_t a = most(int64_t(0), k - Q); a <= least(P, k); ++a) {
        const double loss = call->per > 0 ? 1.0 - double(a) / double(call->per) : 0.0;
        const double worth = loss + (call->kept[a] - call->kept[P] + call->flipped[k - a]) / double(P + Q);
        if (worth > call->worth) {
            call->a = a;
            call->worth = worth;
        }
    }
    return SLIMSVM_OK;
}

int32_t table_coefficients(struct slimsvm_table_coefficients_call* call) {
    if (call->a < 0 || call->a > call->P || call->b < 0 || call->b > call->Q) return SLIMSVM_BAD_ARGUMENT;
    Highest kept(call->positives, call->a), flipped(call->negatives, call->b);
    const double share = 1.0 / double(call->n);
    for (int64_t i = call->n - 1; i >= 0; --i)
        if (call->labels[i] > 0)
            call->coef[i] = kept.has(call->scores[i]) ? 0.0 : share;
        else
            call->coef[i] = flipped.has(call->scores[i]) ? -share : 0.0;
    return SLIMSVM_OK;
}

int32_t augment_roc(struct slimsvm_augment_roc_call* call) {
    const int64_t P = call->P, Q = call->Q;
    const double *scores = call->scores, n_pairs = double(P) * double(Q);
    for (int64_t i = 0; i < call->n; ++i) call->coef[i] = 0.0;
    call->share = 0.0;
    if (P == 0 || Q == 0) return SLIMSVM_OK;
    // Of each positive the negatives from the j-th on are swapped, of each negative the first i positives.
    double n_swapped = 0.0;
    int64_t j = 0;
    for (int64_t i = 0; i < P; ++i) {
        const double score = scores[call->positives[i]];
        while (j < Q && !(score - scores[call->negatives[j]] <= 1.0)) ++j;
        call->coef[call->positives[i]] = double(Q - j) / n_pairs;
        n_swapped += double(Q - j);
    }
    int64_t i = 0;
    for (j = 0; j < Q; ++j) {
        const double score = scores[call->negatives[j]];
        while (i < P && scores[call->positives[i]] - score <= 1.0) ++i;
        call->coef[call->negatives[j]] = -double(i) / n_pairs;
    }
    call->share = n_swapped / n_pairs;
    return SLIMSVM_OK;
}

}  // namespace slimsvm::SLIMSVM_ISA
