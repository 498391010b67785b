// Products of many rows with a few columns, and with each other.
#include "simd/products.h"

#include <string.h>

#include "simd/reduce.h"
#include "support/call.h"
#include "threads/share.h"

namespace slimsvm::SLIMSVM_ISA {

namespace {

constexpr int64_t SUM_ROWS = 512;     // rows that `multiply_transposed` sums over at a time
constexpr int64_t SUB_ROWS = 32;      // rows that it skips where all their coefficients are 0
constexpr int64_t ROUND_TILES = 64;   // of so many rows, whose sums are kept until they are added in order
constexpr int64_t SQUARE_ROWS = 256;  // rows that `add_squares` sums over in the working type
constexpr int64_t SQUARE_COLUMNS = 16 * ROWS, SQUARE_PANELS = 4;  // columns of left, panels of right of one task

// Columns first, ..., first + PANEL - 1 of a matrix of k columns, each row times its weight, row after row; zeros
// beyond the last column.
template <class T>
inline void pack_panel(const T* matrix, int64_t stride, int64_t n, int64_t first, int64_t k, const T* weights,
                       T* panel) {
    const int64_t width = least(int64_t(PANEL<T>), k - first);
    for (int64_t i = 0; i < n; ++i, panel += PANEL<T>) {
        const T* row = matrix + i * stride + first;
        const T weight = weights ? weights[i] : T(1);
        for (int64_t j = 0; j < width; ++j) panel[j] = weight * row[j];
        for (int64_t j = width; j < PANEL<T>; ++j) panel[j] = T(0);
    }
}

template <class T>
int32_t multiply_rows_of(struct slimsvm_multiply_rows_call& call) {
    const int64_t k = call.k, r = call.r, n_panels = divide_up(k, PANEL<T>);
    const int64_t bytes = n_panels * PANEL<T> * r * int64_t(sizeof(T)) + ALIGNMENT;
    if (call.n_workspace < bytes) return needs_workspace(call, bytes);
    const T *values = static_cast<const T*>(call.values), *right = static_cast<const T*>(call.right);
    T *panels = aligned<T>(call.workspace), *out = static_cast<T*>(call.out);
    Team team(call.n_threads, call.microseconds);
    share(team, n_panels, [&](int64_t lo, int64_t hi, int64_t) {
        for (int64_t q = lo; q < hi; ++q)
            pack_panel<T>(right, k, r, q * PANEL<T>, k, nullptr, panels + q * PANEL<T> * r);
    });
    share(team, divide_up(call.n, ROWS_PER_TILE), [&](int64_t lo, int64_t hi, int64_t) {
        for (int64_t tile = lo; tile < hi; ++tile) {
            const int64_t start = tile * ROWS_PER_TILE, size = least(ROWS_PER_TILE, call.n - start);
            for (int64_t first = 0; first < k; first += PANEL<T>) {
                const int64_t width = least(int64_t(PANEL<T>), k - first);
                const int64_t depth = call.is_upper ? least(r, first + width) : r;
                multiply<T>(size, width, depth, values + start * call.stride, call.stride, 1, panels + first * r,
                            PANEL<T>, out + start * call.out_stride + first, call.out_stride, false);
            }
        }
    });
    return SLIMSVM_OK;
}

// Columns first, ..., first + size - 1 of a matrix, ROWS of them side by side, row after row; zeros beyond the last.
template <class T>
inline void pack_columns(const T* matrix, int64_t stride, int64_t n, int64_t first, int64_t size, T* groups) {
    for (int64_t j = 0; j < size; j += ROWS) {
        const int64_t width = least(int64_t(ROWS), size - j);
        for (int64_t i = 0; i < n; ++i, groups += ROWS) {
            const T* row = matrix + i * stride + first + j;
            if (width == ROWS)
                for (int r = 0; r < ROWS; ++r) groups[r] = row[r];
            else
                for (int r = 0; r < ROWS; ++r) groups[r] = r < width ? row[r] : T(0);
        }
    }
}

// The tasks of `add_squares`: some columns of left times some panels of right each.
template <class T>
struct Squares {
    static constexpr int64_t WIDTH = SQUARE_PANELS * PANEL<T>;  // columns of right of one task

    const struct slimsvm_add_squares_call& call;

