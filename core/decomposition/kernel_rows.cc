// The kernel rows of a cache: they are filled, gathered from, added up, and closed where columns go.
#include "simd/reduce.h"
#include "support/call.h"
#include "threads/share.h"

namespace slimsvm::SLIMSVM_ISA {

namespace {

// The fewest kernel rows that one thread fills, and the fewest columns that it adds up.
constexpr int64_t ROWS_PER_TILE = 16, COLUMNS_PER_TILE = 1024;
// The columns put into a kernel row together: those of ROWS_PER_TILE kernel rows stay in the nearest cache.
constexpr int64_t COLUMNS_AT_ONCE = 16;
// The kernel rows that are added up in their own type before float64 takes the sum.
constexpr int64_t GROUP = 16;

template <class T>
int32_t put_kernel_rows_of(struct slimsvm_put_kernel_rows_call& call) {
    if (call.first < 0 || call.first > call.width - call.n) return SLIMSVM_BAD_ARGUMENT;
    const T* block = static_cast<const T*>(call.block);
    T* values = static_cast<T*>(call.values);
    Team team(call.n_threads, call.microseconds);
    share(team, divide_up(call.k, ROWS_PER_TILE), [&](int64_t lo, int64_t hi, int64_t) {
        for (int64_t start = lo * ROWS_PER_TILE; start < least(call.k, hi * ROWS_PER_TILE); start += ROWS_PER_TILE) {
            const int64_t end = least(call.k, start + ROWS_PER_TILE);
            for (int64_t from = 0; from < call.n; from += COLUMNS_AT_ONCE)
                for (int64_t a = start; a < end; ++a) {
                    T* row = values + call.slots[a] * call.width + call.first;
                    for (int64_t r = from; r < least(call.n, from + COLUMNS_AT_ONCE); ++r)
                        row[r] = block[r * call.k + a];
                }
        }
    });
    return SLIMSVM_OK;
}

template <class T>
int32_t gather_kernel_rows_of(struct slimsvm_gather_kernel_rows_call& call) {
    const T* values = static_cast<const T*>(call.values);
    T* out = static_cast<T*>(call.out);
    Team team(call.n_threads, call.microseconds);
    share(team, call.k, [&](int64_t lo, int64_t hi, int64_t) {
        for (int64_t a = lo; a < hi; ++a) {
            const T* row = values + call.slots[a] * call.width;
            for (int64_t b = 0; b < call.n; ++b) out[a * call.n + b] = row[call.places[b]];
        }
    });
    return SLIMSVM_OK;
}

// Subtracts the columns from..end of a group of kernel rows, `WIDTH` vectors together; returns the first column left.
template <class T, int WIDTH>
SLIMSVM_INLINE int64_t subtract_columns(const struct slimsvm_subtract_kernel_rows_call& call, int64_t group,
                                        int64_t from, int64_t end) {
    constexpr int64_t step = WIDTH * LANES<T>;
    const T *values = static_cast<const T*>(call.values), *change = static_cast<const T*>(call.change);
    int64_t i = from;
    for (; i + step <= end; i += step) {
        Vec<T> sums[WIDTH] = {};
        for (int64_t a = group; a < least(call.k, group + GROUP); ++a) {
            const T* row = values + call.slots[a] * call.width + i;
            SLIMSVM_EACH (v, WIDTH) sums[v] += change[a] * load<T>(row + v * LANES<T>);
        }
        T total[step];
        SLIMSVM_EACH (v, WIDTH) store<T>(total + v * LANES<T>, sums[v]);
        for (int64_t c = 0; c < step; c += LANES<double>)
            store<double>(call.g + i + c, load<double>(call.g + i + c) - load_wide(total + c));
    }
    return i;
}

// Subtracts a tile of columns from one group of kernel rows after another: each kernel row is read on for a while.
template <class T>
void subtract_tile(const struct slimsvm_subtract_kernel_rows_call& call, int64_t start, int64_t end) {
    const T *values = static_cast<const T*>(call.values), *change = static_cast<const T*>(call.change);
    for (int64_t group = 0; group < call.k; group += GROUP) {
        int64_t i = subtract_columns<T, 4>(call, group, start, end);
        i = subtract_columns<T, 1>(call, group, i, end);
        for (; i < end; ++i) {
            T sum = T(0);
            for (int64_t a = group; a < least(call.k, group + GROUP); ++a)
                sum += change[a] * values[call.slots[a] * call.width + i];
            call.g[i] -= double(sum);
        }
    }
}

template <class T>
int32_t subtract_kernel_rows_of(struct slimsvm_subtract_kernel_rows_call& call) {
    if (call.n > call.width) return SLIMSVM_BAD_ARGUMENT;
    Team team(call.n_threads, call.microseconds);
    share(team, divide_up(call.n, COLUMNS_PER_TILE), [&](int64_t lo, int64_t hi, int64_t) {
        for (int64_t tile = lo; tile < hi; ++tile)
            subtract_tile<T>(call, tile * COLUMNS_PER_TILE, least(call.n, (tile + 1) * COLUMNS_PER_TILE));
    });
    return SLIMSVM_OK;
}

template <class T>
int32_t keep_columns_of(struct slimsvm_keep_columns_call& call) {
    T* values = static_cast<T*>(call.values);
    for (int64_t b = 1; b < call.n; ++b)
        if (call.keep[b] <= call.keep[b - 1]) return SLIMSVM_BAD_ARGUMENT;
    Team team(call.n_threads, call.microseconds);
    share(team, call.k, [&](int64_t lo, int64_t hi, int64_t) {
        for (int64_t a = lo; a < hi; ++a) {
            T* row = values + call.slots[a] * call.width;
            for (int64_t b = 0; b < call.n && call.keep[b] < call.valid[a]; ++b) row[b] = row[call.keep[b]];
        }
    });
    return SLIMSVM_OK;
}

}  // namespace

int32_t put_kernel_rows(struct slimsvm_put_kernel_rows_call* call) {
    return call->real_size == 4 ? put_kernel_rows_of<float>(*call) : put_kernel_rows_of<double>(*call);
}

int32_t gather_kernel_rows(struct slimsvm_gather_kernel_rows_call* call) {
    return call->real_size == 4 ? gather_kernel_rows_of<float>(*call) : gather_kernel_rows_of<double>(*call);
}

int32_t subtract_kernel_rows(struct slimsvm_subtract_kernel_rows_call* call) {
    return call->real_size == 4 ? subtract_kernel_rows_of<float>(*call) : subtract_kernel_rows_of<double>(*call);
}

int32_t keep_columns(struct slimsvm_keep_columns_call* call) {
    return call->real_size == 4 ? keep_columns_of<float>(*call) : keep_columns_of<double>(*call);
}

}  // namespace slimsvm::SLIMSVM_ISA
