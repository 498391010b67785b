// Models of at most a given number of points: slots of points, and how they fill and empty.
//
// The points lie in panels, feature after feature, one slot each; slots 0, ..., n - 1 are used. beta[c, j] is the
// coefficient of slot j for output c, own[j] its k(p, p), k holds the kernel values of one row, and Q is the inverse of
// the points' kernel matrix where a rule keeps it.
#pragma once

#include <string.h>

#include "kernels/maps.h"
#include "simd/extremes.h"
#include "slimsvm.h"
#include "support/call.h"

namespace slimsvm::SLIMSVM_ISA {

// What happened: rows met, rows that changed the model, points that came in; mergers, points removed and projected
// away; kernel evaluations; sums of the squared norm of what the budget took away, of weighted losses and of errors of
// the rows as they were met.
struct Counts {
    double steps, changed, added, merged, removed, projected, evals, degradation, loss, errors;
};

using Rule = struct slimsvm_budget_rule;

template <class T>
struct BudgetPoints {
    T *panels, *base, *k, *x, *y;
    const T* ratio;
    const double* diagonal;
    double *own, *beta, *sums, *mean, *Q, *v, *least_beta;
    int64_t *origin, *used;
    int32_t* slot_of;
    int64_t n, d, m, n_slots, n_rows, form, code, degree;

    explicit BudgetPoints(const struct slimsvm_budget_points& points)
        : panels(static_cast<T*>(points.panels)),
          base(static_cast<T*>(points.base)),
          k(static_cast<T*>(points.k)),
          x(static_cast<T*>(points.x)),
          y(static_cast<T*>(points.y)),
          ratio(static_cast<const T*>(points.ratio)),
          diagonal(points.diagonal),
          own(points.own),
          beta(points.beta),
          sums(points.sums),
          mean(points.mean),
          Q(points.n_inverse ? points.inverse : nullptr),
          v(points.v),
          least_beta(points.least),
          origin(points.origin),
          used(points.used),
          slot_of(points.slot_of),
          n(points.used[0]),
          d(points.n_features),
          m(points.m),
          n_slots(points.n_slots),
          n_rows(points.n_rows),
          form(points.form),
          code(points.code),
          degree(points.degree) {}
    void close() const { used[0] = n; }

    double* beta_of(int64_t c) const { return beta + c * n_slots; }
    double* sums_of(int64_t c) const { return sums + c * n_slots; }
    double* Q_of(int64_t j) const { return Q + j * n_slots; }

    // The first number of slot j; the others are a panel apart each.
    T* slot(int64_t j) const { return panels + (j - j % PANEL<T>)*d + j % PANEL<T>; }
    void read(int64_t j, T* numbers) const {
        const T* place = slot(j);
        for (int64_t f = 0; f < d; ++f) numbers[f] = place[f * PANEL<T>];
    }
    void write(int64_t j, const T* numbers) const {
        T* place = slot(j);
        for (int64_t f = 0; f < d; ++f) place[f * PANEL<T>] = numbers[f];
    }

    // Slots in the panels that are used.
    int64_t n_in_panels() const { return divide_up(n, PANEL<T>) * PANEL<T>; }
    // Whether row i is a point of the model.
    bool holds(int64_t i) const { return slot_of[i] >= 0 && slot_of[i] < n; }
    bool is_at_zero(const double* values, int64_t j) const {
        bool zero = true;
        for (int64_t c = 0; c < m; ++c) zero &= values[c * n_slots + j] == 0.0;
        return zero;
    }
    // |beta| of slot j came to be this: no |beta| of a single output is below `least_beta`.
    void lower_least(double size) const { *least_beta = least(*least_beta, size); }

    // Row i in a new slot with coefficients 0: its numbers are in x, `h` is its base. Returns the slot.
    int64_t add(int64_t i, T h) {
        const int64_t j = n++;
        write(j, x);
        base[j] = h;
        own[j] = diagonal[i];
        origin[j] = i;
        slot_of[i] = int32_t(j);
        for (int64_t c = 0; c < m; ++c) beta_of(c)[j] = sums_of(c)[j] = 0.0;
        return j;
    }

    // Slot j is a training row no more.
    void forget_origin(int64_t j) const {
        if (origin[j] >= 0) slot_of[origin[j]] = -1;
        origin[j] = -1;
    }

    // Slot j goes, the last one takes its place.
    void drop(int64_t j) {
        const int64_t last = --n;
        forget_origin(j);
        if (j != last) {
            const T* from = slot(last);
            T* to = slot(j);
            for (int64_t f = 0; f < d; ++f) to[f * PANEL<T>] = from[f * PANEL<T>];
            base[j] = base[last];
            own[j] = own[last];
            origin[j] = origin[last];
            if (origin[j] >= 0) slot_of[origin[j]] = int32_t(j);
            if (Q) move_inverse(last, j);
        }
        for (int64_t c = 0; c < m; ++c) {
            beta_of(c)[j] = beta_of(c)[last];
            sums_of(c)[j] = sums_of(c)[last];
            beta_of(c)[last] = sums_of(c)[last] = 0.0;
        }
    }

    void move_inverse(int64_t from, int64_t to) const {
        for (int64_t t = 0; t < from; ++t) Q_of(to)[t] = Q_of(from)[t];
        for (int64_t t = 0; t < from; ++t) Q_of(t)[to] = Q_of(to)[t];
        Q_of(to)[to] = Q_of(from)[from];
    }
};

// A slot, and its sum_c beta^2.
struct Smallest {
    int64_t slot;
    double size;
};

// The slot of the least sum_c beta^2, times k(p, p) if `weighted`; there is one.
template <class T>
inline Smallest smallest(const BudgetPoints<T>& points, bool weighted) {
    if (points.m == 1 && !weighted) {
        // A new point that is not above `least_beta` is the smallest one, whatever the others are.
        const double* beta = points.beta;
        int64_t slot = points.n - 1;
        const double newest = fabs(beta[slot]);
        if (newest > *points.least_beta) {
            *points.least_beta = least_magnitude(beta, slot);
            if (newest > *points.least_beta) slot = least(first_within(beta, slot, *points.least_beta), slot);
        }
        return {slot, beta[slot] * beta[slot]};
    }
    Smallest best = {0, HUGE_VAL};
    for (int64_t j = 0; j < points.n; ++j) {
        double size = 0.0;
        for (int64_t c = 0; c < points.m; ++c) size += points.beta_of(c)[j] * points.beta_of(c)[j];
        if (weighted) size *= points.own[j];
        if (size < best.size) best = {j, size};
    }
    return best;
}

// Whether a structure from outside describes a model: codes and places within bounds. Every point must be a training
// row where kernel values are given.
inline bool is_model(const struct slimsvm_budget_points& points, int64_t max_points) {
    const int64_t panel = points.real_size == 4 ? PANEL<float> : PANEL<double>;
    if (max_points < 1 || points.n_slots % panel || max_points > points.n_slots - 2 || points.used[0] < 0 ||
        points.used[0] > max_points || !holds(points.n_values, points.n_slots, points.n_features) ||
        (points.n_inverse && points.n_inverse != points.n_slots) || points.m < 1 ||
        !is_map(points.code, points.degree) || points.form < 0 || points.form > SLIMSVM_GIVEN)
        return false;
    for (int64_t j = 0; j < points.used[0]; ++j)
        if (points.origin[j] < (points.form == SLIMSVM_GIVEN ? 0 : -1) || points.origin[j] >= points.n_rows)
            return false;
    return true;
}

}  // namespace slimsvm::SLIMSVM_ISA
