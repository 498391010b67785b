// What a loss of rows says.
//
// A loss of one score f and one label y is a structure with the functions
//     value(y, f)               the loss
//     gradient(y, f)            its derivative in f; 0 where it is 0
//     is_wrong(y, f)            whether the prediction is another label than y
//     augmented(y, f)           the loss-augmented argmax, as a constant and a coefficient: the loss is delta - coef f
//     smoothed(y, f, tau)       the loss with a soft maximum of temperature tau
//     dual_step(y, f, C, size, alpha)    a step of dual coordinate ascent
//     primal_step(y, f, C)               a step of stochastic subgradient descent
// where y and f are numbers or vectors of numbers (simd/lanes.h), but for the steps and is_wrong.
//
// A loss of a class and the scores of all k classes is a structure made of a `slimsvm_row_loss`, with the functions
//     augment(call)                the loss-augmented argmax of every row
//     along(line, lo, hi)          sums of the losses of the rows lo, ..., hi - 1 on a line, and of their slopes
//     smooth(places, lo, hi)       sums of smoothed losses, with their residuals, curvatures and the soft argmax
//     gradient(row, scores, r)     r = the weighted gradient of a row's loss in its scores
#pragma once

#include "simd/lanes.h"
#include "slimsvm.h"

namespace slimsvm::SLIMSVM_ISA {

template <class V>
struct RowAugmented {
    V delta, coef;
};

// residual: minus the derivative of `value` in f; curvature: the second derivative; constant: what the soft argmax
// makes of the loss's constants, so that it is a dual point of the loss itself.
template <class V>
struct RowSmoothed {
    V loss, value, residual, curvature, constant;
};

// Sums over the rows of a tile.
struct AlongSums {
    double loss, gain;  // gain: the weighted coefficients times direction, minus which is the slope
};
struct SmoothSums {
    double loss, value, dual, rest;
};

struct Line {
    const double *base, *direction, *base_plain, *direction_plain;
    double step;
};

struct SmoothPlaces {
    const double* scores;
    double tau;
    double *residual, *curvature, *share;
};

// A row's loss without its weight. Where it is not active its loss is 0, and so is its gradient.
struct RowGradient {
    double loss;
    bool is_wrong, is_active;
};

}  // namespace slimsvm::SLIMSVM_ISA
