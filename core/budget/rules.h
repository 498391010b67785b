// Budget rules by their codes: a row comes into the model, and what is too many goes. A new rule has its code here, and
// its function in `keep_within`.
#pragma once

#include "budget/merge.h"
#include "budget/project.h"

namespace slimsvm::SLIMSVM_ISA {

enum RuleCode : int64_t { MERGE, PROJECT, REMOVE, N_RULES };

// The smallest point goes, and is lost.
template <class T>
inline void remove(BudgetPoints<T>& points, Counts& counts, double unit) {
    const Smallest found = smallest(points, true);
    if (!points.is_at_zero(points.beta, found.slot)) {
        counts.degradation += found.size * unit * unit;
        counts.removed += 1.0;
    }
    points.drop(found.slot);
}

// Apply the rule until there are at most max_points points; `unit` scales the coefficients of the report.
template <class T>
inline void keep_within(BudgetPoints<T>& points, const Rule& rule, Counts& counts, double unit) {
    while (points.n > rule.max_points) {
        if (rule.code == MERGE)
            merge(points, rule, counts, unit);
        else if (rule.code == PROJECT)
            project(points, counts, unit);
        else
            remove(points, counts, unit);
    }
}

// Whether structures from outside are a rule, and a model that it can work on.
inline bool is_suitable(const struct slimsvm_budget_rule& rule, const struct slimsvm_budget_points& points) {
    if (rule.code < 0 || rule.code >= N_RULES || rule.pairs < 1 || !(rule.contrast >= 2.0)) return false;
    const bool is_inner = points.form == SLIMSVM_INNER || points.form == SLIMSVM_CSR_INNER;
    if (rule.code == MERGE && !(is_inner && points.code == SLIMSVM_EXP2)) return false;
    if (rule.code == PROJECT && !points.n_inverse) return false;
    return is_model(points, rule.max_points);
}

// Row i is a point of the model: delta_c more for it.
template <class T>
inline void add_to_slot(BudgetPoints<T>& points, int64_t slot, const double* delta) {
    for (int64_t c = 0; c < points.m; ++c) {
        double& beta = points.beta_of(c)[slot];
        beta += delta[c];
        points.sums_of(c)[slot] += delta[c] * points.mean[0];
        if (fabs(beta) <= 1e-12 * fabs(delta[c])) beta = 0.0;
    }
    points.lower_least(fabs(points.beta[slot]));
    if (!points.Q && points.is_at_zero(points.beta, slot) && points.is_at_zero(points.sums, slot)) points.drop(slot);
}

// Add delta_c times row i, whose numbers are in x and kernel values in k, to the model, as a new point or in the place
// of one. `half` is its h. Returns the number of points that made room.
template <class T>
inline int64_t add_point(BudgetPoints<T>& points, const Rule& rule, int64_t i, T half, const double* delta,
                         Counts& counts, double unit) {
    const int64_t n = points.n;
    if (rule.code == MERGE && n == rule.max_points && is_simple(rule, points.m) && fabs(delta[0]) > 0.0 &&
        fabs(delta[0]) <= *points.least_beta) {
        merge_row(points, rule, delta[0], counts, unit);
        return 1;
    }
    if (points.Q) {
        const double outside = outside_of_span(points, points.diagonal[i]);
        if (outside == 0.0) {
            add_within_span(points, delta);
            counts.projected += 1.0;
            return 0;
        }
        extend_inverse(points, outside);
    }
    // The last slot, which is never used, holds the constant of a kernel that has no norms.
    const int64_t j = points.add(i, half + points.base[points.n_slots - 1]);
    for (int64_t c = 0; c < points.m; ++c) {
        points.beta_of(c)[j] = delta[c];
        points.sums_of(c)[j] = delta[c] * points.mean[0];
    }
    counts.added += 1.0;
    if (n < rule.max_points) {
        points.lower_least(fabs(delta[0]));
        return 0;
    }
    keep_within(points, rule, counts, unit);
    return n + 1 - points.n;
}

}  // namespace slimsvm::SLIMSVM_ISA
