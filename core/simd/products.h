// Small dense matrix products in register tiles.
//
//     multiply:  C (+)= A B    A read number by number, so that its transpose costs nothing
//     dots:      C = A B^T     rows of A and B that are short vectors side by side: for few rows of B
//
// Sums are of type S. A, B and C may be of other types: float numbers are summed in double where S is double, and
// float sums added to doubles where C is. Every element of C is summed over t in the same order whatever n and k are.
#pragma once

#include "simd/parts.h"
#include "simd/tiles.h"

namespace slimsvm::SLIMSVM_ISA {

// The first n numbers of `sums` to place, or added to what is there.
template <class S, class C>
SLIMSVM_INLINE void put(C* place, Vec<S> sums, bool adds, int64_t n) {
    if constexpr (sizeof(S) == sizeof(C)) {
        if (n == LANES<S>)
            store<S>(place, adds ? load<S>(place) + sums : sums);
        else
            store_part<S>(place, adds ? load_part<S>(place, n) + sums : sums, n);
    } else {
        constexpr int64_t half = LANES<C>;
        S lanes[LANES<S>];
        store<S>(lanes, sums);
        put<C, C>(place, load_wide(lanes), adds, least(n, half));
        if (n > half) put<C, C>(place + half, load_wide(lanes + half), adds, n - half);
    }
}

// SIZE rows of C times WIDTH vectors of its columns, the last vector `last` numbers wide.
template <class S, int SIZE, int WIDTH, bool WHOLE, class A, class B, class C>
SLIMSVM_INLINE void product_tile(const A* a, int64_t row_a, int64_t step_a, const B* b, int64_t stride_b, int64_t depth,
                                 C* c, int64_t stride_c, bool adds, int64_t last) {
    Vec<S> sums[SIZE][WIDTH] = {};
    for (int64_t t = 0; t < depth; ++t, b += stride_b, a += step_a) {
        Vec<S> p[WIDTH];
        for (int v = 0; v < WIDTH; ++v) p[v] = WHOLE ? load_as<S>(b + v * LANES<S>) : load_part_as<S>(b, last);
        for (int r = 0; r < SIZE; ++r)
            for (int v = 0; v < WIDTH; ++v) sums[r][v] += S(a[r * row_a]) * p[v];
    }
    for (int r = 0; r < SIZE; ++r)
        for (int v = 0; v < WIDTH; ++v)
            put<S, C>(c + r * stride_c + v * LANES<S>, sums[r][v], adds, WHOLE ? int64_t(LANES<S>) : last);
}

template <class S, int WIDTH, bool WHOLE, class A, class B, class C>
inline void product_columns(int64_t n, int64_t depth, const A* a, int64_t row_a, int64_t step_a, const B* b,
                            int64_t stride_b, C* c, int64_t stride_c, bool adds, int64_t last) {
    int64_t i = 0;
    for (; i + ROWS <= n; i += ROWS)
        product_tile<S, ROWS, WIDTH, WHOLE>(a + i * row_a, row_a, step_a, b, stride_b, depth, c + i * stride_c,
                                            stride_c, adds, last);
    for (; i + ROWS / 2 <= n; i += ROWS / 2)
        product_tile<S, ROWS / 2, WIDTH, WHOLE>(a + i * row_a, row_a, step_a, b, stride_b, depth, c + i * stride_c,
                                                stride_c, adds, last);
    for (; i < n; ++i)
        product_tile<S, 1, WIDTH, WHOLE>(a + i * row_a, row_a, step_a, b, stride_b, depth, c + i * stride_c, stride_c,
                                         adds, last);
}

// C (n x k, rows stride_c apart) = A (n x depth) B (depth x k), or C += A B if `adds`. Element (i, t) of A lies at
// a[i * row_a + t * step_a]; rows of B are stride_b apart.
template <class S, class A, class B, class C>
inline void multiply(int64_t n, int64_t k, int64_t depth, const A* a, int64_t row_a, int64_t step_a, const B* b,
                     int64_t stride_b, C* c, int64_t stride_c, bool adds) {
    int64_t j = 0;
    for (; j + PANEL<S> <= k; j += PANEL<S>)
        product_columns<S, VECTORS, true>(n, depth, a, row_a, step_a, b + j, stride_b, c + j, stride_c, adds, 0);
    if constexpr (VECTORS > 2)
        for (; j + 2 * LANES<S> <= k; j += 2 * LANES<S>)
            product_columns<S, 2, true>(n, depth, a, row_a, step_a, b + j, stride_b, c + j, stride_c, adds, 0);
    for (; j + LANES<S> <= k; j += LANES<S>)
        product_columns<S, 1, true>(n, depth, a, row_a, step_a, b + j, stride_b, c + j, stride_c, adds, 0);
    if (j < k) product_columns<S, 1, false>(n, depth, a, row_a, step_a, b + j, stride_b, c + j, stride_c, adds, k - j);
}

// C of SIZE rows of A and WIDTH rows of B.
template <class S, int SIZE, int WIDTH, class A, class B, class C>
SLIMSVM_INLINE void dots_tile(int64_t depth, const A* a, int64_t stride_a, const B* b, int64_t stride_b, C* c,
                              int64_t stride_c) {
    Vec<S> sums[SIZE][WIDTH] = {};
    int64_t t = 0;
    for (; t + LANES<S> <= depth; t += LANES<S>) {
        Vec<S> p[WIDTH];
        for (int v = 0; v < WIDTH; ++v) p[v] = load_as<S>(b + v * stride_b + t);
        for (int r = 0; r < SIZE; ++r) {
            const Vec<S> x = load_as<S>(a + r * stride_a + t);
            for (int v = 0; v < WIDTH; ++v) sums[r][v] += x * p[v];
        }
    }
    if (t < depth)
        for (int r = 0; r < SIZE; ++r) {
            const Vec<S> x = load_part_as<S>(a + r * stride_a + t, depth - t);
            for (int v = 0; v < WIDTH; ++v) sums[r][v] += x * load_part_as<S>(b + v * stride_b + t, depth - t);
        }
    for (int r = 0; r < SIZE; ++r)
        for (int v = 0; v < WIDTH; ++v) c[r * stride_c + v] = C(total(sums[r][v]));
}

template <class S, int WIDTH, class A, class B, class C>
inline void dots_columns(int64_t n, int64_t depth, const A* a, int64_t stride_a, const B* b, int64_t stride_b, C* c,
                         int64_t stride_c) {
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        dots_tile<S, 4, WIDTH>(depth, a + i * stride_a, stride_a, b, stride_b, c + i * stride_c, stride_c);
    for (; i < n; ++i)
        dots_tile<S, 1, WIDTH>(depth, a + i * stride_a, stride_a, b, stride_b, c + i * stride_c, stride_c);
}

// C (n x m) = A (n x depth) B^T, B (m x depth); rows are stride_a, stride_b and stride_c apart.
template <class S, class A, class B, class C>
inline void dots(int64_t n, int64_t m, int64_t depth, const A* a, int64_t stride_a, const B* b, int64_t stride_b, C* c,
                 int64_t stride_c) {
    int64_t j = 0;
    for (; j + VECTORS <= m; j += VECTORS)
        dots_columns<S, VECTORS>(n, depth, a, stride_a, b + j * stride_b, stride_b, c + j, stride_c);
    for (; j < m; ++j) dots_columns<S, 1>(n, depth, a, stride_a, b + j * stride_b, stride_b, c + j, stride_c);
}

}  // namespace slimsvm::SLIMSVM_ISA
