// Loss-augmented argmax of rankings: swapped pairs and average precision, both in O(n log n).
//
// Rows come query by query. With Psi = 1/(number of pairs) sum over the pairs (i above j) of y_ij (phi(x_i) - phi(x_j))
// / 2 a row's coefficient is the number of its pairs that are swapped, over the number of pairs; positive for the row
// that should be above.
#include <string.h>

#include "support/call.h"

namespace slimsvm::SLIMSVM_ISA {

namespace {

// The queries `first`, ..., `last` - 1 of a call.
struct Queries {
    int64_t longest, room;  // rows of the longest query; grades there are room for

    template <class Call>
    Queries(const Call& call, const int64_t* grades) : longest(0), room(0) {
        for (int64_t q = call.first; q < call.last; ++q) longest = most(longest, call.offsets[q + 1] - call.offsets[q]);
        for (int64_t i = 0; i < call.n; ++i) room = most(room, grades[i]);
        room += 2;
    }
    template <class Call>
    static bool fits(const Call& call) {
        return call.first >= 0 && call.first <= call.last && call.last <= call.n_queries;
    }
};

// A Fenwick tree that counts rows by grade.
struct Counter {
    int64_t *tree, size;

    void clear() { memset(tree, 0, size_t(size) * sizeof *tree); }
    SLIMSVM_INLINE void count(int64_t grade) {
        for (int64_t k = grade + 1; k < size; k += k & -k) ++tree[k];
    }
    // Rows counted so far whose grade is below this one.
    SLIMSVM_INLINE int64_t below(int64_t grade) const {
        int64_t total = 0;
        for (int64_t k = grade; k > 0; k -= k & -k) total += tree[k];
        return total;
    }
};

// One query's rows, side by side, since they are read many times.
struct Query {
    double* scores;
    int64_t *grades, *counts, *tree;

