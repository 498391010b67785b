// Block-coordinate ascent on a structured dual: steps on one example at a time.
//
// With weights alpha_k >= 0 of the planes (c_k, g_k) of example e, sum_k alpha_k <= C of e, and
// w = sum_e sum_k alpha_k g_k, the part of the dual that one example sees is, in a step d of its alpha,
//
//     s'd - 1/2 d'H d,    s_k = c_k - <w, g_k>,    H_kl = <g_k, g_l>.
#include <string.h>

#include "cuts/planes.h"
#include "threads/share.h"

namespace slimsvm::SLIMSVM_ISA {

namespace {

constexpr int64_t MAX_STEPS = 200;
// Weights below this share of an example's C are none.
constexpr double NOTHING = 1e-10;

// The greatest numbers of planes and of rows with a plane that one example has.
struct Sizes {
    int64_t planes = 0, rows = 0;
};

// One example's planes with the rows they lie on, and memory for a step. The zeros stay zero between two steps.
class Block {
   public:
    Block(const Planes& planes, const struct slimsvm_blocks& blocks, int64_t m, int64_t n_plain)
        : planes(planes), store(planes.store), blocks(blocks), m(m), n_plain(n_plain) {}

    bool measure(int64_t e);
    int64_t bytes() const {
        const int64_t most_planes = sizes.planes, most_rows = sizes.rows;
        return (4 * most_planes + most_planes * most_planes + (1 + most_rows + 3 * m) * most_rows + n_plain) *
                   int64_t(sizeof(double)) +
               ALIGNMENT;
    }
    void carve(uint8_t* workspace);
    void take(int64_t e);
    template <class Score>
    bool is_open(const Score& score, const double* v, double tol);
    void improve(bool is_corrective, double tol);
    void commit(double* v);

    const Planes& planes;
    const struct slimsvm_planes& store;
    const struct slimsvm_blocks& blocks;
    const int64_t m, n_plain;
    int64_t t = 0, n_rows = 0, n_entries = 0, start = 0, length = 0;
    double C = 0.0;
    int64_t *own = nullptr, *numbers = nullptr;  // rows, counted from the example's first; planes
    double* K = nullptr;                         // (n_rows, n_rows) products of the rows
    double* D = nullptr;                         // (n_rows, m) what a step adds to the coefficients; zeros
    double* scores = nullptr;                    // (n_rows, m)

   private:
    Sizes sizes;
    double *s = nullptr, *a = nullptr, *d = nullptr,
           *H = nullptr;                           // slopes, alpha, a direction, products of the planes
    double *products = nullptr, *plain = nullptr;  // (m, n_rows) and (n_plain) of one plane with rows; zeros

