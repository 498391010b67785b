// Kernel values of tiles of rows times panels of points, mapped and summed while in registers and the nearest caches.
//
// A kernel value is map(z), z = base_j + <x_i, p_j> + h_i. Kernels of distances have base_j = -|p_j|^2 / 2 and
// h_i = -|x_i|^2 / 2. Where the map is 2^z, the integer part of h_i goes into the number that rounds z, the rest into
// the row's factor. Of rows near all the points it goes into the factor too: the same bits, by fewer instructions.
//
// Every row goes through the same instructions wherever it stands, and sums are cut the same way: a row's values do not
// depend on the rows computed with it, nor on threads.
#pragma once

#include "kernels/maps.h"
#include "simd/tiles.h"
#include "slimsvm.h"

namespace slimsvm::SLIMSVM_ISA {

// Panels whose sums stay in the working type; at most as many as have this number of bytes.
constexpr int64_t CHUNK_PANELS = 8, CHUNK_BYTES = 1 << 18;
// Bytes of a panel's features that stay in the nearest cache while a tile's rows go by.
constexpr int64_t PART_BYTES = 24 << 10;
// Features from which on a function's call is little beside its sums: of kernel values, and of scores, whose 2^z takes
// more registers of doubles than of floats.
constexpr int64_t APART_VALUES = 16;
template <class T>
constexpr int64_t APART_SCORES = sizeof(T) == 8 ? 8 : 32;
// Exponents from which on no row needs a least one, how many rows make it worth while to find out, and the coefficients
// for which sums are then finite.
constexpr int64_t NEAR_ROWS = 64;
constexpr double NEAR = 1.0 + double(Exp2<float>::lowest), NEAR_WEIGHT = 1099511627776.0;

template <class T>
struct RowsOf {
    const T *values, *half;
    const double* factor;
    const void* columns;
    int32_t column_size;
    const int64_t* indptr;
    int64_t n_features;
};

template <class T>
struct PointsOf {
    const T *panels, *base;
    const int32_t* indices;
    const int64_t* indptr;
    int64_t n_panels, form;
};

template <class T>
struct WeightsOf {
    const T* values;
    const int64_t *first, *segments;
    int64_t n_segments, m;
};

// Which rows, and what becomes of them.
struct Job {
    const int64_t* index;  // null: consecutive rows from `first`
    int64_t first, n, columns, code, degree;
    double near_half;
};

template <class T>
inline RowsOf<T> rows_of(const struct slimsvm_rows& rows) {
    return {static_cast<const T*>(rows.values),
            static_cast<const T*>(rows.half),
            rows.factor,
            rows.columns,
            rows.whole_size,
            rows.indptr,
            rows.n_features};
}
template <class T>
inline PointsOf<T> points_of(const struct slimsvm_points& points) {
    return {static_cast<const T*>(points.panels),
            static_cast<const T*>(points.base),
            points.indices,
            points.indptr,
            points.n_slots / PANEL<T>,
            points.form};
}
template <class T>
inline WeightsOf<T> weights_of(const struct slimsvm_weights& weights) {
    return {static_cast<const T*>(weights.values), weights.first, weights.segments, weights.n_segments,
            weights.n_outputs};
}

// The h from which on no row has an exponent below the least: (|x| + |p|)^2 / 2 is less for all points. The sums are
// then below 2^(40 - NEAR) times the number of points, and finite. Infinite if there is no such h, or for few rows: it
// takes a look at all points.
template <class T>
inline double near_from(const PointsOf<T>& points, const WeightsOf<T>& weights, int64_t n_weights, int64_t code,
                        int64_t n) {
    if (n < NEAR_ROWS || sizeof(T) != 4 || points.form != SLIMSVM_INNER || code != SLIMSVM_EXP2 ||
        weights.n_segments * weights.m != 1)
        return HUGE_VAL;
    double far = 0.0, heavy = 0.0;
    for (int64_t j = 0; j < points.n_panels * PANEL<T>; ++j) far = least(far, double(points.base[j]));
    for (int64_t j = 0; j < n_weights; ++j) heavy = most(heavy, fabs(double(weights.values[j])));
    const double left = sqrt(-2.0 * NEAR) - sqrt(-2.0 * far);
    return left > 0.0 && heavy < NEAR_WEIGHT ? -0.5 * left * left : HUGE_VAL;
}

// Scratch memory of one thread: sums of lanes, totals, and for CSC points whole rows of z.
template <class T>
struct Scratch {
    Vec<T>* sums;    // (ROWS_PER_TILE, m)
    double* totals;  // (ROWS_PER_TILE, columns)
    T* z;            // (ROWS, n_slots), CSC only