    // Places the arrays in the call's workspace, if it is large enough.
    template <class Call>
    int32_t begin(Call& call) {
        if (!Queries::fits(call)) return SLIMSVM_BAD_ARGUMENT;
        const Queries queries(call, call.grades);
        const int64_t bytes = 16 * queries.longest + 16 * queries.room + 8;
        if (call.n_workspace < bytes) return needs_workspace(call, bytes);
        scores = reinterpret_cast<double*>(call.workspace + (8 - uintptr_t(call.workspace) % 8) % 8);
        grades = reinterpret_cast<int64_t*>(scores + queries.longest);
        counts = grades + queries.longest;
        tree = counts + queries.room;
        return SLIMSVM_OK;
    }
    // Takes the rows, and returns an empty counter of their grades. twice_pairs: pairs of different grades, both ways.
    Counter take(const int64_t* rows, int64_t n, const double* all_scores, const int64_t* all_grades,
                 int64_t& twice_pairs) const {
        int64_t highest = 0;
        for (int64_t i = 0; i < n; ++i) {
            scores[i] = all_scores[rows[i]];
            grades[i] = all_grades[rows[i]];
            highest = most(highest, grades[i]);
        }
        memset(counts, 0, size_t(highest + 1) * sizeof *counts);
        for (int64_t i = 0; i < n; ++i) ++counts[grades[i]];
        twice_pairs = 0;
        for (int64_t g = 0; g <= highest; ++g) twice_pairs += counts[g] * (n - counts[g]);
        Counter counter = {tree, highest + 2};
        counter.clear();
        return counter;
    }
};

// For falling scores of both: how many relevant rows each irrelevant one is placed under.
//
// Placing the j-th irrelevant row (from 1) above the i-th relevant one costs average precision
// i / ((i + j) (i + j - 1) P) and the score (s_i - s_j) / (P N). What is gained falls with j for every i, so that the
// best places rise with j: the middle row is placed, then those before and after it within what that leaves (Mohapatra,
// Jawahar, Kumar, NIPS 2014, which makes O(P log N + N) of the O(P N) of Yue et al., SIGIR 2007). Ties: the fewest
// swapped pairs.
void place_irrelevant(const double* relevant, int64_t n_relevant, const double* irrelevant, int64_t n_irrelevant,
                      int64_t* place) {
    struct Range {
        int64_t lo, hi, least, most;
    };
    Range stack[64];  // halves of halves: never more than the bits of a number of rows
    int64_t depth = 0;
    stack[depth++] = {0, n_irrelevant, 0, n_relevant};
    while (depth > 0) {
        const Range range = stack[--depth];
        if (range.least == range.most) {
            for (int64_t j = range.lo; j < range.hi; ++j) place[j] = range.least;
            continue;
        }
        const int64_t middle = (range.lo + range.hi) / 2;
        const double j = double(middle + 1), score = irrelevant[middle], n = double(n_irrelevant);
        int64_t best = range.most;
        double best_worth = 0.0, worth = 0.0;
        for (int64_t k = range.most - 1; k >= range.least; --k) {
            const double i = double(k + 1);
            worth += n * i / ((i + j) * (i + j - 1.0)) - (relevant[k] - score);
            if (worth > best_worth) {
                best = k;
                best_worth = worth;
            }
        }
        place[middle] = best;
        if (range.lo < middle) stack[depth++] = {range.lo, middle, range.least, best};
        if (middle + 1 < range.hi) stack[depth++] = {middle + 1, range.hi, best, range.most};
    }
}

}  // namespace

int32_t order_in_queries(struct slimsvm_order_in_queries_call* call) {
    int64_t* place = call->place;
    for (int64_t q = 0; q < call->n_queries; ++q) place[q] = call->offsets[q];
    for (int64_t p = 0; p < call->n; ++p) {
        const int64_t row = call->order[p], q = call->query[row];
        if (place[q] >= call->offsets[q + 1]) return SLIMSVM_BAD_ARGUMENT;  // more rows than the query has
        call->out[place[q]++] = row;
    }
    return SLIMSVM_OK;
}

int32_t augment_swaps(struct slimsvm_augment_swaps_call* call) {
    Query query;
    if (const int32_t status = query.begin(*call)) return status;
    const double* s = query.scores;
    const int64_t* g = query.grades;
    for (int64_t q = call->first; q < call->last; ++q) {
        const int64_t n = call->offsets[q + 1] - call->offsets[q], *rows = call->order + call->offsets[q];
        int64_t twice_pairs, n_swapped = 0, at = n - 1;
        Counter counter = query.take(rows, n, call->scores, call->grades, twice_pairs);
        const double n_pairs = double(twice_pairs / 2);
        call->delta[q] = 0.0;
        if (twice_pairs == 0) {
            for (int64_t i = 0; i < n; ++i) call->coef[rows[i]] = 0.0;
            continue;
        }
        // From the highest score down: as s_i falls, more and more rows j are too near below it, or above.
        for (int64_t i = n - 1; i >= 0; --i) {
            for (; at >= 0 && s[i] - s[at] <= 1.0; --at) counter.count(g[at]);
            const int64_t own = counter.below(g[i]);
            n_swapped += own;
            call->coef[rows[i]] = double(own) / n_pairs;
        }
        // From the lowest score up: the rows i that should be above j and are not by 1.
        counter.clear();
        at = 0;
        for (int64_t j = 0; j < n; ++j) {
            for (; at < n && s[at] - s[j] <= 1.0; ++at) counter.count(g[at]);
            call->coef[rows[j]] -= double(at - counter.below(g[j] + 1)) / n_pairs;
        }
        call->delta[q] = double(n_swapped) / n_pairs;
    }
    return SLIMSVM_OK;
}

int32_t augment_average_precision(struct slimsvm_augment_average_precision_call* call) {
    if (!Queries::fits(*call)) return SLIMSVM_BAD_ARGUMENT;
    const Queries queries(*call, call->relevance);
    const int64_t longest = queries.longest, bytes = 40 * longest + 8;
    if (call->n_workspace < bytes) return needs_workspace(*call, bytes);
    // Relevant rows and the others, with their scores, by falling score.
    double* relevant = reinterpret_cast<double*>(call->workspace + (8 - uintptr_t(call->workspace) % 8) % 8);
    double* irrelevant = relevant + longest;
    int64_t* rows = reinterpret_cast<int64_t*>(irrelevant + longest);
    int64_t *others = rows + longest, *place = others + longest;
    for (int64_t q = call->first; q < call->last; ++q) {
        const int64_t first = call->offsets[q], last = call->offsets[q + 1];
        int64_t n_relevant = 0, n_irrelevant = 0;
        for (int64_t p = first; p < last; ++p) {
            const int64_t row = call->order[p];
            call->coef[row] = 0.0;
            if (call->relevance[row]) {
                relevant[n_relevant] = call->scores[row];
                rows[n_relevant++] = row;
            } else {
                irrelevant[n_irrelevant] = call->scores[row];
                others[n_irrelevant++] = row;
            }
        }
        call->delta[q] = 0.0;
        if (n_relevant == 0 || n_irrelevant == 0) continue;
        place_irrelevant(relevant, n_relevant, irrelevant, n_irrelevant, place);
        const double n_pairs = double(n_relevant) * double(n_irrelevant);
        double precision = 0.0;
        int64_t above = 0;
        for (int64_t k = 0; k < n_relevant; ++k) {
            while (above < n_irrelevant && place[above] <= k) ++above;
            call->coef[rows[k]] = double(above) / n_pairs;
            precision += double(k + 1) / double(k + 1 + above);
        }
        for (int64_t j = 0; j < n_irrelevant; ++j) call->coef[others[j]] = -double(n_relevant - place[j]) / n_pairs;
        call->delta[q] = 1.0 - precision / double(n_relevant);
    }
    return SLIMSVM_OK;
}

int32_t swapped_shares(struct slimsvm_swapped_shares_call* call) {
    Query query;
    if (const int32_t status = query.begin(*call)) return status;
    const double* s = query.scores;
    const int64_t* g = query.grades;
    for (int64_t q = call->first; q < call->last; ++q) {
        const int64_t n = call->offsets[q + 1] - call->offsets[q], *rows = call->order + call->offsets[q];
        int64_t twice_pairs, twice_swapped = 0;
        Counter counter = query.take(rows, n, call->predicted, call->grades, twice_pairs);
        for (int64_t low = 0, high = 0; low < n; low = high) {
            do {
                twice_swapped += low - counter.below(g[high] + 1);
                ++high;
            } while (high < n && s[high] == s[low]);
            for (int64_t j = low; j < high; ++j) counter.count(g[j]);
            // Rows of equal scores see one another here only: half a pair each.
            for (int64_t j = low; j < high; ++j) twice_swapped += high - counter.below(g[j] + 1);
        }
        call->shares[q] = twice_pairs > 0 ? double(twice_swapped) / double(twice_pairs) : double(NAN);
    }
    return SLIMSVM_OK;
}

}  // namespace slimsvm::SLIMSVM_ISA
