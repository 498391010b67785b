// How far rows are from the span of others in the kernel's space: what their scores move by where they are left out.
//
// A = L L' is the span's kernel matrix. Rows of A, of the identity and of kernel values of other rows become rows of L,
// of its inverse and of L^-1 K by the same elimination, a panel of them at a time. L has zeros from its diagonal on, so
// that whole vectors may be read there; the diagonal stands apart.
#include "simd/reduce.h"
#include "support/call.h"
#include "support/room.h"

namespace slimsvm::SLIMSVM_ISA {

namespace {

constexpr int GROUP = 8;  // rows that registers eliminate at a time
// Rows of a panel, and rows of L that eliminate all of it before others do: with both in the cache, L is read from
// memory once for a panel, not once for a group.
constexpr int PANEL = 32, BLOCK = 16;
// Added to the diagonal of A, as a share of its largest entry: copies of a row make a kernel matrix singular.
constexpr double RIDGE = 1e-10, TINY = 1e-300;

// A set's rows: those of the span, m, then the others. Numbers are places in the call's arrays.
struct Span {
    int64_t m = 0, n = 0, stride = 0;
    int64_t* rows = nullptr;    // (n)
    double* own = nullptr;      // (n) kernel values of rows with themselves, centred
    double* means = nullptr;    // (n) of their kernel values with the span, if these are centred
    double lift = 0.0;          // added to centred values
    double* L = nullptr;        // (m, stride) without its diagonal
    double* inverse = nullptr;  // (m) of the diagonal
    double* border = nullptr;   // (stride) L^-1 1, if there is one
    double* x = nullptr;        // (PANEL, stride) rows that are eliminated
};

Span span_of(Room& room, int64_t m, int64_t n) {
    Span span;
    span.m = m;
    span.n = n;
    span.stride = divide_up(m, LANES<double>) * LANES<double>;
    span.rows = room.take<int64_t>(n);
    span.own = room.take<double>(n);
    span.means = room.take<double>(n);
    span.L = room.take<double>(m * span.stride);
    span.inverse = room.take<double>(m);
    span.border = room.take<double>(span.stride);
    span.x = room.take<double>(PANEL * span.stride);
    return span;
}

// The place j of L^-1 x, for some rows x, of sums up to the place `done`.
template <int ROWS>
SLIMSVM_INLINE void eliminate_place(const Span& span, double* x, int64_t j, int64_t done, Vec<double>* sums) {
    const double* L_row = span.L + j * span.stride;
    for (int64_t i = done; i < j; i += LANES<double>) {
        const Vec<double> values = load<double>(L_row + i);
        SLIMSVM_EACH (r, ROWS) sums[r] += values * load<double>(x + r * span.stride + i);
    }
    SLIMSVM_EACH (r, ROWS) {
        double& at = x[r * span.stride + j];
        at = (at - total(sums[r])) * span.inverse[j];
    }
}

// The places from..to - 1 of L^-1 x, for some rows x. Those before `zeros` are 0, others before `from` are done. Two
// rows of L go through x together.
template <int ROWS>
SLIMSVM_INLINE void eliminate_rows(const Span& span, double* x, int64_t zeros, int64_t from, int64_t to) {
    constexpr int64_t lanes = LANES<double>;
    int64_t j = from;
    for (; j + 2 <= to; j += 2) {
        const double *L_row = span.L + j * span.stride, *L_next = L_row + span.stride;
        Vec<double> sums[ROWS] = {}, next_sums[ROWS] = {};
        int64_t done = zeros / lanes * lanes;
        for (; done + lanes <= j; done += lanes) {
            const Vec<double> values = load<double>(L_row + done), next_values = load<double>(L_next + done);
            SLIMSVM_EACH (r, ROWS) {
                const Vec<double> of_x = load<double>(x + r * span.stride + done);
                sums[r] += values * of_x;
                next_sums[r] += next_values * of_x;
            }
        }
        eliminate_place<ROWS>(span, x, j, done, sums);
        eliminate_place<ROWS>(span, x, j + 1, done, next_sums);
    }
    Vec<double> sums[ROWS] = {};
    if (j < to) eliminate_place<ROWS>(span, x, j, zeros / lanes * lanes, sums);
}

void eliminate(const Span& span, double* x, int64_t n_rows, int64_t zeros, int64_t from, int64_t to) {
    for (int64_t block = from; block < to; block += BLOCK) {
        const int64_t end = least(block + BLOCK, to);
        int64_t r = 0;
        for (; r + GROUP <= n_rows; r += GROUP) eliminate_rows<GROUP>(span, x + r * span.stride, zeros, block, end);
        for (; r < n_rows; ++r) eliminate_rows<1>(span, x + r * span.stride, zeros, block, end);
    }
}

// Kernel values of a row with the first k of the span, and zeros to the end of its vectors.
void take_values(const struct slimsvm_span_distances_call& call, const Span& span, int64_t row, int64_t k, double* x) {
    const double* values = call.K + call.kernel_rows[span.rows[row]] * call.width;
    for (int64_t i = 0; i < k; ++i) x[i] = values[call.places[span.rows[i]]] + call.offset;
    for (int64_t i = k; i < span.stride; ++i) x[i] = 0.0;
    if (!call.balanced) return;
    const double added = span.lift - span.means[row];
    for (int64_t i = 0; i < k; ++i) x[i] += added - span.means[i];
}

// Means for values about the mean of the span: far from 0 distances would drown in rounding. A border of ones lets any
// number be added to all values; without one these would be singular.
void take_means(struct slimsvm_span_distances_call call, Span& span) {
    call.balanced = 0;
    for (int64_t row = 0; row < span.n; ++row) {
        take_values(call, span, row, span.m, span.x);
        span.means[row] = sum(span.x, span.m) / double(span.m);
    }
    const double mean = sum(span.means, span.m) / double(span.m);
    const double spread = most(0.0, sum(span.own, span.m) / double(span.m) - mean);
    span.lift = mean + spread;
    for (int64_t row = 0; row < span.n; ++row) span.own[row] += span.lift - 2.0 * span.means[row];
}

// False: A is not positive definite.
bool factor(const struct slimsvm_span_distances_call& call, const Span& span, double softness) {
    double largest = 0.0;
    for (int64_t i = 0; i < span.m; ++i) largest = most(largest, span.own[i]);
    const double added = softness + RIDGE * largest;
    for (int64_t first = 0; first < span.m; first += PANEL) {
        const int64_t end = least(first + PANEL, span.m);
        double* panel = span.L + first * span.stride;
        for (int64_t row = first; row < end; ++row) take_values(call, span, row, row, span.L + row * span.stride);
        eliminate(span, panel, end - first, 0, 0, first);
        for (int64_t row = first; row < end; ++row) {
            double* x = span.L + row * span.stride;
            const int64_t group = row - (row - first) % GROUP;
            if (row == group) eliminate(span, x, least(int64_t(GROUP), end - row), 0, first, row);
            eliminate_rows<1>(span, x, 0, group, row);
            const double pivot = span.own[row] + added - dot(x, x, row);
            if (!(pivot > 0.0)) return false;
            span.inverse[row] = 1.0 / sqrt(pivot);
        }
    }
    return true;
}

// |L^-1 x|^2 and <L^-1 1, L^-1 x> of an eliminated row.
struct Products {
    double square, with_border;
};

Products products_of(const struct slimsvm_span_distances_call& call, const Span& span, const double* x) {
    return {dot(x, x, span.m), call.balanced ? dot(span.border, x, span.m) : 0.0};
}

// Distances of the rows of the span from that of the others in it: by the diagonal of A's inverse.
void distances_within(const struct slimsvm_span_distances_call& call, const Span& span, double softness, double ones) {
    for (int64_t first = 0; first < span.m; first += PANEL) {
        const int64_t n_rows = least(int64_t(PANEL), span.m - first);
        for (int64_t i = 0; i < PANEL * span.stride; ++i) span.x[i] = 0.0;
        for (int64_t r = 0; r < n_rows; ++r) span.x[r * span.stride + first + r] = 1.0;
        eliminate(span, span.x, n_rows, first, first, span.m);
        for (int64_t r = 0; r < n_rows; ++r) {
            const Products found = products_of(call, span, span.x + r * span.stride);
            const double diagonal = found.square - (call.balanced ? found.with_border * found.with_border / ones : 0.0);
            call.squares[span.rows[first + r]] = most(0.0, 1.0 / most(diagonal, TINY) - softness);
        }
    }
}

// Distances of the other rows.
void distances_to(const struct slimsvm_span_distances_call& call, const Span& span, double ones) {
    for (int64_t first = span.m; first < span.n; first += PANEL) {
        const int64_t n_rows = least(int64_t(PANEL), span.n - first);
        for (int64_t r = 0; r < n_rows; ++r) take_values(call, span, first + r, span.m, span.x + r * span.stride);
        eliminate(span, span.x, n_rows, 0, 0, span.m);
        for (int64_t r = 0; r < n_rows; ++r) {
            const Products found = products_of(call, span, span.x + r * span.stride);
            const double off = 1.0 - found.with_border, rest = span.own[first + r] - found.square;
            call.squares[span.rows[first + r]] = most(0.0, rest + (call.balanced ? off * off / ones : 0.0));
        }
    }
}

bool distances_of(struct slimsvm_span_distances_call& call, Span& span, double softness) {
    for (int64_t row = 0; row < span.n; ++row) span.own[row] = call.diagonal[span.rows[row]];
    if (call.balanced) take_means(call, span);
    if (!factor(call, span, softness)) return false;
    double ones = 0.0;
    if (call.balanced) {
        for (int64_t i = 0; i < span.stride; ++i) span.border[i] = i < span.m ? 1.0 : 0.0;
        eliminate(span, span.border, 1, 0, 0, span.m);
        ones = dot(span.border, span.border, span.m);
    }
    distances_within(call, span, softness, ones);
    distances_to(call, span, ones);
    return true;
}

int64_t size_of_span(const struct slimsvm_span_distances_call& call, int64_t s) {
    int64_t m = 0;
    for (int64_t k = call.starts[s]; k < call.starts[s + 1]; ++k) m += call.is_in_span[k] != 0;
    return m;
}

}  // namespace

int32_t span_distances(struct slimsvm_span_distances_call* call) {
    int64_t bytes = 0;
    for (int64_t s = 0; s < call->n_sets; ++s) {
        Room counted;
        span_of(counted, size_of_span(*call, s), call->starts[s + 1] - call->starts[s]);
        bytes = most(bytes, counted.bytes + ALIGNMENT);
    }
    if (call->n_workspace < bytes) return needs_workspace(*call, bytes);
    for (int64_t s = 0; s < call->n_sets; ++s) {
        const int64_t first = call->starts[s], last = call->starts[s + 1];
        Room room;
        room.memory = aligned<uint8_t>(call->workspace);
        Span span = span_of(room, size_of_span(*call, s), last - first);
        int64_t own = 0, other = span.m;
        for (int64_t k = first; k < last; ++k) span.rows[call->is_in_span[k] ? own++ : other++] = k;
        call->is_solved[s] = span.m > 0 && distances_of(*call, span, call->softness[s]);
    }
    return SLIMSVM_OK;
}

}  // namespace slimsvm::SLIMSVM_ISA
