// The budget rule that makes one point of two: the search for the partner, the merger itself.
#pragma once

#include "budget/merging.h"
#include "budget/row_values.h"
#include "simd/reduce.h"

namespace slimsvm::SLIMSVM_ISA {

constexpr double TINY = 1e-25;  // folded features below count as 0

// The table's entry for the smallest point, of the coefficient `own`, and slot j.
template <class T>
SLIMSVM_INLINE TableEntry merger_with(const BudgetPoints<T>& points, const Rule& rule, double own, int64_t j) {
    const double u = clipped(own / (own + points.beta[j]), LEAST_SHARE, MOST_SHARE);
    return look_up(rule.table, u, least(1.0, double(points.k[j])));
}

// A slot, or -1, and the place of the merger with it.
struct Partner {
    int64_t slot;
    double place;
};

// The slot whose merger with the smallest point costs least, by asking the table about all slots whose bound is below
// the limit; `cost` is what the partner known so far loses.
template <class T>
__attribute__((noinline)) Partner searched_partner(const BudgetPoints<T>& points, const Rule& rule, double own,
                                                   double share, double limit, double cost, Partner best) {
    const double a = fabs(own);
    for (;;) {
        double bound = limit;
        for (int64_t start = 0; start < points.n; start += PANEL<T>) {
            uint64_t candidates = panel_from(points.k + start, T(least_nearness(bound)));
            for (; candidates; candidates &= candidates - 1) {
                const int64_t j = start + lowest_bit(candidates);
                if (j >= points.n) break;
                const double b = fabs(points.beta[j]);
                if (!are_merged(own * points.beta[j], a, b, 1, rule.contrast)) continue;
                if (light_loss(least(1.0, double(points.k[j]))) * b > cost * (a + b)) continue;
                const TableEntry found = merger_with(points, rule, own, j);
                if (found.loss < cost) {
                    cost = found.loss;
                    best = {j, found.place};
                    bound = least(bound, cost / share);
                }
            }
        }
        if (cost <= limit * share || !(limit <= 1.0)) return best;  // no other is better, or there is no other
        limit = 1.5 * limit + 0.01;                                 // the nearest are of the other sign
    }
}

// The slot that a merger of the smallest point, with the coefficient `own`, costs least with, by the table. k holds the
// smallest point's kernel values, -1 with itself. One output only.
//
// With a the mass of the point, and b that of another, a merger loses at least (1 - a / (a + b)) times what a light
// point would at this kernel value. So mostly the nearest point is the partner, which is made sure of while the merger
// goes on: no branch waits for it.
template <class T>
inline Partner best_partner(const BudgetPoints<T>& points, const Rule& rule, double own) {
    const double a = fabs(own), share = 1.0 - a / (a + most(a, *points.least_beta));
    const GreatestTwo<T> nearest = greatest_two(points.k, points.n);
    const int64_t j = nearest.place;
    const double kappa = double(points.k[j]);
    if (kappa >= 0.0 && are_merged(own * points.beta[j], a, fabs(points.beta[j]), 1, rule.contrast)) {
        const TableEntry found = merger_with(points, rule, own, j);
        if (double(nearest.other) < least_nearness(found.loss / share)) return {j, found.place};
        return searched_partner(points, rule, own, share, found.loss / share, found.loss, Partner{j, found.place});
    }
    const double limit = NEAR_LOSS * light_loss(clipped(kappa, 0.0, 1.0)) / share;
    return searched_partner(points, rule, own, share, limit, HUGE_VAL, Partner{-1, 0.0});
}

// v[j] = ||Delta||^2 of a merger of r, the smallest point, with j; infinite where the two are not merged.
template <class T>
inline void merge_losses(const BudgetPoints<T>& points, const Rule& rule, int64_t r) {
    const int64_t m = points.m;
    double square_r = 0.0, best = HUGE_VAL;
    for (int64_t c = 0; c < m; ++c) square_r += points.beta_of(c)[r] * points.beta_of(c)[r];
    const double norm_r = sqrt(square_r);
    for (int64_t j = 0; j < points.n; ++j) {
        double product = 0.0, square = 0.0;
        for (int64_t c = 0; c < m; ++c) {
            product += points.beta_of(c)[r] * points.beta_of(c)[j];
            square += points.beta_of(c)[j] * points.beta_of(c)[j];
        }
        const double norm = sqrt(square), a = least(norm_r, norm), b = most(norm_r, norm);
        double& loss = points.v[j];
        loss = HUGE_VAL;
        // Squares of tiny numbers may be 0.
        if (j == r || !(a > 0.0) || !are_merged(product, a, b, m, rule.contrast)) continue;
        const double kappa = clipped(double(points.k[j]), 1e-300, 1.0), side = product > 0.0 ? 1.0 : -1.0;
        if (rule.table) {
            // With several outputs: what coefficients along one line would lose, which is no more than these lose.
            const double root = a * look_up(rule.table, side * a / (side * a + b), kappa).loss;
            loss = root * root;
        }
        if (!rule.table || (m > 1 && loss < best)) {
            const double cosine = m == 1 ? side : product / (norm_r * norm);
            loss = square_r + square + 2.0 * product * kappa - golden_section(a, b, cosine, log2(kappa)).kept;
        }
        best = least(best, loss);
    }
}

// |x - y|^2; half of it is -log2 of k(x, y).
template <class T>
SLIMSVM_INLINE double square_distance(const T* x, const T* y, int64_t d) {
    Vec<T> sums = {};
    int64_t f = 0;
    for (; f + LANES<T> <= d; f += LANES<T>) {
        const Vec<T> difference = load<T>(x + f) - load<T>(y + f);
        sums += difference * difference;
    }
    double rest = 0.0;
    for (; f < d; ++f) rest += double(x[f] - y[f]) * double(x[f] - y[f]);
    return total(sums) + rest;
}

// y += t (x - y); returns its squared norm. What merger after merger shrinks must not end among the denormal numbers,
// which slow every later product down.
template <class T>
SLIMSVM_INLINE double move_towards(const T* x, T t, T* y, int64_t d) {
    int64_t f = 0;
    for (; f + LANES<T> <= d; f += LANES<T>) {
        const Vec<T> z = load<T>(y + f) + t * (load<T>(x + f) - load<T>(y + f));
        store<T>(y + f, magnitude<T>(z) > splat<T>(T(TINY)) ? z : Vec<T>{});
    }
    for (; f < d; ++f) {
        const T z = y[f] + t * (x[f] - y[f]);
        y[f] = fabs(z) > T(TINY) ? z : T(0);
    }
    return dot(y, y, d);
}

// Slot r, whose numbers are in x, merges into slot j; r is left to drop. y changes. `place` is the table's, with one
// output. Returns ||Delta||^2, or -1, and changes nothing, where the two are not merged.
template <class T>
inline double merge_two(BudgetPoints<T>& points, const Rule& rule, int64_t r, int64_t j, double place) {
    const int64_t m = points.m;
    points.read(j, points.y);
    const double distance = square_distance(points.x, points.y, points.d);
    if (distance == 0.0) {
        for (int64_t c = 0; c < m; ++c) {
            points.beta_of(c)[j] += points.beta_of(c)[r];
            points.sums_of(c)[j] += points.sums_of(c)[r];
        }
        points.lower_least(fabs(points.beta[j]));
        return 0.0;
    }
    double product = 0.0, square_r = 0.0, square = 0.0;
    for (int64_t c = 0; c < m; ++c) {
        product += points.beta_of(c)[r] * points.beta_of(c)[j];
        square_r += points.beta_of(c)[r] * points.beta_of(c)[r];
        square += points.beta_of(c)[j] * points.beta_of(c)[j];
    }
    const double a = sqrt(least(square_r, square)), b = sqrt(most(square_r, square));
    if (!(a > 0.0) || !are_merged(product, a, b, m, rule.contrast)) return -1.0;
    const double exponent = -0.5 * distance, side = product > 0.0 ? 1.0 : -1.0, kappa = exp2_of(exponent);
    // How far from the heavier towards the lighter, and what each has left there.
    Shares shares = rule.table && m == 1
                        ? polished(side * a, b, exponent, place)
                        : shares_at(exponent, golden_section(a, b, m == 1 ? side : product / (a * b), exponent).place);
    if (square_r > square) shares = {1.0 - shares.place, shares.from_a, shares.from_b};
    double kept = 0.0;
    for (int64_t c = 0; c < m; ++c) {
        double &beta = points.beta_of(c)[j], &sum = points.sums_of(c)[j];
        beta = beta * shares.from_b + points.beta_of(c)[r] * shares.from_a;
        sum = sum * shares.from_b + points.sums_of(c)[r] * shares.from_a;
        kept += beta * beta;
    }
    points.lower_least(fabs(points.beta[j]));
    points.base[j] = T(-0.5 * move_towards(points.x, T(shares.place), points.y, points.d));
    points.write(j, points.y);
    points.forget_origin(j);
    return most(0.0, square_r + square + 2.0 * product * kappa - kept);
}

// Whether the partner comes of one search, by the table, over coefficients of one output.
SLIMSVM_INLINE bool is_simple(const Rule& rule, int64_t m) { return rule.table && rule.pairs == 1 && m == 1; }

// A row whose numbers are in x and its kernel values in k comes in with a coefficient, not 0, that none is smaller
// than, and merges without a slot of its own. One output, by the table.
template <class T>
inline void merge_row(BudgetPoints<T>& points, const Rule& rule, double delta, Counts& counts, double unit) {
    const int64_t n = points.n;
    points.beta[n] = delta;
    points.sums[n] = delta * points.mean[0];
    const Partner partner = best_partner(points, rule, delta);
    const double loss = partner.slot < 0 ? -1.0 : merge_two(points, rule, n, partner.slot, partner.place);
    counts.added += 1.0;
    (loss >= 0.0 ? counts.merged : counts.removed) += 1.0;
    counts.degradation += (loss >= 0.0 ? loss : delta * delta) * unit * unit;
    points.beta[n] = points.sums[n] = 0.0;
}

// Slot r, whose coefficients are 0, goes; what the mean has of it goes to the nearest point. That is what mergers come
// to as a coefficient goes to 0: t to 0, and the partner to the one that kappa is largest with.
template <class T>
inline void merge_idle(BudgetPoints<T>& points, int64_t r) {
    int64_t nearest = -1;
    for (int64_t j = 0; j < points.n; ++j)
        if (j != r && (nearest < 0 || points.k[j] > points.k[nearest])) nearest = j;
    if (nearest >= 0)
        for (int64_t c = 0; c < points.m; ++c)
            points.sums_of(c)[nearest] += double(points.k[nearest]) * points.sums_of(c)[r];
    points.drop(r);
}

// The best partner of r among those left in v; -1 if there is none.
template <class T>
inline Partner next_partner(const BudgetPoints<T>& points, const Rule& rule, int64_t r, bool is_first, Counts& counts) {
    int64_t j = 0;
    for (int64_t i = 1; i < points.n; ++i)
        if (points.v[i] < points.v[j]) j = i;
    if (!(points.v[j] < HUGE_VAL)) return {-1, 0.0};
    if (!is_first) {  // r is what came of mergers: only its kernel value with j is asked for
        points.read(r, points.x);
        points.read(j, points.y);
        points.k[j] = T(exp2_of(-0.5 * square_distance(points.x, points.y, points.d)));
        counts.evals += 1.0;
    }
    if (!rule.table || points.m > 1) return {j, 0.0};
    const double a = points.beta[r], b = points.beta[j];
    const double lighter = fabs(a) > fabs(b) ? b : a;
    const double u = clipped(lighter / (a + b), LEAST_SHARE, MOST_SHARE);
    return {j, look_up(rule.table, u, clipped(double(points.k[j]), 0.0, 1.0)).place};
}

// The smallest point merges with its best partner, and what comes of it with the next best, pair after pair.
template <class T>
inline void merge(BudgetPoints<T>& points, const Rule& rule, Counts& counts, double unit) {
    const Smallest found = smallest(points, false);
    int64_t r = found.slot, n_merged = 0;
    if (r != points.n - 1) {  // of the newest point k has them, and x its numbers
        slot_values(points, r);
        counts.evals += double(points.n);
    }
    if (points.is_at_zero(points.beta, r)) return merge_idle(points, r);
    const bool simple = is_simple(rule, points.m);
    if (simple)
        points.k[r] = T(-1);
    else
        merge_losses(points, rule, r);
    while (n_merged < rule.pairs) {
        const Partner partner =
            simple ? best_partner(points, rule, points.beta[r]) : next_partner(points, rule, r, n_merged == 0, counts);
        const int64_t j = partner.slot;
        if (j < 0) break;
        const double loss = merge_two(points, rule, r, j, partner.place);
        points.v[j] = HUGE_VAL;
        if (loss < 0.0) {
            points.k[j] = T(-1);
            continue;
        }
        ++n_merged;
        counts.degradation += loss * unit * unit;
        counts.merged += 1.0;
        points.drop(r);
        points.v[r] = points.v[points.n];
        if (j != points.n) r = j;
    }
    if (n_merged > 0) return;
    counts.degradation += found.size * unit * unit;
    counts.removed += 1.0;
    points.drop(r);
}

}  // namespace slimsvm::SLIMSVM_ISA
