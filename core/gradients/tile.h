// A tile of rows: kernel values with all basis vectors, scores, and what the rows with a loss add to the gradient.
//
// Everything is in folded coordinates, basis vectors feature after feature. With r_ic the gradient of the loss in the
// score f_ic and W_ij = k'(x_i, b_j) sum_c r_ic coef_jc, where k' is the kernel's derivative in the inner product (up
// to a constant factor, left for the end):
//
//     d/d coef_jc = sum_i r_ic k(x_i, b_j)        d/d b_j = sum_i W_ij x_i - [norms] b_j sum_i W_ij
//     [feature scales] d/d log scale_c = -sum_ij W_ij (x_ic - b_jc)^2
#pragma once

#include <string.h>

#include "gradients/noise.h"
#include "gradients/parameters.h"
#include "kernels/maps.h"
#include "scores/tile.h"
#include "simd/products.h"
#include "simd/reduce.h"

namespace slimsvm::SLIMSVM_ISA {

// One thread's memory for a tile.
template <class T>
struct Tile {
    T* rows;          // (size, d) dense rows
    T* half;          // (size)
    T* K;             // (size, width) kernel values
    T* D;             // (size, width) their derivatives, where these are not the values
    T* V;             // (size, width) r coef^T, for several outputs
    T* scores;        // (size, outputs)
    T* r;             // (size, m)
    int64_t* chosen;  // (size) numbers of the rows
    int64_t* active;  // (size) places of those with a loss
    int64_t* truth;   // (size) labels, of sequences
    int64_t* path;    // (size)
    uint8_t* chain;   // memory for the recursions