    // Columns of left that the columns of right before `end` are multiplied by.
    int64_t n_columns(int64_t end) const { return call.is_upper ? least(call.p, end) : call.p; }
    int64_t n_blocks(int64_t block) const { return divide_up(n_columns((block + 1) * WIDTH), SQUARE_COLUMNS); }
    int64_t n_tasks() const {
        int64_t total = 0;
        for (int64_t block = 0; block < divide_up(call.q, WIDTH); ++block) total += n_blocks(block);
        return total;
    }
    static int64_t bytes() {
        const int64_t packed = SQUARE_ROWS * (SQUARE_COLUMNS + PANEL<T>)*int64_t(sizeof(T));
        return SQUARE_COLUMNS * WIDTH * 8 + packed + ALIGNMENT;
    }
    // The task `number` in the order of right's columns.
    void run(int64_t number, uint8_t* workspace) const {
        int64_t block = 0;
        for (; number >= n_blocks(block); ++block) number -= n_blocks(block);
        const int64_t first = block * WIDTH, j = number * SQUARE_COLUMNS, last = least(call.q, first + WIDTH);
        const T *left = static_cast<const T*>(call.left), *right = static_cast<const T*>(call.right);
        const T* weights = static_cast<const T*>(call.weights);
        double* total = aligned<double>(workspace);
        T *groups = reinterpret_cast<T*>(total + SQUARE_COLUMNS * WIDTH),
          *panel = groups + SQUARE_ROWS * SQUARE_COLUMNS;
        memset(total, 0, size_t(SQUARE_COLUMNS * WIDTH) * 8);
        for (int64_t at = 0; at < call.n; at += SQUARE_ROWS) {
            const int64_t n = least(SQUARE_ROWS, call.n - at), most_columns = n_columns(last) - j;
            const T* part = left + at * call.left_stride;
            pack_columns<T>(part, call.left_stride, n, j, least(SQUARE_COLUMNS, most_columns), groups);
            part = right + at * call.right_stride;
            for (int64_t q = first; q < last; q += PANEL<T>) {
                const int64_t size = least(SQUARE_COLUMNS, n_columns(q + PANEL<T>) - j);
                if (size <= 0) continue;
                pack_panel<T>(part, call.right_stride, n, q, call.q, weights + at, panel);
                for (int64_t i = 0; i < size; i += ROWS)
                    multiply<T>(ROWS, PANEL<T>, n, groups + i * n, 1, ROWS, panel, PANEL<T>,
                                total + i * WIDTH + q - first, WIDTH, true);
            }
        }
        const int64_t size = least(SQUARE_COLUMNS, n_columns(last) - j);
        for (int64_t i = 0; i < size; ++i)
            for (int64_t c = 0; c < last - first; ++c)
                call.out[(j + i) * call.out_stride + first + c] += total[i * WIDTH + c];
    }
};

template <class T>
int32_t add_squares_of(struct slimsvm_add_squares_call& call) {
    const Squares<T> squares = {call};
    const int64_t bytes = Squares<T>::bytes();
    if (call.n_workspace < bytes * call.n_threads) return needs_workspace(call, bytes * call.n_threads);
    Team team(call.n_threads, call.microseconds);
    share(team, squares.n_tasks(), [&](int64_t lo, int64_t hi, int64_t worker) {
        for (int64_t number = lo; number < hi; ++number) squares.run(number, call.workspace + worker * bytes);
    });
    return SLIMSVM_OK;
}

template <class T>
int32_t multiply_wide_of(struct slimsvm_multiply_wide_call& call) {
    const int64_t k = call.k, m = call.m, bytes = k * m * 8 + ALIGNMENT;
    if (call.n_workspace < bytes) return needs_workspace(call, bytes);
    const T* values = static_cast<const T*>(call.values);
    double* turned = aligned<double>(call.workspace);
    for (int64_t j = 0; j < k; ++j)
        for (int64_t c = 0; c < m; ++c) turned[c * k + j] = call.coef[j * m + c];
    Team team(call.n_threads, call.microseconds);
    share(team, divide_up(call.n, SUB_ROWS), [&](int64_t lo, int64_t hi, int64_t) {
        for (int64_t tile = lo; tile < hi; ++tile) {
            const int64_t start = tile * SUB_ROWS, size = least(SUB_ROWS, call.n - start);
            const T* rows = values + start * call.stride;
            if (m == 1)  // row after row: the numbers come from memory
                for (int64_t i = 0; i < size; ++i) call.out[start + i] = dot(rows + i * call.stride, turned, k);
            else
                dots<double>(size, m, k, rows, call.stride, turned, k, call.out + start * m, m);
        }
    });
    return SLIMSVM_OK;
}

// total[j] += the sum over the rows first, ..., last - 1 of values[i, j] coef[i]; rows whose coefficient is 0 cost
// nothing, and of the others four are met for each time that a total is read and written.
template <class T>
inline void add_chosen_rows(const T* values, int64_t stride, const double* coef, int64_t first, int64_t last, int64_t k,
                            double* total) {
    int64_t chosen[SUM_ROWS], n = 0;
    for (int64_t i = first; i < last; ++i) {
        chosen[n] = i;
        n += coef[i] != 0.0;
    }
    for (int64_t s = 0; s + 4 <= n; s += 4) {
        const T *a = values + chosen[s] * stride, *b = values + chosen[s + 1] * stride;
        const T *c = values + chosen[s + 2] * stride, *d = values + chosen[s + 3] * stride;
        const double x = coef[chosen[s]], y = coef[chosen[s + 1]], z = coef[chosen[s + 2]], w = coef[chosen[s + 3]];
        for (int64_t j = 0; j < k; ++j)
            total[j] += (x * double(a[j]) + y * double(b[j])) + (z * double(c[j]) + w * double(d[j]));
    }
    for (int64_t s = n / 4 * 4; s < n; ++s) {
        const T* a = values + chosen[s] * stride;
        const double x = coef[chosen[s]];
        for (int64_t j = 0; j < k; ++j) total[j] += x * double(a[j]);
    }
}

// The same for m outputs, total (m, k): blocks of rows are left out where all their coefficients are 0.
template <class T>
inline void add_blocks(const T* values, int64_t stride, const double* coef, int64_t first, int64_t last, int64_t k,
                       int64_t m, double* total) {
    for (int64_t start = first; start < last; start += SUB_ROWS) {
        const int64_t size = least(SUB_ROWS, last - start);
        bool is_any = false;
        for (int64_t i = start * m; i < (start + size) * m; ++i) is_any |= coef[i] != 0.0;
        if (is_any)
            multiply<double>(m, k, size, coef + start * m, 1, m, values + start * stride, stride, total, k, true);
    }
}

template <class T>
int32_t multiply_transposed_of(struct slimsvm_multiply_transposed_call& call) {
    const int64_t k = call.k, m = call.m, n_tiles = divide_up(call.n, SUM_ROWS), round = least(n_tiles, ROUND_TILES);
    const int64_t bytes = (round + 1) * k * m * 8 + ALIGNMENT;
    if (call.n_workspace < bytes) return needs_workspace(call, bytes);
    const T* values = static_cast<const T*>(call.values);
    double *turned = aligned<double>(call.workspace), *sums = turned + k * m;
    for (int64_t j = 0; j < k; ++j)
        for (int64_t c = 0; c < m; ++c) turned[c * k + j] = call.out[j * m + c];
    Team team(call.n_threads, call.microseconds);
    for (int64_t begin = 0; begin < n_tiles; begin += round) {
        const int64_t end = least(n_tiles, begin + round);
        share(team, end - begin, [&](int64_t lo, int64_t hi, int64_t) {
            for (int64_t t = lo; t < hi; ++t) {
                const int64_t first = (begin + t) * SUM_ROWS, last = least(call.n, first + SUM_ROWS);
                double* total = sums + t * k * m;
                memset(total, 0, size_t(k * m) * 8);
                if (m == 1)
                    add_chosen_rows<T>(values, call.stride, call.coef, first, last, k, total);
                else
                    add_blocks<T>(values, call.stride, call.coef, first, last, k, m, total);
            }
        });
        for (int64_t t = 0; t < end - begin; ++t)
            for (int64_t i = 0; i < k * m; ++i) turned[i] += sums[t * k * m + i];
    }
    for (int64_t j = 0; j < k; ++j)
        for (int64_t c = 0; c < m; ++c) call.out[j * m + c] = turned[c * k + j];
    return SLIMSVM_OK;
}

}  // namespace

int32_t multiply_rows(struct slimsvm_multiply_rows_call* call) {
    if (call->n_threads < 1) return SLIMSVM_BAD_ARGUMENT;
    return call->real_size == 4 ? multiply_rows_of<float>(*call) : multiply_rows_of<double>(*call);
}

int32_t add_squares(struct slimsvm_add_squares_call* call) {
    if (call->n_threads < 1) return SLIMSVM_BAD_ARGUMENT;
    return call->real_size == 4 ? add_squares_of<float>(*call) : add_squares_of<double>(*call);
}

int32_t multiply_wide(struct slimsvm_multiply_wide_call* call) {
    if (call->n_threads < 1) return SLIMSVM_BAD_ARGUMENT;
    return call->real_size == 4 ? multiply_wide_of<float>(*call) : multiply_wide_of<double>(*call);
}

int32_t multiply_transposed(struct slimsvm_multiply_transposed_call* call) {
    if (call->n_threads < 1) return SLIMSVM_BAD_ARGUMENT;
    return call->real_size == 4 ? multiply_transposed_of<float>(*call) : multiply_transposed_of<double>(*call);
}

}  // namespace slimsvm::SLIMSVM_ISA