    int64_t count_rows(int64_t k, int64_t known, bool writes);
    void multiply_planes();
    double product(int64_t k) const;
    void step_to_corner();
    void solve(double tol);
};

// Numbers the rows of plane k that have no number yet, from `known` on; returns how many have one.
int64_t Block::count_rows(int64_t k, int64_t known, bool writes) {
    for (int64_t q = store.where[k]; q < store.where[k + 1]; ++q) {
        const int64_t row = store.row[q];
        if (row < 0 || blocks.place[row] >= 0) continue;
        if (writes) own[known] = row;
        blocks.place[row] = known++;
    }
    return known;
}

// Makes the sizes large enough for example e; false if what is there is no block of planes.
bool Block::measure(int64_t e) {
    const int64_t rows = blocks.starts[e + 1] - blocks.starts[e];
    if (rows > blocks.n_longest) return false;
    for (int64_t i = 0; i < rows; ++i) blocks.place[i] = -1;
    int64_t count = 0, known = 0;
    bool fits = true;
    const auto visit = [&](int64_t k) {
        ++count;
        fits = fits && planes.fits(k, rows, m, n_plain);
        if (fits) known = count_rows(k, known, false);
    };
    if (!planes.each(e, visit) || !fits) return false;
    sizes.planes = most(sizes.planes, count);
    sizes.rows = most(sizes.rows, known);
    return true;
}

void Block::carve(uint8_t* workspace) {
    const int64_t most_planes = sizes.planes, most_rows = sizes.rows;
    numbers = aligned<int64_t>(workspace);
    own = numbers + most_planes;
    s = reinterpret_cast<double*>(own + most_rows);
    a = s + most_planes;
    d = a + most_planes;
    H = d + most_planes;
    K = H + most_planes * most_planes;
    scores = K + most_rows * most_rows;
    D = scores + most_rows * m;
    products = D + most_rows * m;
    plain = products + most_rows * m;
    memset(D, 0, size_t(2 * most_rows * m + n_plain) * sizeof(double));
}

// Becomes the block of example e, which was measured.
void Block::take(int64_t e) {
    start = blocks.starts[e];
    length = blocks.starts[e + 1] - start;
    C = blocks.C_of_example[e];
    t = n_rows = n_entries = 0;
    for (int64_t i = 0; i < length; ++i) blocks.place[i] = -1;
    planes.each(e, [&](int64_t k) {
        numbers[t++] = k;
        n_entries += store.where[k + 1] - store.where[k];
        n_rows = count_rows(k, n_rows, true);
    });
}

// Reads s and alpha of the planes, given the score of a row (by its place in `own`) and output. Whether the example's
// optimality is violated by more than tol: the greatest slope less the smallest of a plane, or of none, in use.
template <class Score>
bool Block::is_open(const Score& score, const double* v, double tol) {
    double best = 0.0, worst = HUGE_VAL, rest = C;
    for (int64_t j = 0; j < t; ++j) {
        const int64_t k = numbers[j];
        s[j] = store.constant[k];
        a[j] = store.alpha[k];
        for (int64_t q = store.where[k]; q < store.where[k + 1]; ++q) {
            const int64_t row = store.row[q], column = store.column[q];
            s[j] -= store.value[q] * (row < 0 ? v[column] : score(blocks.place[row], column));
        }
        best = most(best, s[j]);
        rest -= a[j];
        if (a[j] > 0.0) worst = least(worst, s[j]);
    }
    return best - (rest > NOTHING * C ? least(worst, 0.0) : worst) > tol;
}

// <g_k, .> of the plane whose products with rows and plain parameters are there.
double Block::product(int64_t k) const {
    double total = 0.0;
    for (int64_t q = store.where[k]; q < store.where[k + 1]; ++q) {
        const int64_t row = store.row[q], column = store.column[q];
        total += store.value[q] * (row < 0 ? plain[column] : products[column * n_rows + blocks.place[row]]);
    }
    return total;
}

// H of the planes, from K.
void Block::multiply_planes() {
    for (int64_t j = 0; j < t; ++j) {
        const int64_t lo = store.where[numbers[j]], hi = store.where[numbers[j] + 1];
        for (int64_t q = lo; q < hi; ++q) {
            const int64_t row = store.row[q], column = store.column[q];
            if (row < 0) {
                plain[column] = store.value[q];
                continue;
            }
            const double* line = K + blocks.place[row] * n_rows;
            double* sums = products + column * n_rows;
            for (int64_t i = 0; i < n_rows; ++i) sums[i] += store.value[q] * line[i];
        }
        for (int64_t other = 0; other <= j; ++other) H[j * t + other] = H[other * t + j] = product(numbers[other]);
        for (int64_t q = lo; q < hi; ++q) {
            const int64_t column = store.column[q];
            if (store.row[q] < 0)
                plain[column] = 0.0;
            else
                memset(products + column * n_rows, 0, size_t(n_rows) * sizeof(double));
        }
    }
}

// Line search from a to the corner of the greatest slope (Lacoste-Julien et al. 2013, Algorithm 4).
void Block::step_to_corner() {
    int64_t best = -1;
    for (int64_t k = 0; k < t; ++k)
        if (s[k] > (best < 0 ? 0.0 : s[best])) best = k;
    for (int64_t k = 0; k < t; ++k) d[k] = (k == best ? C : 0.0) - a[k];
    double rise = 0.0, curvature = 0.0;
    for (int64_t k = 0; k < t; ++k) {
        double Hd = 0.0;
        for (int64_t l = 0; l < t; ++l) Hd += H[k * t + l] * d[l];
        rise += d[k] * s[k];
        curvature += d[k] * Hd;
    }
    if (!(rise > 0.0)) return;
    const double step = rise >= curvature ? 1.0 : rise / curvature;
    for (int64_t k = 0; k < t; ++k) {
        a[k] += step * d[k];
        if (a[k] < NOTHING * C) a[k] = 0.0;
    }
}

// Steps from the plane in use of the smallest slope to that of the greatest, until they are within tol. `rest`, the
// part of the C without a plane, has the slope 0.
void Block::solve(double tol) {
    double rest = C;
    for (int64_t k = 0; k < t; ++k) rest -= a[k];
    for (int64_t steps = 0; steps < MAX_STEPS; ++steps) {
        int64_t up = -1, down = -1;
        double best = 0.0, worst = rest > NOTHING * C ? 0.0 : HUGE_VAL;
        for (int64_t k = 0; k < t; ++k) {
            if (s[k] > best) {
                up = k;
                best = s[k];
            }
            if (a[k] > 0.0 && s[k] < worst) {
                down = k;
                worst = s[k];
            }
        }
        if (best - worst <= tol) return;
        const double *rising = H + most(up, int64_t(0)) * t, *falling = H + most(down, int64_t(0)) * t;
        double curvature = 0.0;
        if (up >= 0) curvature += rising[up];
        if (down >= 0) curvature += falling[down] - (up >= 0 ? 2.0 * rising[down] : 0.0);
        const double room = down >= 0 ? a[down] : rest;
        const double step = curvature * room <= best - worst ? room : (best - worst) / curvature;
        for (int64_t k = 0; k < t; ++k) s[k] += step * ((down >= 0 ? falling[k] : 0.0) - (up >= 0 ? rising[k] : 0.0));
        (up >= 0 ? a[up] : rest) += step;
        double& lower = down >= 0 ? a[down] : rest;
        lower = step == room ? 0.0 : lower - step;
    }
}

// A better alpha into a; K is that of the rows.
void Block::improve(bool is_corrective, double tol) {
    multiply_planes();
    if (is_corrective)
        solve(tol);
    else
        step_to_corner();
}

// Takes the new alpha over, and into v and D.
void Block::commit(double* v) {
    for (int64_t j = 0; j < t; ++j) {
        const int64_t k = numbers[j];
        const double change = a[j] - store.alpha[k];
        store.alpha[k] = a[j];
        if (change == 0.0) continue;
        for (int64_t q = store.where[k]; q < store.where[k + 1]; ++q) {
            const int64_t row = store.row[q], column = store.column[q];
            (row < 0 ? v[column] : D[blocks.place[row] * m + column]) += change * store.value[q];
        }
    }
}

// What both kinds of steps ask of their arguments; makes the block large enough for the examples that are left.
template <class Call>
bool prepare(const Call& call, const Planes& planes, Block& block) {
    if (!planes.is_sound() || call.blocks->n_examples != call.planes->n_examples || call.at < 0) return false;
    for (int64_t j = call.at; j < call.n_order; ++j)
        if (!block.measure(call.order[j])) return false;
    return true;
}

template <class T>
int32_t step_by_kernel_of(struct slimsvm_step_by_kernel_call& call) {
    const struct slimsvm_blocks& blocks = *call.blocks;
    const Planes planes(*call.planes);
    Block block(planes, blocks, call.m, call.n_plain);
    if (!prepare(call, planes, block)) return SLIMSVM_BAD_ARGUMENT;
    for (int64_t j = call.at; j < call.n_order; ++j)
        if (blocks.starts[call.order[j] + 1] - blocks.starts[call.order[j]] > call.n - call.base[j])
            return SLIMSVM_BAD_ARGUMENT;
    if (call.n_workspace < block.bytes()) return needs_workspace(call, block.bytes());
    block.carve(call.workspace);
    const int64_t n = call.n, m = call.m;
    int64_t work = 0;
    for (; call.at < call.n_order && work < call.max_work; ++call.at) {
        block.take(call.order[call.at]);
        work += block.length + block.n_entries;
        const T* K = static_cast<const T*>(call.K) + call.base[call.at] * (n + 1);  // of the example's first row
        double *scores = call.scores + call.base[call.at], *coef = call.coef + call.base[call.at] * m;
        const auto score = [&](int64_t i, int64_t c) { return scores[c * n + block.own[i]]; };
        if (block.t == 0 || !block.is_open(score, call.plain, call.tol)) continue;
        for (int64_t i = 0; i < block.n_rows; ++i)
            for (int64_t j = 0; j < block.n_rows; ++j)
                block.K[i * block.n_rows + j] = double(K[block.own[i] * n + block.own[j]]) + call.constant;
        block.improve(call.is_corrective, call.tol);
        block.commit(call.plain);
        work += block.n_rows * block.n_rows + (block.t + block.n_rows) * block.n_entries;
        for (int64_t i = 0; i < block.n_rows; ++i) {
            const T* line = K - call.base[call.at] + block.own[i] * n;
            for (int64_t c = 0; c < m; ++c) {
                const double change = block.D[i * m + c];
                if (change == 0.0) continue;
                block.D[i * m + c] = 0.0;
                coef[block.own[i] * m + c] += change;
                for (int64_t other = 0; other < n; ++other)
                    call.scores[c * n + other] += change * (double(line[other]) + call.constant);
                work += n;
            }
        }
    }
    return SLIMSVM_OK;
}

// <x, z> of two sparse rows with increasing columns.
template <class Index>
double inner_product(const struct slimsvm_csr& rows, int64_t x, int64_t z) {
    const Index* columns = static_cast<const Index*>(rows.columns);
    const int64_t x_end = rows.indptr[x + 1], z_end = rows.indptr[z + 1];
    double total = 0.0;
    for (int64_t a = rows.indptr[x], b = rows.indptr[z]; a < x_end && b < z_end;) {
        const Index left = columns[a], right = columns[b];
        if (left == right) total += rows.values[a] * rows.values[b];
        a += left <= right;
        b += right <= left;
    }
    return total;
}

template <class Index>
void read_products(const struct slimsvm_step_by_weights_call& call, Block& block, int64_t e) {
    const int64_t r = block.n_rows;
    const double* gram = call.grams ? call.grams + call.gram_offsets[e] : nullptr;
    for (int64_t i = 0; i < r; ++i)
        for (int64_t j = 0; j <= i; ++j) {
            const int64_t x = block.own[i], z = block.own[j];
            const double value =
                gram ? gram[x * block.length + z] : inner_product<Index>(*call.rows, block.start + x, block.start + z);
            block.K[i * r + j] = block.K[j * r + i] = value + call.constant;
        }
}

// Scores of the block's rows by the weights; returns how many stored numbers the rows have.
template <class Index>
int64_t read_scores(const struct slimsvm_step_by_weights_call& call, Block& block) {
    const struct slimsvm_csr& rows = *call.rows;
    const Index* columns = static_cast<const Index*>(rows.columns);
    const int64_t m = call.m;
    int64_t n_stored = 0;
    for (int64_t i = 0; i < block.n_rows; ++i) {
        const int64_t row = block.start + block.own[i];
        double* __restrict scores = block.scores + i * m;
        for (int64_t c = 0; c < m; ++c) scores[c] = call.bias[c];
        for (int64_t q = rows.indptr[row]; q < rows.indptr[row + 1]; ++q) {
            const double* w = call.weights + int64_t(columns[q]) * m;
            for (int64_t c = 0; c < m; ++c) scores[c] += rows.values[q] * w[c];
        }
        n_stored += rows.indptr[row + 1] - rows.indptr[row];
    }
    return n_stored;
}

// Adds D, which becomes zero, to the weights.
template <class Index>
void add_to_weights(const struct slimsvm_step_by_weights_call& call, Block& block) {
    const struct slimsvm_csr& rows = *call.rows;
    const Index* columns = static_cast<const Index*>(rows.columns);
    const int64_t m = call.m;
    for (int64_t i = 0; i < block.n_rows; ++i) {
        const int64_t row = block.start + block.own[i];
        for (int64_t c = 0; c < m; ++c) {
            const double change = block.D[i * m + c];
            if (change == 0.0) continue;
            block.D[i * m + c] = 0.0;
            call.bias[c] += call.constant * change;
            for (int64_t q = rows.indptr[row]; q < rows.indptr[row + 1]; ++q)
                call.weights[int64_t(columns[q]) * m + c] += rows.values[q] * change;
        }
    }
}

template <class Index>
int32_t step_by_weights_of(struct slimsvm_step_by_weights_call& call) {
    const struct slimsvm_blocks& blocks = *call.blocks;
    const Planes planes(*call.planes);
    Block block(planes, blocks, call.m, call.n_plain);
    if (!call.grams != !call.gram_offsets || call.rows->n_rows != blocks.n_rows ||
        call.rows->n_columns != call.n_features || !prepare(call, planes, block))
        return SLIMSVM_BAD_ARGUMENT;
    for (int64_t j = call.at; call.grams && j < call.n_order; ++j) {
        const int64_t e = call.order[j], length = blocks.starts[e + 1] - blocks.starts[e];
        if (call.gram_offsets[e + 1] - call.gram_offsets[e] != length * length) return SLIMSVM_BAD_ARGUMENT;
    }
    if (call.n_workspace < block.bytes()) return needs_workspace(call, block.bytes());
    block.carve(call.workspace);
    int64_t work = 0;
    for (; call.at < call.n_order && work < call.max_work; ++call.at) {
        const int64_t e = call.order[call.at];
        block.take(e);
        work += block.length + block.n_entries;
        if (block.t == 0) continue;
        const int64_t n_stored = read_scores<Index>(call, block);
        const auto score = [&](int64_t i, int64_t c) { return block.scores[i * call.m + c]; };
        work += n_stored * call.m;
        if (!block.is_open(score, call.plain, call.tol)) continue;
        read_products<Index>(call, block, e);
        block.improve(call.is_corrective, call.tol);
        block.commit(call.plain);
        add_to_weights<Index>(call, block);
        work += n_stored * (call.m + block.n_rows) + (block.t + block.n_rows) * block.n_entries;
    }
    return SLIMSVM_OK;
}

// Products of the rows lo, ..., hi - 1 with the rows of their example up to themselves.
template <class Index>
void multiply_examples(const struct slimsvm_multiply_examples_call& call, int64_t lo, int64_t hi) {
    const int64_t* starts = call.blocks->starts;
    int64_t e = 0;
    for (int64_t end = call.blocks->n_examples - 1; e < end;) {  // the last example that begins at lo or before
        const int64_t middle = e + (end - e + 1) / 2;
        (starts[middle] <= lo ? e : end) = starts[middle] <= lo ? middle : middle - 1;
    }
    for (int64_t i = lo; i < hi; ++i) {
        while (starts[e + 1] <= i) ++e;
        const int64_t start = starts[e], length = starts[e + 1] - start;
        double* gram = call.grams + call.gram_offsets[e];
        for (int64_t j = start; j <= i; ++j)
            gram[(i - start) * length + j - start] = gram[(j - start) * length + i - start] =
                inner_product<Index>(*call.rows, i, j);
    }
}

}  // namespace

int32_t step_by_kernel(struct slimsvm_step_by_kernel_call* call) {
    return call->real_size == 4 ? step_by_kernel_of<float>(*call) : step_by_kernel_of<double>(*call);
}

int32_t step_by_weights(struct slimsvm_step_by_weights_call* call) {
    return call->rows->whole_size == 8 ? step_by_weights_of<int64_t>(*call) : step_by_weights_of<int32_t>(*call);
}

int32_t multiply_examples(struct slimsvm_multiply_examples_call* call) {
    const struct slimsvm_blocks& blocks = *call->blocks;
    if (call->n_threads < 1 || call->n < 0 || call->first < blocks.starts[0] ||
        call->first > blocks.starts[blocks.n_examples] - call->n || call->rows->n_rows != blocks.n_rows)
        return SLIMSVM_BAD_ARGUMENT;
    for (int64_t e = 0; e < blocks.n_examples; ++e) {
        const int64_t length = blocks.starts[e + 1] - blocks.starts[e];
        if (length > blocks.n_longest || call->gram_offsets[e + 1] - call->gram_offsets[e] != length * length)
            return SLIMSVM_BAD_ARGUMENT;
    }
    Team team(call->n_threads, call->microseconds);
    share(team, call->n, [&](int64_t lo, int64_t hi, int64_t) {
        if (call->rows->whole_size == 8)
            multiply_examples<int64_t>(*call, call->first + lo, call->first + hi);
        else
            multiply_examples<int32_t>(*call, call->first + lo, call->first + hi);
    });
    return SLIMSVM_OK;
}

}  // namespace slimsvm::SLIMSVM_ISA
