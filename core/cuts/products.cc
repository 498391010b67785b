// The saved products A[slot, i m + c] = <g_j, phi(x_i)>_c of the live cuts: combining them, and reading G off them.
#include "simd/reduce.h"
#include "support/call.h"
#include "threads/share.h"

namespace slimsvm::SLIMSVM_ISA {

namespace {

// Numbers of a tile, whose sums stay in the nearest cache while the cuts go by.
constexpr int64_t TILE = 2048;
// Cuts added up at a time.
constexpr int TOGETHER = 4;

// total[i] += sum_t weight[t] rows[t][i] of the first n.
template <class T>
void add_rows_of_cuts(const T* const (&rows)[TOGETHER], const double (&weight)[TOGETHER], double* __restrict total,
                      int64_t n) {
    constexpr int lanes = LANES<double>;
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        Vec<double> sum = load<double>(total + i);
        for (int t = 0; t < TOGETHER; ++t) sum += weight[t] * load_wide(rows[t] + i);
        store<double>(total + i, sum);
    }
    for (; i < n; ++i)
        for (int t = 0; t < TOGETHER; ++t) total[i] += weight[t] * double(rows[t][i]);
}

template <class T>
void combine_tile(const struct slimsvm_combine_products_call& call, int64_t start, int64_t size) {
    const T* products = static_cast<const T*>(call.products) + call.first + start;
    double total[TILE] = {};
    const T* rows[TOGETHER];
    double weight[TOGETHER];
    int waiting = 0;
    for (int64_t j = 0; j < call.k; ++j) {
        if (call.weights[j] != 0.0) {
            rows[waiting] = products + call.slots[j] * call.n_numbers;
            weight[waiting++] = call.weights[j];
        }
        if (waiting == TOGETHER) {
            add_rows_of_cuts<T>(rows, weight, total, size);
            waiting = 0;
        }
    }
    for (int t = 0; t < waiting; ++t) add_scaled(weight[t], rows[t], total, size);
    for (int64_t i = 0; i < size; ++i) call.out[start + i] = total[i];
}

template <class T>
void combine(const struct slimsvm_combine_products_call& call) {
    Team team(call.n_threads, call.microseconds);
    share(team, divide_up(call.n, TILE), [&](int64_t lo, int64_t hi, int64_t) {
        for (int64_t tile = lo; tile < hi; ++tile)
            combine_tile<T>(call, tile * TILE, least(TILE, call.n - tile * TILE));
    });
}

// sum_u coef[u] products[rows[u]], by sums for the rows in turn.
template <class T>
double product_of_one_output(const int64_t* rows, const double* coef, int64_t n_rows, const T* products) {
    constexpr int in_turn = 8;
    double sums[in_turn] = {};
    int64_t u = 0;
    for (; u + in_turn <= n_rows; u += in_turn)
        for (int q = 0; q < in_turn; ++q) sums[q] += coef[u + q] * double(products[rows[u + q]]);
    for (; u < n_rows; ++u) sums[0] += coef[u] * double(products[rows[u]]);
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// sum_u,c coef[u, c] products[rows[u], c], by vectors of outputs, and the last outputs alone, for two rows in turn.
template <class T>
double product_of_outputs(const int64_t* rows, const double* coef, int64_t n_rows, int64_t m, const T* products) {
    constexpr int lanes = LANES<double>;
    Vec<double> vectors[2] = {};
    double sums[2] = {};
    for (int64_t u = 0; u < n_rows; ++u) {
        const T* row = products + rows[u] * m;
        const double* factor = coef + u * m;
        int64_t c = 0;
        for (; c + lanes <= m; c += lanes) vectors[u % 2] += load<double>(factor + c) * load_wide(row + c);
        for (; c < m; ++c) sums[u % 2] += factor[c] * double(row[c]);
    }
    return total(vectors[0] + vectors[1]) + (sums[0] + sums[1]);
}

template <class T>
void read_gram_row(const struct slimsvm_gram_row_call& call) {
    const T* products = static_cast<const T*>(call.products);
    Team team(call.n_threads, call.microseconds);
    share(team, call.k, [&](int64_t lo, int64_t hi, int64_t) {
        for (int64_t j = lo; j < hi; ++j) {
            const T* cut = products + call.slots[j] * call.n * call.m;
            call.out[j] = call.m == 1 ? product_of_one_output<T>(call.rows, call.coef, call.n_rows, cut)
                                      : product_of_outputs<T>(call.rows, call.coef, call.n_rows, call.m, cut);
        }
    });
}

}  // namespace

int32_t combine_products(struct slimsvm_combine_products_call* call) {
    if (call->n_threads < 1 || call->first < 0 || call->first > call->n_numbers - call->n) return SLIMSVM_BAD_ARGUMENT;
    call->real_size == 4 ? combine<float>(*call) : combine<double>(*call);
    return SLIMSVM_OK;
}

int32_t gram_row(struct slimsvm_gram_row_call* call) {
    if (call->n_threads < 1) return SLIMSVM_BAD_ARGUMENT;
    call->real_size == 4 ? read_gram_row<float>(*call) : read_gram_row<double>(*call);
    return SLIMSVM_OK;
}

}  // namespace slimsvm::SLIMSVM_ISA
