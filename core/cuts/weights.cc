// Products of sparse rows with explicit weights W of a linear machine, whose f-th row belongs to feature f:
//
//     out[i] = bias + sum_f x[i, f] W[f]
//
// One thread adds up a row, in an order that depends on the row alone: its bits depend neither on the tiles nor on the
// rows beside it.
#include "simd/parts.h"
#include "support/call.h"
#include "threads/share.h"

namespace slimsvm::SLIMSVM_ISA {

namespace {

constexpr int64_t TILE = 64;    // rows
constexpr int64_t STORED = 64;  // numbers of a row whose weights stay in the nearest cache while the outputs go by

// Some stored numbers of a row, with the weights of their columns.
struct Stored {
    int64_t n;
    double values[STORED];
    const double* weights[STORED];
};

// out[c] += the products, for WIDTH vectors of outputs from c on, the last one `last` numbers wide unless all are
// WHOLE.
template <int WIDTH, bool WHOLE>
SLIMSVM_INLINE void add_vectors(const Stored& x, int64_t c, int64_t last, double* out) {
    constexpr int lanes = LANES<double>;
    Vec<double> sums[WIDTH] = {};
    for (int64_t t = 0; t < x.n; ++t) {
        const double* w = x.weights[t] + c;
        for (int v = 0; v < WIDTH; ++v)
            sums[v] += x.values[t] *
                       (WHOLE || v + 1 < WIDTH ? load<double>(w + v * lanes) : load_part<double>(w + v * lanes, last));
    }
    for (int v = 0; v < WIDTH; ++v) {
        double* place = out + c + v * lanes;
        if (WHOLE || v + 1 < WIDTH)
            store<double>(place, load<double>(place) + sums[v]);
        else
            store_part<double>(place, load_part<double>(place, last) + sums[v], last);
    }
}

// The same for one output.
SLIMSVM_INLINE void add_single(const Stored& x, double* out) {
    double sums[4] = {};
    int64_t t = 0;
    for (; t + 4 <= x.n; t += 4)
        for (int q = 0; q < 4; ++q) sums[q] += x.values[t + q] * x.weights[t + q][0];
    for (; t < x.n; ++t) sums[0] += x.values[t] * x.weights[t][0];
    *out += (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// out[c] += the products for all m outputs.
void add_stored(const Stored& x, int64_t m, double* out) {
    constexpr int lanes = LANES<double>;
    if (m == 1) return add_single(x, out);
    int64_t c = 0;
    for (; c + 4 * lanes <= m; c += 4 * lanes) add_vectors<4, true>(x, c, 0, out);
    const int64_t rest = m - c, last = rest % lanes;
    if (rest == 0) return;
    if (rest == lanes) return add_vectors<1, true>(x, c, 0, out);
    if (rest == 2 * lanes) return add_vectors<2, true>(x, c, 0, out);
    if (rest == 3 * lanes) return add_vectors<3, true>(x, c, 0, out);
    if (rest < lanes) return add_vectors<1, false>(x, c, last, out);
    if (rest < 2 * lanes) return add_vectors<2, false>(x, c, last, out);
    if (rest < 3 * lanes) return add_vectors<3, false>(x, c, last, out);
    add_vectors<4, false>(x, c, last, out);
}

// out += the products of row i.
template <class Index>
void add_row(const struct slimsvm_sparse_product_call& call, int64_t i, double* out) {
    const struct slimsvm_csr& csr = *call.rows;
    const Index* columns = static_cast<const Index*>(csr.columns);
    Stored x;
    for (int64_t lo = csr.indptr[i]; lo < csr.indptr[i + 1]; lo += STORED) {
        const int64_t hi = least(csr.indptr[i + 1], lo + STORED);
        x.n = 0;
        for (int64_t at = lo; at < hi; ++at) {
            x.values[x.n] = csr.values[at];
            x.weights[x.n] = call.weights + int64_t(columns[at]) * call.m;
            __builtin_prefetch(x.weights[x.n]);
            x.n += !call.used || call.used[columns[at]];
        }
        add_stored(x, call.m, out);
    }
}

template <class Index>
void multiply_rows_of(const struct slimsvm_sparse_product_call& call) {
    Team team(call.n_threads, call.microseconds);
    share(team, divide_up(call.n, TILE), [&](int64_t lo, int64_t hi, int64_t) {
        for (int64_t k = lo * TILE; k < least(call.n, hi * TILE); ++k) {
            double* out = call.out + k * call.m;
            for (int64_t c = 0; c < call.m; ++c) out[c] = call.bias ? call.bias[c] : 0.0;
            add_row<Index>(call, call.index ? call.index[k] : call.first + k, out);
        }
    });
}

}  // namespace

int32_t sparse_product(struct slimsvm_sparse_product_call* call) {
    const bool is_chosen = call->index != nullptr;
    if (call->n_threads < 1 || call->n_features != call->rows->n_columns || (is_chosen && call->n_index != call->n) ||
        (!is_chosen && (call->first < 0 || call->first > call->rows->n_rows - call->n)))
        return SLIMSVM_BAD_ARGUMENT;
    call->rows->whole_size == 8 ? multiply_rows_of<int64_t>(*call) : multiply_rows_of<int32_t>(*call);
    return SLIMSVM_OK;
}

}  // namespace slimsvm::SLIMSVM_ISA
