// Where two weighted points of an RBF kernel merge into one: by golden section, or by a table made beforehand.
//
// The heavier point at 0 with the mass b, the lighter at 1 with a, kernel value kappa between them: a point at t keeps
//     s(t) = b kappa^(t^2) + a kappa^((1 - t)^2),    and a^2 + b^2 + 2 a b kappa - s^2 is lost.
// All of it depends on kappa and u = a / (a + b), the place of the common centre. Of one sign, u and the best t are in
// [0, 1/2]. Of two signs they are below 0: what is taken off the heavier point moves it away from where that was. With
// b >= 2 |a| they are in [-1, 0]; points whose masses nearly cancel are not merged, or none of two signs (`contrast`).
// In both intervals s has one peak. With several outputs s^2 is the sum over them, and cosine that of the angle between
// the two coefficient vectors.
//
// Wang, Crammer, Vucetic, "Breaking the Curse of Kernelization", JMLR 2012 (merging); Glasmachers, Qaadan, "Speeding Up
// Budgeted Stochastic Gradient Descent SVM Training with Precomputed Golden Section Search", 2018 (the table).
//
// kappa = 2^exponent throughout.
#pragma once

#include "simd/exp2.h"

namespace slimsvm::SLIMSVM_ISA {

constexpr double LOG_2 = 0.6931471805599453, GOLDEN = 0.6180339887498949;
constexpr int SEARCH_STEPS = 40;  // 1/2 times GOLDEN^40 is 2e-9
// Cells of the table by u from -1 to 1/2 and by kappa: losses are right to 1e-4 of (|a| + |b|)^2.
constexpr int64_t SHARES = 600, NEARNESSES = 200;
constexpr double LEAST_SHARE = -1.0, MOST_SHARE = 0.5;  // of u
constexpr double SHORT_STEP = 0.03;                     // steps of exponents that a short series serves
// (1 - kappa)(c0 + c1 kappa + c2 kappa^2) is at most the root of 1 - kappa^2 (1 - 2 log kappa), which a light point of
// mass 1 loses.
constexpr double LIGHT_LOSS[] = {0.9995, 0.66, -0.25};
// A point that merges with one at least as heavy, of its sign, loses less than this times LIGHT_LOSS.
constexpr double NEAR_LOSS = 1.02;
// 1 - loss (c0 + c1 loss + ...) is the kappa where LIGHT_LOSS is that, or up to 1.3 % of 1 - kappa below.
constexpr double FAR_LOSS[] = {0.71873, -0.11929347, 1.13222995, -2.01289987, 1.28243041};

// x, or the bound that it is beyond; lo for NaN.
SLIMSVM_INLINE double clipped(double x, double lo, double hi) { return x > lo ? (x < hi ? x : hi) : lo; }

// Whether points whose coefficients have this inner product and the norms a <= b are merged; m: outputs. Of two signs
// they are where b is at least `contrast` times a.
SLIMSVM_INLINE bool are_merged(double product, double a, double b, int64_t m, double contrast) {
    // The two signs take turns: no branches.
    return (product > 0.0) | ((m == 1) & (product < 0.0) & (b >= contrast * a));
}

// LIGHT_LOSS of one kernel value.
SLIMSVM_INLINE double light_loss(double kappa) {
    return (1.0 - kappa) * (LIGHT_LOSS[0] + kappa * (LIGHT_LOSS[1] + kappa * LIGHT_LOSS[2]));
}

// No kappa below this has a LIGHT_LOSS of `loss` or less.
SLIMSVM_INLINE double least_nearness(double loss) {
    loss = least(loss, 1.0);
    double share = FAR_LOSS[4];
    for (int c = 3; c >= 0; --c) share = FAR_LOSS[c] + loss * share;
    return most(0.0, 1.0 - loss * share);
}

// A place t of the new point, and what is kept there: the squared norm of its coefficients.
struct MergePlace {
    double place, kept;
};

SLIMSVM_INLINE double kept_square(double a, double b, double cosine, double exponent, double t) {
    const double first = b * exp2_of(exponent * t * t), second = a * exp2_of(exponent * (1.0 - t) * (1.0 - t));
    return first * first + second * second + 2.0 * cosine * first * second;
}

// The best place for the masses b >= a >= 0 (b >= 2 a where cosine < 0).
inline MergePlace golden_section(double a, double b, double cosine, double exponent) {
    if (exponent == 0.0) {  // every place is as good: the limit of those for kappa < 1
        const double u = cosine > 0.0 ? a / most(a + b, 1e-300) : -a / most(b - a, 1e-300);
        return {u, kept_square(a, b, cosine, 0.0, 0.0)};
    }
    const double first = cosine > 0.0 ? 0.0 : LEAST_SHARE, last = cosine > 0.0 ? MOST_SHARE : 0.0;
    double low = first, high = last;
    double left = high - GOLDEN * (high - low), right = low + GOLDEN * (high - low);
    double at_left = kept_square(a, b, cosine, exponent, left), at_right = kept_square(a, b, cosine, exponent, right);
    for (int step = 0; step < SEARCH_STEPS; ++step) {
        if (at_left >= at_right) {
            high = right;
            right = left;
            at_right = at_left;
            left = high - GOLDEN * (high - low);
            at_left = kept_square(a, b, cosine, exponent, left);
        } else {
            low = left;
            left = right;
            at_left = at_right;
            right = low + GOLDEN * (high - low);
            at_right = kept_square(a, b, cosine, exponent, right);
        }
    }
    MergePlace best = {0.5 * (low + high), kept_square(a, b, cosine, exponent, 0.5 * (low + high))};
    const double ends[] = {first, last};  // golden section comes near the ends and never upon them
    for (const double end : ends) {
        const double at_end = kept_square(a, b, cosine, exponent, end);
        if (at_end >= best.kept) best = {end, at_end};
    }
    return best;
}

// loss: its root over the lighter mass.
struct TableEntry {
    double loss, place;
};

// The entry between the table's points, linear along both axes; u in [-1, 1/2], kappa in [0, 1].
SLIMSVM_INLINE TableEntry look_up(const float* table, double u, double kappa) {
    typedef float four_floats __attribute__((vector_size(16)));
    typedef double four_doubles __attribute__((vector_size(32)));
    double x = clipped((u - LEAST_SHARE) * (double(SHARES) / (MOST_SHARE - LEAST_SHARE)), 0.0, double(SHARES));
    double y = clipped(kappa * double(NEARNESSES), 0.0, double(NEARNESSES));
    const int64_t row = least(int64_t(x), SHARES - 1), column = least(int64_t(y), NEARNESSES - 1);
    x -= double(row);
    y -= double(column);
    // Loss and place at the column, loss and place at the next one.
    four_floats cells[2];
    const float* corner = table + 2 * (row * (NEARNESSES + 1) + column);
    __builtin_memcpy(&cells[0], corner, sizeof cells[0]);
    __builtin_memcpy(&cells[1], corner + 2 * (NEARNESSES + 1), sizeof cells[1]);
    const four_doubles here = __builtin_convertvector(cells[0], four_doubles);
    const four_doubles below = __builtin_convertvector(cells[1], four_doubles);
    const four_doubles share = {1.0 - y, 1.0 - y, y, y};
    const four_doubles sum = (here * (1.0 - x) + below * x) * share;
    return {sum[0] + sum[2], sum[1] + sum[3]};
}

// e^z by its series, right to 1e-14 where |z| < SHORT_STEP.
SLIMSVM_INLINE double exp_near_0(double z) {
    const double square = z * z;
    const double odd = 1.0 + square * (1.0 / 6.0 + square * (1.0 / 120.0));
    const double even = 0.5 + square * (1.0 / 24.0 + square * (1.0 / 720.0));
    return 1.0 + (z * odd + square * even);
}

// A place t, and what a mass at 0, and one at 1, has left of it there.
struct Shares {
    double place, from_b, from_a;
};

SLIMSVM_INLINE Shares shares_at(double exponent, double t) {
    return {t, exp2_of(exponent * t * t), exp2_of(exponent * (1.0 - t) * (1.0 - t))};
}

// The place t for the masses b >= a > 0, or b >= -2 a where a < 0, after one Newton step.
SLIMSVM_INLINE Shares polished(double a, double b, double exponent, double t) {
    const double curve = 2.0 * LOG_2 * exponent;
    const Shares now = shares_at(exponent, t);
    const double first = b * now.from_b, second = a * now.from_a;
    const double slope = first * t - second * (1.0 - t);
    const double bend = first * (1.0 + curve * t * t) + second * (1.0 + curve * (1.0 - t) * (1.0 - t));
    if (!(bend > 0.0)) return now;
    const double goal = t - slope / bend;
    const double moved = a > 0.0 ? clipped(goal, 0.0, MOST_SHARE) : clipped(goal, LEAST_SHARE, 0.0);
    const double grown_b = 0.5 * curve * (moved - t) * (moved + t);
    const double grown_a = 0.5 * curve * (t - moved) * (2.0 - moved - t);
    const Shares then = most(fabs(grown_b), fabs(grown_a)) < SHORT_STEP
                            ? Shares{moved, now.from_b * exp_near_0(grown_b), now.from_a * exp_near_0(grown_a)}
                            : shares_at(exponent, moved);
    return b * then.from_b + a * then.from_a >= first + second ? then : now;
}

}  // namespace slimsvm::SLIMSVM_ISA