    static int64_t bytes(int64_t m, int64_t columns, int64_t n_slots, int64_t form) {
        const int64_t z_bytes = form >= SLIMSVM_CSC_INNER ? ROWS * n_slots * int64_t(sizeof(T)) : 0;
        const int64_t used = ROWS_PER_TILE * m * VECTOR_BYTES + ROWS_PER_TILE * columns * 8 + z_bytes;
        return (used / ALIGNMENT + 3) * ALIGNMENT;
    }
    static Scratch at(void* memory, int64_t m, int64_t columns) {
        char* place = static_cast<char*>(memory);
        place += (ALIGNMENT - int64_t(uintptr_t(place) % ALIGNMENT)) % ALIGNMENT;
        Scratch scratch;
        scratch.sums = reinterpret_cast<Vec<T>*>(place);
        scratch.totals = reinterpret_cast<double*>(place + ROWS_PER_TILE * m * VECTOR_BYTES);
        scratch.z = reinterpret_cast<T*>(scratch.totals + ROWS_PER_TILE * columns);
        for (int64_t i = 0; i < ROWS_PER_TILE * m; ++i) scratch.sums[i] = Vec<T>{};  // they stay 0 between uses
        return scratch;
    }
};

// The rows of one tile.
template <class T>
struct TileRows {
    int64_t chosen[ROWS_PER_TILE];
    const T* dense[ROWS_PER_TILE];  // where dense rows begin
    T whole[ROWS_PER_TILE];         // integer part of h
    double shift[ROWS_PER_TILE];    // factor of the row's sums
    bool is_near[ROWS_PER_TILE / ROWS];
    int64_t n;
};

template <class T>
inline void choose_rows(const RowsOf<T>& rows, const Job& job, int64_t tile, bool is_plain, TileRows<T>& chosen) {
    const int64_t start = tile * ROWS_PER_TILE;
    chosen.n = least(ROWS_PER_TILE, job.n - start);
    for (int64_t r = 0; r < ROWS_PER_TILE; ++r) {
        const int64_t i = r < chosen.n ? start + r : start;  // past the end: any row
        const int64_t row = job.index ? job.index[i] : job.first + i;
        chosen.chosen[r] = row;
        chosen.dense[r] = rows.indptr ? nullptr : rows.values + row * rows.n_features;
        chosen.whole[r] = T(rint(double(rows.half[row])));
        // Rows that are far or not finite have the factor 0.
        chosen.shift[r] = job.code == SLIMSVM_EXP2 ? rows.factor[row] : double(rows.factor[row] != 0.0);
    }
    for (int64_t b = 0; b < ROWS_PER_TILE / ROWS; ++b) {
        bool near = is_plain;
        for (int64_t r = b * ROWS; near && r < (b + 1) * ROWS; ++r)
            near = double(rows.half[chosen.chosen[r]]) >= job.near_half;
        chosen.is_near[b] = near;
        for (int64_t r = b * ROWS; near && r < (b + 1) * ROWS; ++r)
            chosen.shift[r] *= times_power(1.0, int64_t(chosen.whole[r]));
    }
}

template <class T>
SLIMSVM_INLINE void find_dense(const TileRows<T>& chosen, int64_t b, const T* (&dense)[ROWS]) {
    SLIMSVM_EACH (r, ROWS) dense[r] = chosen.dense[b + r];
}

// z of the ROWS sparse rows from b on and one panel.
template <class T, class Index>
__attribute__((noinline)) void sparse_tile_z(const RowsOf<T>& rows, const PointsOf<T>& points,
                                             const TileRows<T>& chosen, int64_t b, int64_t q,
                                             Vec<T> (&S)[ROWS][VECTORS]) {
    const T* panel = points.panels + q * PANEL<T> * rows.n_features;
    const T* base = points.base + q * PANEL<T>;
    for (int r = 0; r < ROWS; ++r) {
        const int64_t t = rows.indptr[chosen.chosen[b + r]], n = rows.indptr[chosen.chosen[b + r] + 1] - t;
        const Index* columns = static_cast<const Index*>(rows.columns) + t;
        if (points.form == SLIMSVM_CSR_INNER)
            sparse_row_sums<T, Inner, Index>(rows.values + t, columns, n, panel, base, S[r]);
        else
            sparse_row_sums<T, Shared, Index>(rows.values + t, columns, n, panel, base, S[r]);
    }
}

// z of the ROWS rows from b on and one panel.
template <class T>
SLIMSVM_INLINE void tile_z(const RowsOf<T>& rows, const PointsOf<T>& points, const TileRows<T>& chosen, int64_t b,
                           int64_t q, Vec<T> (&S)[ROWS][VECTORS]) {
    const T* panel = points.panels + q * PANEL<T> * rows.n_features;
    const T* base = points.base + q * PANEL<T>;
    if (points.form == SLIMSVM_INNER || points.form == SLIMSVM_MANHATTAN) {
        const T* dense[ROWS];
        find_dense<T>(chosen, b, dense);
        if (points.form == SLIMSVM_INNER)
            tile_sums<T, Inner>(dense, panel, rows.n_features, base, S);
        else
            tile_sums<T, Manhattan>(dense, panel, rows.n_features, base, S);
        return;
    }
    Vec<T> sums[ROWS][VECTORS];  // S itself stays in registers: no function has its address
    if (rows.column_size == 8)
        sparse_tile_z<T, int64_t>(rows, points, chosen, b, q, sums);
    else
        sparse_tile_z<T, int32_t>(rows, points, chosen, b, q, sums);
    SLIMSVM_EACH (r, ROWS)
        SLIMSVM_EACH (v, VECTORS) S[r][v] = sums[r][v];
}

// z of the ROWS rows from b on and all CSC points: only features that both sides have cost anything.
template <class T, class Index>
__attribute__((noinline)) void sparse_z_of(const RowsOf<T>& rows, const PointsOf<T>& points, const TileRows<T>& chosen,
                                           int64_t b, T* z) {
    const int64_t n_slots = points.n_panels * PANEL<T>;
    const bool is_inner = points.form == SLIMSVM_CSC_INNER;
    for (int r = 0; r < ROWS; ++r) {
        T* sums = z + r * n_slots;
        for (int64_t j = 0; j < n_slots; ++j) sums[j] = points.base[j];
        const int64_t row = chosen.chosen[b + r];
        for (int64_t t = rows.indptr[row]; t < rows.indptr[row + 1]; ++t) {
            const T x = rows.values[t];
            const int64_t f = int64_t(static_cast<const Index*>(rows.columns)[t]);
            for (int64_t u = points.indptr[f]; u < points.indptr[f + 1]; ++u) {
                const T p = points.panels[u];
                sums[points.indices[u]] += is_inner ? x * p : T(fabs(x) + fabs(p) - fabs(x - p));
            }
        }
    }
}

template <class T>
inline void sparse_z(const RowsOf<T>& rows, const PointsOf<T>& points, const TileRows<T>& chosen, int64_t b, T* z) {
    if (rows.column_size == 8)
        sparse_z_of<T, int64_t>(rows, points, chosen, b, z);
    else
        sparse_z_of<T, int32_t>(rows, points, chosen, b, z);
}

// Rows whose 2^z is taken at a time: two need not wait for themselves; doubles by AVX-512, four vectors each, need not
// either.
template <class T>
constexpr int ROWS_AT_ONCE = VECTOR_BYTES == 64 && sizeof(T) == 8 ? 1 : 2;

template <class T, int COUNT>
SLIMSVM_INLINE void whole_parts(const TileRows<T>& chosen, int64_t row, Vec<T> (&whole)[COUNT]) {
    SLIMSVM_EACH (v, COUNT) whole[v] = splat<T>(chosen.whole[row + v / VECTORS]);
}

// sums[r] += 2^(S[r] + whole part of h_r) * weights.
template <class T, bool IS_NEAR>
SLIMSVM_INLINE void add_exp2(Vec<T> (&S)[ROWS][VECTORS], const TileRows<T>& chosen, int64_t b, const T* weights,
                             Vec<T>* sums) {
    constexpr int COUNT = ROWS_AT_ONCE<T> * VECTORS;
    Vec<T> w[VECTORS];
    SLIMSVM_EACH (v, VECTORS) w[v] = load<T>(weights + v * LANES<T>);
    SLIMSVM_UNROLL for (int r = 0; r < ROWS; r += ROWS_AT_ONCE<T>) {
        Vec<T> z[COUNT];
        SLIMSVM_EACH (v, COUNT) z[v] = S[r + v / VECTORS][v % VECTORS];
        if constexpr (IS_NEAR) {
            exp2_near<T, COUNT>(z);
        } else {
            Vec<T> whole[COUNT];
            whole_parts<T, COUNT>(chosen, b + r, whole);
            exp2_with<T, COUNT>(z, whole);
        }
        SLIMSVM_EACH (v, COUNT) sums[r + v / VECTORS] += z[v] * w[v % VECTORS];
    }
}

template <class T>
SLIMSVM_INLINE void add_weighted(const Vec<T> (&S)[ROWS][VECTORS], const T* weights, Vec<T>* sums) {
    Vec<T> w[VECTORS];
    SLIMSVM_EACH (v, VECTORS) w[v] = load<T>(weights + v * LANES<T>);
    SLIMSVM_EACH (r, ROWS) {
        Vec<T> sum = sums[r];
        SLIMSVM_EACH (v, VECTORS) sum += S[r][v] * w[v];
        sums[r] = sum;
    }
}

// totals[r] += the lanes of sums[r]; sums = 0.
template <class T>
SLIMSVM_INLINE void flush(Vec<T>* sums, double* totals, int64_t stride) {
    SLIMSVM_EACH (r, ROWS) {
        totals[r * stride] += total(sums[r]);
        sums[r] = Vec<T>{};
    }
}

// S[r] = map(S[r] + h_r), for sums: 2^z is short of the row's factor and of scale.
template <class T>
SLIMSVM_INLINE void map_tile(Vec<T> (&S)[ROWS][VECTORS], const RowsOf<T>& rows, const TileRows<T>& chosen, int64_t b,
                             const Job& job) {
    if (job.code == SLIMSVM_EXP2) {
        constexpr int COUNT = ROWS_AT_ONCE<T> * VECTORS;
        SLIMSVM_UNROLL for (int r = 0; r < ROWS; r += ROWS_AT_ONCE<T>) {
            Vec<T> z[COUNT], whole[COUNT];
            SLIMSVM_EACH (v, COUNT) z[v] = S[r + v / VECTORS][v % VECTORS];
            whole_parts<T, COUNT>(chosen, b + r, whole);
            exp2_with<T, COUNT>(z, whole);
            SLIMSVM_EACH (v, COUNT) S[r + v / VECTORS][v % VECTORS] = z[v];
        }
        return;
    }
    for (int r = 0; r < ROWS; ++r) {
        const T half = rows.half[chosen.chosen[b + r]];
        SLIMSVM_EACH (v, VECTORS) S[r][v] = S[r][v] + half;
        map_values<T, VECTORS>(S[r], job.code, job.degree);
    }
}

// S[r] = 2^(S[r] + h_r), for kernel values themselves.
template <class T>
SLIMSVM_INLINE void exp2_tile(Vec<T> (&S)[ROWS][VECTORS], const RowsOf<T>& rows, const TileRows<T>& chosen, int64_t b) {
    constexpr int COUNT = ROWS_AT_ONCE<T> * VECTORS;
    SLIMSVM_UNROLL for (int r = 0; r < ROWS; r += ROWS_AT_ONCE<T>) {
        Vec<T> z[COUNT];
        SLIMSVM_EACH (v, COUNT) z[v] = S[r + v / VECTORS][v % VECTORS] + rows.half[chosen.chosen[b + r + v / VECTORS]];
        values_exp2<T, COUNT>(z, T(0));
        SLIMSVM_EACH (v, COUNT) S[r + v / VECTORS][v % VECTORS] = z[v];
    }
}

// Row r of a panel's values to out, `size` of them.
template <class T>
SLIMSVM_INLINE void store_values(const Vec<T> (&S)[VECTORS], T* out, int64_t size) {
    if (size >= PANEL<T>) {
        SLIMSVM_EACH (v, VECTORS) store<T>(out + v * LANES<T>, S[v]);
        return;
    }
    T values[PANEL<T>];
    SLIMSVM_EACH (v, VECTORS) store<T>(values + v * LANES<T>, S[v]);
    for (int64_t j = 0; j < size; ++j) out[j] = values[j];
}

// Sums of dense rows and one panel, in a function of its own; what is in S instead of `base` where that is null. Where
// the constants of a map take registers, too, one of the sums may lie in memory, where an addition waits for the one
// before: all then take up to twice the time.
template <class T>
__attribute__((noinline)) void sums_apart(const T* const (&dense)[ROWS], const T* panel, int64_t n_features,
                                          const T* base, Vec<T> (&S)[ROWS][VECTORS]) {
    if (base) {
        tile_sums<T, Inner>(dense, panel, n_features, base, S);
        return;
    }
    Vec<T> sums[ROWS][VECTORS];
    SLIMSVM_EACH (r, ROWS)
        SLIMSVM_EACH (v, VECTORS) sums[r][v] = S[r][v];
    add_features<T, Inner>(dense, panel, n_features, sums);
    SLIMSVM_EACH (r, ROWS)
        SLIMSVM_EACH (v, VECTORS) S[r][v] = sums[r][v];
}

// Kernel values of the tiles lo, ..., hi - 1 of the chosen rows: out (n, columns).
template <class T>
inline void value_tiles(const RowsOf<T>& rows, const PointsOf<T>& points, const Job& job, int64_t lo, int64_t hi,
                        T* scratch_z, T* out) {
    const bool is_csc = points.form >= SLIMSVM_CSC_INNER;
    const bool may_lack_registers = VECTOR_BYTES == 16;
    const bool is_apart = may_lack_registers && points.form == SLIMSVM_INNER && rows.n_features >= APART_VALUES;
    TileRows<T> chosen;
    for (int64_t tile = lo; tile < hi; ++tile) {
        choose_rows(rows, job, tile, false, chosen);
        T* first_line = out + tile * ROWS_PER_TILE * job.columns;
        const int64_t n_panels = points.n_panels;
        const int64_t chunk =
            is_csc ? n_panels
                   : least(CHUNK_PANELS, most(int64_t(1), CHUNK_BYTES / most(int64_t(1), PANEL<T> * rows.n_features *
                                                                                             int64_t(sizeof(T)))));
        for (int64_t q_lo = 0; q_lo < n_panels; q_lo += chunk)
            for (int64_t b = 0; b < chosen.n; b += ROWS) {
                if (is_csc) sparse_z<T>(rows, points, chosen, b, scratch_z);
                for (int64_t q = q_lo; q < least(n_panels, q_lo + chunk); ++q) {
                    Vec<T> S[ROWS][VECTORS];
                    const int64_t left = job.columns - q * PANEL<T>;
                    if (left <= 0) break;
                    if (is_csc)
                        for (int r = 0; r < ROWS; ++r)
                            for (int v = 0; v < VECTORS; ++v)
                                S[r][v] = load<T>(scratch_z + (r * n_panels + q) * PANEL<T> + v * LANES<T>);
                    else if (points.form == SLIMSVM_INNER && (is_apart || left <= LANES<T>)) {
                        const T* dense[ROWS];
                        find_dense<T>(chosen, b, dense);
                        const T* panel = points.panels + q * PANEL<T> * rows.n_features;
                        if (left > LANES<T>) {
                            sums_apart<T>(dense, panel, rows.n_features, points.base + q * PANEL<T>, S);
                        } else {
                            Vec<T> narrow[ROWS][1];
                            tile_sums<T, Inner, 1>(dense, panel, rows.n_features, points.base + q * PANEL<T>, narrow);
                            for (int r = 0; r < ROWS; ++r) {
                                S[r][0] = narrow[r][0];
                                for (int v = 1; v < VECTORS; ++v) S[r][v] = Vec<T>{};
                            }
                        }
                    } else
                        tile_z<T>(rows, points, chosen, b, q, S);
                    if (job.code == SLIMSVM_EXP2)
                        exp2_tile<T>(S, rows, chosen, b);
                    else
                        map_tile<T>(S, rows, chosen, b, job);
                    for (int r = 0; r < ROWS && b + r < chosen.n; ++r)
                        store_values<T>(S[r], first_line + (b + r) * job.columns + q * PANEL<T>, left);
                }
            }
    }
}

// Sums of a tile's rows and one panel: all rows go by some features before the next ones, which stay in the nearest
// cache meanwhile.
template <class T>
inline void panel_sums(const RowsOf<T>& rows, const TileRows<T>& chosen, const T* panel, const T* base,
                       Vec<T> (&S)[ROWS_PER_TILE / ROWS][ROWS][VECTORS]) {
    constexpr int64_t PART = PART_BYTES / (PANEL<T> * int64_t(sizeof(T)));
    for (int64_t part = 0; part < rows.n_features; part += PART)
        for (int64_t b = 0; b < chosen.n; b += ROWS) {
            const T* dense[ROWS];
            find_dense<T>(chosen, b, dense);
            SLIMSVM_EACH (r, ROWS) dense[r] += part;
            sums_apart<T>(dense, panel + part * PANEL<T>, least(PART, rows.n_features - part), part ? nullptr : base,
                          S[b / ROWS]);
        }
}

template <class T>
SLIMSVM_INLINE void add_plain(Vec<T> (&S)[ROWS][VECTORS], const TileRows<T>& chosen, int64_t b, const T* weights,
                              Vec<T>* sums) {
    if (chosen.is_near[b / ROWS])
        add_exp2<T, true>(S, chosen, b, weights, sums + b);
    else
        add_exp2<T, false>(S, chosen, b, weights, sums + b);
}

// The usual case: one output, one segment, 2^z, dense rows. All rows of a tile go by a panel before the next one.
template <class T, class Step, bool APART>
inline void plain_panels(const RowsOf<T>& rows, const PointsOf<T>& points, const WeightsOf<T>& weights,
                         const TileRows<T>& chosen, int64_t q_lo, int64_t q_hi, Vec<T>* sums) {
    for (int64_t q = q_lo; q < q_hi; ++q) {
        const T *panel = points.panels + q * PANEL<T> * rows.n_features, *base = points.base + q * PANEL<T>;
        const T* w = weights.values + q * PANEL<T>;
        if constexpr (APART) {
            Vec<T> S[ROWS_PER_TILE / ROWS][ROWS][VECTORS];
            panel_sums<T>(rows, chosen, panel, base, S);
            for (int64_t b = 0; b < chosen.n; b += ROWS) add_plain<T>(S[b / ROWS], chosen, b, w, sums);
        } else {
            for (int64_t b = 0; b < chosen.n; b += ROWS) {
                const T* dense[ROWS];
                find_dense<T>(chosen, b, dense);
                Vec<T> S[ROWS][VECTORS];
                tile_sums<T, Step>(dense, panel, rows.n_features, base, S);
                add_plain<T>(S, chosen, b, w, sums);
            }
        }
    }
}

// Any map, form, number of outputs and segments. Returns the segment whose sums are still in `sums`.
template <class T>
inline int64_t weighted_panels(const RowsOf<T>& rows, const PointsOf<T>& points, const WeightsOf<T>& weights,
                               const TileRows<T>& chosen, const Job& job, int64_t b, int64_t q_lo, int64_t q_hi,
                               Scratch<T>& scratch) {
    const int64_t m = weights.m, columns = weights.n_segments * m;
    const bool is_csc = points.form >= SLIMSVM_CSC_INNER;
    Vec<T>* sums = scratch.sums + b * m;
    if (is_csc) sparse_z<T>(rows, points, chosen, b, scratch.z);
    int64_t segment = weights.segments[weights.first[q_lo]];
    for (int64_t q = q_lo; q < q_hi; ++q) {
        Vec<T> S[ROWS][VECTORS];
        if (is_csc)
            for (int r = 0; r < ROWS; ++r)
                for (int v = 0; v < VECTORS; ++v)
                    S[r][v] = load<T>(scratch.z + (r * points.n_panels + q) * PANEL<T> + v * LANES<T>);
        else
            tile_z<T>(rows, points, chosen, b, q, S);
        map_tile<T>(S, rows, chosen, b, job);
        for (int64_t e = weights.first[q]; e < weights.first[q + 1]; ++e) {
            // Sums stay in the working type for one chunk of panels of one segment.
            if (weights.segments[e] != segment || (q % CHUNK_PANELS == 0 && e == weights.first[q])) {
                for (int64_t c = 0; c < m; ++c)
                    flush<T>(sums + c * ROWS, scratch.totals + b * columns + segment * m + c, columns);
                segment = weights.segments[e];
            }
            for (int64_t c = 0; c < m; ++c)
                add_weighted<T>(S, weights.values + (e * m + c) * PANEL<T>, sums + c * ROWS);
        }
    }
    return segment;
}

// Scores of the tiles lo, ..., hi - 1 of the chosen rows: out (n, columns).
template <class T>
inline void score_tiles(const RowsOf<T>& rows, const PointsOf<T>& points, const WeightsOf<T>& weights, const Job& job,
                        int64_t lo, int64_t hi, Scratch<T>& scratch, T* out) {
    const int64_t m = weights.m, columns = job.columns, n_panels = points.n_panels;
    const bool is_csc = points.form >= SLIMSVM_CSC_INNER;
    const bool is_plain = points.form <= SLIMSVM_MANHATTAN && job.code == SLIMSVM_EXP2 && columns == 1;
    const bool is_apart = VECTOR_BYTES * int(sizeof(T)) >= 256 && rows.n_features >= APART_SCORES<T>;
    const int64_t panel_bytes = most(int64_t(1), PANEL<T> * rows.n_features * int64_t(sizeof(T)));
    const int64_t chunk = is_csc ? n_panels : least(CHUNK_PANELS, most(int64_t(1), CHUNK_BYTES / panel_bytes));
    TileRows<T> chosen;
    for (int64_t tile = lo; tile < hi; ++tile) {
        choose_rows(rows, job, tile, is_plain, chosen);
        for (int64_t i = 0; i < chosen.n * columns; ++i) scratch.totals[i] = 0.0;
        for (int64_t i = chosen.n * columns; i < ROWS_PER_TILE * columns; ++i) scratch.totals[i] = 0.0;
        for (int64_t q_lo = 0; q_lo < n_panels; q_lo += chunk) {
            const int64_t q_hi = least(n_panels, q_lo + chunk);
            int64_t segment = 0;
            if (is_plain && points.form == SLIMSVM_MANHATTAN)
                plain_panels<T, Manhattan, false>(rows, points, weights, chosen, q_lo, q_hi, scratch.sums);
            else if (is_plain && is_apart)
                plain_panels<T, Inner, true>(rows, points, weights, chosen, q_lo, q_hi, scratch.sums);
            else if (is_plain)
                plain_panels<T, Inner, false>(rows, points, weights, chosen, q_lo, q_hi, scratch.sums);
            else
                for (int64_t b = 0; b < chosen.n; b += ROWS)
                    segment = weighted_panels<T>(rows, points, weights, chosen, job, b, q_lo, q_hi, scratch);
            for (int64_t b = 0; b < chosen.n; b += ROWS)
                for (int64_t c = 0; c < m; ++c)
                    flush<T>(scratch.sums + b * m + c * ROWS, scratch.totals + b * columns + segment * m + c, columns);
        }
        T* values = out + tile * ROWS_PER_TILE * columns;
        for (int64_t r = 0; r < chosen.n; ++r)
            for (int64_t j = 0; j < columns; ++j)
                values[r * columns + j] = T(scratch.totals[r * columns + j] * chosen.shift[r]);
    }
}

}  // namespace slimsvm::SLIMSVM_ISA
