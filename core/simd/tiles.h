// Register tiles: ROWS rows times one panel of points, whose sums stay in registers while the features go by.
//
// A panel is PANEL<T> points wide and laid out feature after feature. Every row goes through the same instructions
// wherever it stands in a tile: its values do not depend on the rows beside it.
#pragma once

#include "simd/vector.h"

namespace slimsvm::SLIMSVM_ISA {

constexpr int ROWS = 6;
// Rows that one task takes at least: they share a chunk of points in the second cache.
constexpr int64_t ROWS_PER_TILE = 8 * ROWS;

struct Inner {
    template <class T>
    static SLIMSVM_INLINE Vec<T> add(Vec<T> sum, T x, Vec<T> p) {
        return sum + x * p;
    }
};
struct Manhattan {
    template <class T>
    static SLIMSVM_INLINE Vec<T> add(Vec<T> sum, T x, Vec<T> p) {
        return sum - magnitude<T>(x - p);
    }
};
// |x| + |p| - |x - p|, which is 0 where either is: what a feature that both sides have takes off the distance.
struct Shared {
    template <class T>
    static SLIMSVM_INLINE Vec<T> add(Vec<T> sum, T x, Vec<T> p) {
        return sum + (magnitude<T>(splat<T>(x)) + magnitude<T>(p) - magnitude<T>(x - p));
    }
};

// sums[r][v] += Step(row r, panel), feature after feature: the first WIDTH vectors of the panel.
template <class T, class Step, int WIDTH>
SLIMSVM_INLINE void add_features(const T* const (&rows)[ROWS], const T* panel, int64_t n_features,
                                 Vec<T> (&sums)[ROWS][WIDTH]) {
    for (int64_t c = 0; c < n_features; ++c, panel += PANEL<T>) {
        Vec<T> p[WIDTH];
        SLIMSVM_EACH (v, WIDTH) p[v] = load<T>(panel + v * LANES<T>);
        SLIMSVM_EACH (r, ROWS)
            SLIMSVM_EACH (v, WIDTH) sums[r][v] = Step::template add<T>(sums[r][v], rows[r][c], p[v]);
    }
}

// S[r][v] = base + sum over the features of Step(row r, panel).
template <class T, class Step, int WIDTH = VECTORS>
SLIMSVM_INLINE void tile_sums(const T* const (&rows)[ROWS], const T* panel, int64_t n_features, const T* base,
                              Vec<T> (&S)[ROWS][WIDTH]) {
    Vec<T> sums[ROWS][WIDTH];  // apart from S, which may lie in memory: these stay in registers
    SLIMSVM_EACH (r, ROWS)
        SLIMSVM_EACH (v, WIDTH) sums[r][v] = load<T>(base + v * LANES<T>);
    add_features<T, Step>(rows, panel, n_features, sums);
    SLIMSVM_EACH (r, ROWS)
        SLIMSVM_EACH (v, WIDTH) S[r][v] = sums[r][v];
}

// The same for one dense row and PANELS panels, `apart` numbers from one to the next.
template <class T, class Step, int PANELS = 1>
SLIMSVM_INLINE void row_sums(const T* row, const T* panels, int64_t n_features, const T* base,
                             Vec<T> (&S)[PANELS * VECTORS], int64_t apart = 0) {
    SLIMSVM_EACH (v, PANELS * VECTORS) S[v] = load<T>(base + v * LANES<T>);
    for (int64_t c = 0; c < n_features; ++c, panels += PANEL<T>)
        SLIMSVM_EACH (q, PANELS)
            SLIMSVM_EACH (v, VECTORS)
                S[q * VECTORS + v] =
                    Step::template add<T>(S[q * VECTORS + v], row[c], load<T>(panels + q * apart + v * LANES<T>));
}

// The same for one CSR row of n entries.
template <class T, class Step, class Index, int PANELS = 1>
SLIMSVM_INLINE void sparse_row_sums(const T* values, const Index* columns, int64_t n, const T* panels, const T* base,
                                    Vec<T> (&S)[PANELS * VECTORS], int64_t apart = 0) {
    SLIMSVM_EACH (v, PANELS * VECTORS) S[v] = load<T>(base + v * LANES<T>);
    for (int64_t t = 0; t < n; ++t) {
        const T* feature = panels + int64_t(columns[t]) * PANEL<T>;
        SLIMSVM_EACH (q, PANELS)
            SLIMSVM_EACH (v, VECTORS)
                S[q * VECTORS + v] =
                    Step::template add<T>(S[q * VECTORS + v], values[t], load<T>(feature + q * apart + v * LANES<T>));
    }
}

}  // namespace slimsvm::SLIMSVM_ISA
