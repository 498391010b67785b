// The budget rule that projects: a point goes, its projection onto the span of the others stays.
#pragma once

#include "budget/points.h"
#include "simd/reduce.h"

namespace slimsvm::SLIMSVM_ISA {

// A point whose part outside the span of the others is below this share of its own k(x, x), or below the rounding
// errors of the sums it comes from, is projected, not added.
template <class T>
constexpr double SPAN_SHARE = sizeof(T) == 4 ? 1e-5 : 1e-9;
template <class T>
constexpr double SPAN_ROUNDING = sizeof(T) == 4 ? 1e-5 : 1e-11;

// What of a new point, k_ii - k' Q k, is outside the span of the used ones (k its kernel values); v = Q k. 0 where what
// is outside cannot be told from rounding errors.
template <class T>
inline double outside_of_span(const BudgetPoints<T>& points, double k_ii) {
    const T* k = points.k;
    double outside = k_ii, size = k_ii;
    for (int64_t i = 0; i < points.n; ++i) {
        points.v[i] = dot(points.Q_of(i), k, points.n);
        outside -= points.v[i] * double(k[i]);
        size += fabs(points.v[i] * double(k[i]));
    }
    return outside > most(SPAN_SHARE<T> * k_ii, SPAN_ROUNDING<T> * size) ? outside : 0.0;
}

// A point within the span goes to the points: delta_c times v to their coefficients.
template <class T>
inline void add_within_span(const BudgetPoints<T>& points, const double* delta) {
    for (int64_t c = 0; c < points.m; ++c) {
        add_scaled(delta[c], points.v, points.beta_of(c), points.n);
        add_scaled(delta[c] * points.mean[0], points.v, points.sums_of(c), points.n);
    }
}

// Q after point n came in, v = Q k and what of it is outside the span from `outside_of_span`.
template <class T>
inline void extend_inverse(const BudgetPoints<T>& points, double outside) {
    const int64_t n = points.n;
    for (int64_t i = 0; i < n; ++i) {
        add_scaled(points.v[i] / outside, points.v, points.Q_of(i), n);
        points.Q_of(i)[n] = points.Q_of(n)[i] = -points.v[i] / outside;
    }
    points.Q_of(n)[n] = 1.0 / outside;
}

// The point whose projection onto the span of the others loses least goes, its coefficients to the others.
template <class T>
inline void project(BudgetPoints<T>& points, Counts& counts, double unit) {
    const int64_t n = points.n;
    int64_t r = 0;
    double best = HUGE_VAL;
    for (int64_t j = 0; j < n; ++j) {
        double loss = 0.0;
        for (int64_t c = 0; c < points.m; ++c) loss += points.beta_of(c)[j] * points.beta_of(c)[j];
        loss /= most(points.Q_of(j)[j], 1e-300);
        if (loss < best) {
            best = loss;
            r = j;
        }
    }
    const double pivot = most(points.Q_of(r)[r], 1e-300);
    memcpy(points.v, points.Q_of(r), size_t(n) * sizeof(double));
    for (int64_t c = 0; c < points.m; ++c) {
        // What this does to slot r itself goes with it.
        add_scaled(-points.beta_of(c)[r] / pivot, points.v, points.beta_of(c), n);
        add_scaled(-points.sums_of(c)[r] / pivot, points.v, points.sums_of(c), n);
    }
    for (int64_t i = 0; i < n; ++i) add_scaled(-points.v[i] / pivot, points.v, points.Q_of(i), n);
    points.drop(r);
    counts.degradation += best * unit * unit;
    counts.projected += 1.0;
}

}  // namespace slimsvm::SLIMSVM_ISA
