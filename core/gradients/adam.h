// The optimiser's step: Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, Algorithm 1.
//
//     first = beta1 first + (1 - beta1) g        second = beta2 second + (1 - beta2) g^2
//     x -= rate / (1 - beta1^t) first / (sqrt(second / (1 - beta2^t)) + epsilon)
//
// Losses and parameters have the units of the data: g is that of losses in their unit, times the rate, both of them to
// within a power of 2^16, so that epsilon is small beside it and nothing is rounded.
#pragma once

#include "gradients/parameters.h"

namespace slimsvm::SLIMSVM_ISA {

// ADAM_FLOOR is added to the moments, so that they do not decay into denormal numbers, which are slow.
constexpr double ADAM_EPSILON = 1e-12, ADAM_FLOOR = 1e-30;

// The power of 2^16 next to a positive number; 1 for others.
inline double coarse(double number) { return number > 0.0 ? ldexp(1.0, 16 * int(lround(log2(number) / 16.0))) : 1.0; }

// Step `number` (from 1) with all rates times `factor`; the running mean of x moves to x by the share `averaging`.
template <class T>
struct AdamStep {
    const struct slimsvm_adam& adam;
    T* x;
    const T* gradient;
    double number, factor, averaging;

    static AdamStep at(const struct slimsvm_descent& descent, const struct slimsvm_adam& adam, const double* schedule) {
        return {adam,
                static_cast<T*>(descent.flat),
                static_cast<const T*>(descent.gradient),
                schedule[0],
                schedule[1],
                schedule[2]};
    }
    // The numbers lo, ..., hi - 1.
    void move(int64_t lo, int64_t hi, double rate) const {
        const T b1 = T(adam.beta1), b2 = T(adam.beta2), c1 = T(1.0 - adam.beta1), c2 = T(1.0 - adam.beta2);
        const T size = T(factor * rate / (1.0 - pow(adam.beta1, number))), floor = T(ADAM_FLOOR);
        const T scale = T(1.0 / (1.0 - pow(adam.beta2, number))), epsilon = T(ADAM_EPSILON);
        const T unit = T(coarse(rate));
        const T* __restrict g = gradient + lo;
        T* __restrict to = x + lo, * __restrict first = static_cast<T*>(adam.first) + lo;
        T* __restrict second = static_cast<T*>(adam.second) + lo;
        for (int64_t i = 0; i < hi - lo; ++i) {
            const T own = unit * g[i];
            const T a = b1 * first[i] + (c1 * own + floor), b = b2 * second[i] + (c2 * own * own + floor);
            first[i] = a;
            second[i] = b;
            to[i] -= size * a / (root(b * scale) + epsilon);
        }
        if (!(averaging > 0.0)) return;
        T* __restrict mean = static_cast<T*>(adam.mean) + lo;
        for (int64_t i = 0; i < hi - lo; ++i) mean[i] += T(averaging) * (to[i] - mean[i]);
    }
    // Features first, ..., last - 1 of all basis vectors, and their scales.
    void move_features(const struct slimsvm_descent& descent, int64_t first, int64_t last) const {
        const int64_t k = descent.k, scales = descent.d * k + k * descent.m + descent.m;
        for (int64_t c = first; c < last; ++c) move(c * k, (c + 1) * k, adam.basis_rates[c]);
        if (descent.learns_scales) move(scales + first, scales + last, adam.scale_rate);
    }
    // Coefficients, intercept and plain parameters.
    void move_rest(const struct slimsvm_descent& descent) const {
        const int64_t coef = descent.d * descent.k, intercept = coef + descent.k * descent.m;
        const int64_t scales = intercept + descent.m, plain = scales + descent.d;
        move(coef, intercept, adam.coef_rate);
        if (descent.intercept != SLIMSVM_NO_INTERCEPT) move(intercept, scales, adam.intercept_rate);
        move(plain, plain + descent.n_plain, adam.plain_rate);
    }

   private:
    static float root(float value) { return sqrtf(value); }
    static double root(double value) { return sqrt(value); }
};

}  // namespace slimsvm::SLIMSVM_ISA