    static Tile at(const struct slimsvm_descent& descent, int64_t size, int64_t chain_bytes, Room& room) {
        const int64_t width = padded<T>(descent.k), outputs = padded<T>(descent.m);
        Tile tile;
        tile.rows = room.take<T>(size * descent.d);
        tile.half = room.take<T>(size);
        tile.K = room.take<T>(size * width);
        tile.D = slope_is_value(descent.code) ? tile.K : room.take<T>(size * width);
        tile.V = room.take<T>(descent.m > 1 ? size * width : 0);
        tile.scores = room.take<T>(size * outputs);
        tile.r = room.take<T>(size * descent.m);
        tile.chosen = room.take<int64_t>(size);
        tile.active = room.take<int64_t>(size);
        tile.truth = room.take<int64_t>(chain_bytes ? size : 0);
        tile.path = room.take<int64_t>(chain_bytes ? size : 0);
        tile.chain = room.take<uint8_t>(chain_bytes);
        return tile;
    }
};

// The n rows whose numbers are at `index`: numbers and norms, and of dense ones the values, with noise and scales.
template <class T>
inline void gather_rows(const struct slimsvm_descent& descent, const Parameters<T>& parameters, const RowsOf<T>& rows,
                        const int64_t* index, int64_t n, int64_t step, const Tile<T>& tile) {
    const int64_t d = parameters.d;
    const T* noise = static_cast<const T*>(descent.noise);
    for (int64_t i = 0; i < n; ++i) {
        tile.chosen[i] = index[i];
        tile.half[i] = rows.half[index[i]];
        if (rows.indptr) continue;
        T* x = tile.rows + i * d;
        memcpy(x, rows.values + index[i] * d, size_t(d) * sizeof(T));
        if (noise) add_noise(index[i], step, d, noise, x);
        if (descent.learns_scales)
            for (int64_t c = 0; c < d; ++c) x[c] *= parameters.scale[c];
        if (noise || descent.learns_scales) tile.half[i] = descent.has_norms ? T(-0.5 * dot(x, x, d)) : T(0);
    }
}

// out[j] = sum over the features of a CSR row of x_c points[c, j].
template <class T, class Index>
inline void sparse_products(const RowsOf<T>& rows, int64_t row, const Parameters<T>& parameters, T* out) {
    const Index* columns = static_cast<const Index*>(rows.columns);
    const int64_t begin = rows.indptr[row], end = rows.indptr[row + 1], width = parameters.width;
    int64_t j = 0;
    for (; j + PANEL<T> <= width; j += PANEL<T>) {
        Vec<T> sums[VECTORS] = {};
        for (int64_t t = begin; t < end; ++t)
            for (int v = 0; v < VECTORS; ++v)
                sums[v] += rows.values[t] * load<T>(parameters.points + int64_t(columns[t]) * width + j + v * LANES<T>);
        for (int v = 0; v < VECTORS; ++v) store<T>(out + j + v * LANES<T>, sums[v]);
    }
    for (; j < width; j += LANES<T>) {
        Vec<T> sums = {};
        for (int64_t t = begin; t < end; ++t)
            sums += rows.values[t] * load<T>(parameters.points + int64_t(columns[t]) * width + j);
        store<T>(out + j, sums);
    }
}

// K and D of the n rows of a tile, which are CSR rows where `sparse` is not null.
template <class T>
inline void kernel_values(const struct slimsvm_descent& descent, const Parameters<T>& parameters,
                          const RowsOf<T>* sparse, int64_t n, const Tile<T>& tile) {
    const int64_t width = parameters.width;
    if (!sparse)
        multiply<T>(n, width, parameters.d, tile.rows, parameters.d, 1, parameters.points, width, tile.K, width, false);
    for (int64_t i = 0; i < n; ++i) {
        T* values = tile.K + i * width;
        if (sparse && sparse->column_size == 8)
            sparse_products<T, int64_t>(*sparse, tile.chosen[i], parameters, values);
        else if (sparse)
            sparse_products<T, int32_t>(*sparse, tile.chosen[i], parameters, values);
        map_with_slopes(values, tile.D + i * width, parameters.half, tile.half[i], width, descent.code, descent.degree);
    }
}

// scores = K coef + intercept (may be null).
template <class T>
inline void tile_scores(const Parameters<T>& parameters, const T* intercept, int64_t n, const Tile<T>& tile) {
    const int64_t width = parameters.width, outputs = parameters.outputs, m = parameters.m;
    if (m == 1)
        dots<T>(n, 1, width, tile.K, width, parameters.turned_coef, width, tile.scores, outputs);
    else
        multiply<T>(n, outputs, parameters.k, tile.K, width, 1, parameters.wide_coef, outputs, tile.scores, outputs,
                    false);
    for (int64_t i = 0; intercept && i < n; ++i)
        for (int64_t c = 0; c < m; ++c) tile.scores[i * outputs + c] += intercept[c];
}

// Moves the n active rows of a tile to its front, with r times `share`: the others cost nothing from here on.
template <class T>
inline void close_ranks(const Parameters<T>& parameters, int64_t n, double share, const Tile<T>& tile, bool is_sparse) {
    const int64_t width = parameters.width, m = parameters.m, d = parameters.d;
    for (int64_t to = 0; to < n; ++to) {
        const int64_t i = tile.active[to];
        for (int64_t c = 0; c < m; ++c) tile.r[to * m + c] = T(double(tile.r[i * m + c]) * share);
        if (to == i) continue;
        memcpy(tile.K + to * width, tile.K + i * width, size_t(width) * sizeof(T));
        if (tile.D != tile.K) memcpy(tile.D + to * width, tile.D + i * width, size_t(width) * sizeof(T));
        if (!is_sparse) memcpy(tile.rows + to * d, tile.rows + i * d, size_t(d) * sizeof(T));
        for (int64_t c = 0; c < m; ++c)
            tile.scores[to * parameters.outputs + c] = tile.scores[i * parameters.outputs + c];
        tile.chosen[to] = tile.chosen[i];
    }
}

// coef_sums[j] += r K_j and D_j *= r, and where weights are asked for weight[j] += D_j: one row, one output.
template <class T>
inline void weigh_row(T r, int64_t width, const T* K, T* D, T* coef_sums, T* weight) {
    for (int64_t j = 0; j < width; j += LANES<T>) {
        store<T>(coef_sums + j, load<T>(coef_sums + j) + r * load<T>(K + j));
        const Vec<T> w = r * load<T>(D + j);
        store<T>(D + j, w);
        if (weight) store<T>(weight + j, load<T>(weight + j) + w);
    }
}

// Adds G[c, j] += x_c W_j over the features of a CSR row.
template <class T, class Index>
inline void add_sparse_row(const RowsOf<T>& rows, int64_t row, int64_t width, const T* W, T* G) {
    const Index* columns = static_cast<const Index*>(rows.columns);
    for (int64_t t = rows.indptr[row]; t < rows.indptr[row + 1]; ++t) {
        T* out = G + int64_t(columns[t]) * width;
        for (int64_t j = 0; j < width; j += LANES<T>)
            store<T>(out + j, load<T>(out + j) + rows.values[t] * load<T>(W + j));
    }
}

// Adds the gradient of the first n rows of a tile to a group's sums; the first ones set G instead. Spoils D.
template <class T>
inline void add_gradient(const Parameters<T>& parameters, const RowsOf<T>* sparse, bool is_first, int64_t n,
                         const Tile<T>& tile, const GroupSums<T>& sums) {
    const int64_t width = parameters.width, m = parameters.m, d = parameters.d;
    for (int64_t i = 0; i < n; ++i)
        for (int64_t c = 0; c < m; ++c) sums.intercept[c] += tile.r[i * m + c];
    if (m == 1) {
        T* weight = tile.D == tile.K ? nullptr : sums.weight;
        for (int64_t i = 0; i < n; ++i)
            weigh_row<T>(tile.r[i], width, tile.K + i * width, tile.D + i * width, sums.coef, weight);
    } else {
        multiply<T>(m, width, n, tile.r, 1, m, tile.K, width, sums.coef, width, true);
        multiply<T>(n, width, m, tile.r, m, 1, parameters.turned_coef, width, tile.V, width, false);
        for (int64_t i = 0; i < n * width; i += LANES<T>) {
            const Vec<T> w = load<T>(tile.D + i) * load<T>(tile.V + i);
            T* weight = sums.weight + i % width;
            store<T>(tile.D + i, w);
            store<T>(weight, load<T>(weight) + w);
        }
    }
    if (!sparse) {
        multiply<T>(d, width, n, tile.rows, 1, d, tile.D, width, sums.basis, width, !is_first);
        return;
    }
    if (is_first) memset(sums.basis, 0, size_t(d * width) * sizeof(T));
    for (int64_t i = 0; i < n; ++i)
        if (sparse->column_size == 8)
            add_sparse_row<T, int64_t>(*sparse, tile.chosen[i], width, tile.D + i * width, sums.basis);
        else
            add_sparse_row<T, int32_t>(*sparse, tile.chosen[i], width, tile.D + i * width, sums.basis);
}

// scale_c += sum_i a_i x_ic^2 with a_i = sum_c r_ic sum_j D_ij coef_jc. Where D is K the sum over j is
// f_ic - intercept_c.
template <class T>
inline void add_scales(const Parameters<T>& parameters, const T* intercept, int64_t n, const Tile<T>& tile, T* scale) {
    const int64_t d = parameters.d, m = parameters.m, width = parameters.width;
    for (int64_t i = 0; i < n; ++i) {
        T a = 0;
        for (int64_t c = 0; c < m; ++c) {
            const T moved = tile.D == tile.K
                                ? tile.scores[i * parameters.outputs + c] - (intercept ? intercept[c] : T(0))
                                : T(dot(tile.D + i * width, parameters.turned_coef + c * width, width));
            a += tile.r[i * m + c] * moved;
        }
        const T* x = tile.rows + i * d;
        for (int64_t c = 0; c < d; ++c) scale[c] += a * x[c] * x[c];
    }
}

}  // namespace slimsvm::SLIMSVM_ISA
