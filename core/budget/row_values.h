// Kernel values of one row with all points of a budgeted model, by the form of the rows.
#pragma once

#include "budget/points.h"
#include "kernels/maps.h"
#include "simd/tiles.h"

namespace slimsvm::SLIMSVM_ISA {

// Panels whose sums are in registers at a time: each number of a row is then loaded once for all of them, and there are
// as many sums side by side as the processor's additions take.
constexpr int PANELS_AT_A_TIME = 8 / VECTORS;

// Rows of numbers: Step adds one feature's part.
template <class T, class Step>
struct DenseForm {
    static constexpr bool IS_GIVEN = false;
    const T* values;
    int64_t d;

    // S = base + sum over the features, for the row at `at` and as many panels from the slot `first` on.
    template <int PANELS>
    SLIMSVM_INLINE void sums(int64_t at, const BudgetPoints<T>& points, int64_t first,
                             Vec<T> (&S)[PANELS * VECTORS]) const {
        row_sums<T, Step, PANELS>(values + at * d, points.panels + first * d, d, points.base + first, S, PANEL<T> * d);
    }
    void read(int64_t at, const BudgetPoints<T>& points) const {
        for (int64_t f = 0; f < d; ++f) points.x[f] = values[at * d + f] * points.ratio[f];
    }
    SLIMSVM_INLINE void prefetch(int64_t at) const {
        for (int64_t f = 0; f < d; f += 64 / int64_t(sizeof(T))) __builtin_prefetch(values + at * d + f);
    }
};

template <class T, class Step>
struct SparseForm {
    static constexpr bool IS_GIVEN = false;
    const T* values;
    const int32_t* columns;
    const int64_t* indptr;

    template <int PANELS>
    SLIMSVM_INLINE void sums(int64_t at, const BudgetPoints<T>& points, int64_t first,
                             Vec<T> (&S)[PANELS * VECTORS]) const {
        const int64_t begin = indptr[at];
        sparse_row_sums<T, Step, int32_t, PANELS>(values + begin, columns + begin, indptr[at + 1] - begin,
                                                  points.panels + first * points.d, points.base + first, S,
                                                  PANEL<T> * points.d);
    }
    void read(int64_t at, const BudgetPoints<T>& points) const {
        for (int64_t f = 0; f < points.d; ++f) points.x[f] = 0;
        for (int64_t t = indptr[at]; t < indptr[at + 1]; ++t)
            points.x[columns[t]] = values[t] * points.ratio[columns[t]];
    }
    SLIMSVM_INLINE void prefetch(int64_t at) const {
        __builtin_prefetch(values + indptr[at]);
        __builtin_prefetch(columns + indptr[at]);
    }
};

// Rows of ready kernel values; points are positions in them.
template <class T>
struct GivenForm {
    static constexpr bool IS_GIVEN = true;
    const T* values;
    int64_t n;

    void read(int64_t, const BudgetPoints<T>&) const {}
    SLIMSVM_INLINE void prefetch(int64_t) const {}
};

template <class T, int PANELS, class Form>
SLIMSVM_INLINE void panel_values(const Form& form, int64_t at, T half, const BudgetPoints<T>& points, int64_t first) {
    Vec<T> S[PANELS * VECTORS];
    form.template sums<PANELS>(at, points, first, S);
    if (points.code == SLIMSVM_EXP2) {
        constexpr int count = PANELS % 2 ? VECTORS : 2 * VECTORS;
        for (int v = 0; v < PANELS * VECTORS; v += count)
            values_exp2<T, count>(reinterpret_cast<Vec<T>(&)[count]>(S[v]), half);
    }
    for (int v = 0; v < PANELS * VECTORS; ++v) store<T>(points.k + first + v * LANES<T>, S[v]);
}

template <class T>
SLIMSVM_INLINE void clear_rest(const BudgetPoints<T>& points) {
    for (int64_t j = points.n; j < points.n_in_panels(); ++j) points.k[j] = 0;
}

// points.k = kernel values of the row at `at`, whose h is `half`, with the used slots; in the rest of their last panel
// finite numbers, which beta is 0 for.
template <class T, class Form>
SLIMSVM_INLINE void row_values(const Form& form, int64_t at, T half, const BudgetPoints<T>& points) {
    if constexpr (Form::IS_GIVEN) {
        const T* row = form.values + at * form.n;
        for (int64_t j = 0; j < points.n; ++j) points.k[j] = row[points.origin[j]];
        clear_rest(points);
    } else {
        int64_t first = 0;
        for (; first + (PANELS_AT_A_TIME - 1) * PANEL<T> < points.n; first += PANELS_AT_A_TIME * PANEL<T>)
            panel_values<T, PANELS_AT_A_TIME>(form, at, half, points, first);
        for (; first < points.n; first += PANEL<T>) panel_values<T, 1>(form, at, half, points, first);
        if (points.code == SLIMSVM_EXP2) return;
        map_array<T>(points.k, half, points.n_in_panels(), points.code, points.degree);
        clear_rest(points);
    }
}

// points.k = RBF kernel values of slot r with the used slots; leaves its numbers in points.x.
template <class T>
inline void slot_values(const BudgetPoints<T>& points, int64_t r) {
    points.read(r, points.x);
    row_values(DenseForm<T, Inner>{points.x, points.d}, 0, points.base[r], points);
}

}  // namespace slimsvm::SLIMSVM_ISA
