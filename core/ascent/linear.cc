// Dual coordinate ascent for support vector machines of two classes over explicit features, dense or sparse.
//
//     max_a  sum_i (1 - y_i b) a_i - |w|^2 / 2,   w = sum_i a_i y_i z_i,   0 <= a_i <= C_i
//
// b is a given intercept, or the weight of a constant feature, which moves with the others and counts in |w|.
//
// Rows whose variable stays at a bound are left out, until those that are left are solved for; then all are looked at
// again.
//
// Hsieh, Chang, Lin, Keerthi, Sundararajan, "A Dual Coordinate Descent Method for Large-scale Linear SVM", ICML 2008,
// algorithm 3.
#include "decomposition/box.h"
#include "simd/reduce.h"
#include "support/call.h"

namespace slimsvm::SLIMSVM_ISA {

namespace {

// The next of a sequence of random numbers (xorshift; Marsaglia, Journal of Statistical Software 2003).
inline uint64_t next_random(int64_t& state) {
    uint64_t x = uint64_t(state);
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    state = int64_t(x);
    return x;
}

// Rows of a dense matrix by their numbers.
template <class T>
struct Dense {
    const T* Z;
    const int64_t* rows;
    int64_t d;

    double product(int64_t i, const double* w) const { return dot(Z + rows[i] * d, w, d); }
    void add(int64_t i, double share, double* w) const { add_scaled(share, Z + rows[i] * d, w, d); }
};

// Rows of a CSR matrix.
template <class T>
struct Sparse {
    const T* values;
    const int32_t* columns;
    const int64_t* starts;

    double product(int64_t i, const double* w) const {
        double sums[4] = {};
        int64_t at = starts[i];
        for (; at + 4 <= starts[i + 1]; at += 4)
            for (int k = 0; k < 4; ++k) sums[k] += double(values[at + k]) * w[columns[at + k]];
        for (; at < starts[i + 1]; ++at) sums[0] += double(values[at]) * w[columns[at]];
        return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
    void add(int64_t i, double share, double* w) const {
        for (int64_t at = starts[i]; at < starts[i + 1]; ++at) w[columns[at]] += share * double(values[at]);
    }
};

// `moves`: 1 where b moves, 0 where it is given.
template <class Rows, class Call>
void ascend_rows(const Rows& rows, Call& call, double& b, double moves) {
    const int64_t n = call.n;
    double highest = HUGE_VAL, lowest = -HUGE_VAL;  // derivatives of the sweep before
    int64_t n_active = n;
    for (int64_t s = 0; s < n; ++s) call.active[s] = s;
    for (call.sweeps = 0; call.sweeps < call.max_sweeps; ++call.sweeps) {
        double high = -HUGE_VAL, low = HUGE_VAL;
        for (int64_t s = 0; s < n_active; ++s) {
            const int64_t swap = s + int64_t(next_random(call.random) % uint64_t(n_active - s));
            const int64_t i = call.active[swap];
            call.active[swap] = call.active[s];
            call.active[s] = i;
            const double y = call.sign[i], C = call.C_of_row[i], now = call.alpha[i];
            const double slope = 1.0 - y * (rows.product(i, call.w) + b);
            if ((now <= 0.0 && slope < lowest) || (now >= C && slope > highest)) {
                call.active[s--] = call.active[--n_active];
                call.active[n_active] = i;
                continue;
            }
            const double gain = now <= 0.0 ? most(slope, 0.0) : now >= C ? least(slope, 0.0) : slope;
            high = most(high, gain);
            low = least(low, gain);
            if (gain == 0.0) continue;
            const double after = least(most(now + slope / call.square[i], 0.0), C);
            call.alpha[i] = after;
            rows.add(i, y * (after - now), call.w);
            b += moves * y * (after - now);
        }
        call.violation = n_active ? high - low : 0.0;
        if (call.violation <= call.tol) {
            if (n_active == n) return;
            n_active = n;
            highest = HUGE_VAL;
            lowest = -HUGE_VAL;
            continue;
        }
        highest = high > 0.0 ? high : HUGE_VAL;
        lowest = low < 0.0 ? low : -HUGE_VAL;
    }
}

// One of several problems over dense rows.
struct Set {
    int64_t n, max_sweeps;
    double tol;
    const double *sign, *C_of_row, *square;
    double *alpha, *w;
    int64_t* active;
    int64_t random, sweeps;
    double violation;
};

// Whether the numbers of a call are in their ranges; a sweep goes through ``size`` numbers.
template <class Call>
bool is_right(const Call& call, int64_t size) {
    if (call.max_sweeps < 1 || call.max_sweeps > MOST_WORK / most(size, int64_t(1))) return false;
    for (int64_t i = 0; i < call.n; ++i)
        if (!(call.square[i] > 0.0 && call.C_of_row[i] > 0.0)) return false;
    return true;
}

template <class T>
void ascend_dense(struct slimsvm_ascend_linear_call& call) {
    double none = 0.0;
    for (int64_t s = 0; s < call.n_sets; ++s) {
        const int64_t at = call.starts[s];
        Set set = {call.starts[s + 1] - at,
                   call.max_sweeps,
                   call.tol,
                   call.sign + at,
                   call.C_of_row + at,
                   call.square + at,
                   call.alpha + at,
                   call.w + s * call.d,
                   call.active + at,
                   call.random[s],
                   0,
                   0.0};
        ascend_rows(Dense<T>{static_cast<const T*>(call.Z), call.rows + at, call.d}, set, none, 0.0);
        call.random[s] = set.random;
        call.violation[s] = set.violation;
    }
}

template <class T>
void ascend_csr(struct slimsvm_ascend_sparse_call& call) {
    const Sparse<T> rows = {static_cast<const T*>(call.values), call.indices, call.indptr};
    ascend_rows(rows, call, call.intercept, call.moves ? 1.0 : 0.0);
}

}  // namespace

int32_t ascend_linear(struct slimsvm_ascend_linear_call* call) {
    if (!is_right(*call, call->n * most(call->d, int64_t(1)))) return SLIMSVM_BAD_ARGUMENT;
    for (int64_t s = 0; s < call->n_sets; ++s)
        if (call->random[s] == 0) return SLIMSVM_BAD_ARGUMENT;
    if (call->real_size == 4)
        ascend_dense<float>(*call);
    else
        ascend_dense<double>(*call);
    return SLIMSVM_OK;
}

int32_t ascend_sparse(struct slimsvm_ascend_sparse_call* call) {
    if (call->random == 0 || !is_right(*call, call->n_values + call->n)) return SLIMSVM_BAD_ARGUMENT;
    if (call->real_size == 4)
        ascend_csr<float>(*call);
    else
        ascend_csr<double>(*call);
    return SLIMSVM_OK;
}

}  // namespace slimsvm::SLIMSVM_ISA
