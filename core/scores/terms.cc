// Values of a kernel that is a sum of terms, each a map of the distance in some features.
//
// k(x, p) = sum_t share_t map(z_t) + whole map(ratio sum_t z_t), where z_t is minus the sum over the features of term t
// of (x_f - p_f)^2 / 2, or of |x_f - p_f|. A term costs a map, about 6 products; all distances are differences, so that
// no digits cancel. A row goes through the same instructions wherever it stands.
#include "kernels/maps.h"
#include "simd/tiles.h"
#include "support/call.h"
#include "threads/share.h"

namespace slimsvm::SLIMSVM_ISA {

namespace {

// Rows whose maps are taken together, so that they need not wait for their own results.
constexpr int TOGETHER = VECTORS >= 4 ? 1 : 2;
constexpr int COUNT = TOGETHER * VECTORS;

struct HalfSquare {
    template <class T>
    static SLIMSVM_INLINE Vec<T> add(Vec<T> sum, T x, Vec<T> p) {
        const Vec<T> difference = x - p;
        return sum - T(0.5) * difference * difference;
    }
};

// z[v] = share * map(z[v]).
template <class T, int64_t CODE>
SLIMSVM_INLINE void shared_map(Vec<T> (&z)[COUNT], T share) {
    if constexpr (CODE == SLIMSVM_EXP2) {
        values_exp2<T, COUNT>(z, T(0));
    } else {
        if constexpr (lowest_z(CODE) < 0)
            SLIMSVM_EACH (v, COUNT) z[v] = maximum<T>(z[v], splat<T>(T(lowest_z(CODE))));
        map_values<T, COUNT>(z, CODE, 1);
    }
    SLIMSVM_EACH (v, COUNT) z[v] = share * z[v];
}

// Values of TOGETHER rows and one panel.
template <class T, class Pair, int64_t CODE>
SLIMSVM_INLINE void panel_values(const struct slimsvm_sum_terms_call& call, const T* const (&rows)[TOGETHER],
                                 const T* panel, Vec<T> (&values)[COUNT]) {
    Vec<T> all[COUNT];
    SLIMSVM_EACH (v, COUNT) values[v] = all[v] = Vec<T>{};
    for (int64_t t = 0; t < call.n_terms; ++t) {
        Vec<T> z[COUNT];
        SLIMSVM_EACH (v, COUNT) z[v] = Vec<T>{};
        for (int64_t f = call.offsets[t]; f < call.offsets[t + 1]; ++f)
            SLIMSVM_EACH (v, COUNT)
                z[v] = Pair::template add<T>(z[v], rows[v / VECTORS][f],
                                             load<T>(panel + f * PANEL<T> + v % VECTORS * LANES<T>));
        SLIMSVM_EACH (v, COUNT) all[v] += z[v];
        shared_map<T, CODE>(z, T(call.shares[t]));
        SLIMSVM_EACH (v, COUNT) values[v] += z[v];
    }
    if (call.whole == 0.0) return;
    SLIMSVM_EACH (v, COUNT) all[v] = T(call.ratio) * all[v];
    shared_map<T, CODE>(all, T(call.whole));
    SLIMSVM_EACH (v, COUNT) values[v] += all[v];
}

template <class T, class Pair, int64_t CODE>
int32_t sum_terms_of(const struct slimsvm_sum_terms_call& call) {
    const T *rows = static_cast<const T*>(call.rows), *panels = static_cast<const T*>(call.panels);
    T* out = static_cast<T*>(call.out);
    const int64_t n_panels = divide_up(call.k, PANEL<T>);
    if (!holds(call.n_values, n_panels * PANEL<T>, call.d)) return SLIMSVM_BAD_ARGUMENT;
    Team team(call.n_threads, call.microseconds);
    share(team, divide_up(call.n, ROWS_PER_TILE), [&](int64_t lo, int64_t hi, int64_t) {
        const int64_t first = lo * ROWS_PER_TILE, end = least(call.n, hi * ROWS_PER_TILE);
        for (int64_t q = 0; q < n_panels; ++q)
            for (int64_t i = first; i < end; i += TOGETHER) {
                const T* dense[TOGETHER];
                for (int r = 0; r < TOGETHER; ++r) dense[r] = rows + least(i + r, end - 1) * call.d;
                Vec<T> values[COUNT];
                panel_values<T, Pair, CODE>(call, dense, panels + q * PANEL<T> * call.d, values);
                T numbers[COUNT * LANES<T>];
                SLIMSVM_EACH (v, COUNT) store<T>(numbers + v * LANES<T>, values[v]);
                const int64_t size = least(int64_t(PANEL<T>), call.k - q * PANEL<T>);
                for (int64_t r = 0; r < least(int64_t(TOGETHER), end - i); ++r)
                    for (int64_t j = 0; j < size; ++j)
                        out[(i + r) * call.stride + q * PANEL<T> + j] = numbers[r * PANEL<T> + j];
            }
    });
    return SLIMSVM_OK;
}

template <class T>
int32_t sum_terms_of(const struct slimsvm_sum_terms_call& call) {
    if (call.is_absolute)
        return call.code == SLIMSVM_EXP2 ? sum_terms_of<T, Manhattan, SLIMSVM_EXP2>(call) : SLIMSVM_BAD_ARGUMENT;
    switch (call.code) {
        case SLIMSVM_EXP2:
            return sum_terms_of<T, HalfSquare, SLIMSVM_EXP2>(call);
        case SLIMSVM_MATERN32:
            return sum_terms_of<T, HalfSquare, SLIMSVM_MATERN32>(call);
        case SLIMSVM_RATIONAL:
            return sum_terms_of<T, HalfSquare, SLIMSVM_RATIONAL>(call);
    }
    return SLIMSVM_BAD_ARGUMENT;
}

}  // namespace

int32_t sum_terms(struct slimsvm_sum_terms_call* call) {
    if (call->n_threads < 1 || call->n_offsets != call->n_terms + 1 || call->offsets[0] != 0 ||
        call->offsets[call->n_terms] != call->d)
        return SLIMSVM_BAD_ARGUMENT;
    return call->real_size == 4 ? sum_terms_of<float>(*call) : sum_terms_of<double>(*call);
}

}  // namespace slimsvm::SLIMSVM_ISA
