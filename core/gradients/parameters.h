// What a descent learns, and what follows from it.
#pragma once

#include "simd/parts.h"
#include "slimsvm.h"
#include "support/call.h"
#include "support/room.h"

namespace slimsvm::SLIMSVM_ISA {

// n padded to whole vectors.
template <class T>
SLIMSVM_INLINE int64_t padded(int64_t n) {
    return divide_up(n, LANES<T>) * LANES<T>;
}

// Views of one vector `flat`: basis (d, k), feature after feature, in folded coordinates; coef (k, m); intercept (m);
// log_scale (d); plain (p). What follows: scale = exp(log_scale), points = basis * scale, half_j = -|p_j|^2 / 2 or the
// kernel's shift; and the coefficients as products take them. Rows of `width` or `outputs` end with zeros.
template <class T>
struct Parameters {
    int64_t d, k, m, p, width, outputs;
    T *basis, *coef, *intercept, *log_scale, *plain;
    T* scale;        // (d)
    T* points;       // (d, width)
    T* half;         // (width)
    T* wide_coef;    // (k, outputs)
    T* turned_coef;  // (m, width)

    static int64_t n_flat(const struct slimsvm_descent& descent) {
        return descent.d * descent.k + descent.k * descent.m + descent.m + descent.d + descent.n_plain;
    }
    // What follows lies in the room, and is not set.
    static Parameters at(const struct slimsvm_descent& descent, Room& room) {
        const int64_t d = descent.d, k = descent.k, m = descent.m;
        Parameters all = {};
        all.d = d;
        all.k = k;
        all.m = m;
        all.p = descent.n_plain;
        all.width = padded<T>(k);
        all.outputs = padded<T>(m);
        all.basis = static_cast<T*>(descent.flat);
        all.coef = all.basis + d * k;
        all.intercept = all.coef + k * m;
        all.log_scale = all.intercept + m;
        all.plain = all.log_scale + d;
        all.scale = room.take<T>(d);
        all.points = room.take<T>(d * all.width);
        all.half = room.take<T>(all.width);
        all.wide_coef = room.take<T>(k * all.outputs);
        all.turned_coef = room.take<T>(m * all.width);
        return all;
    }

    // Sets feature c of scale and points; takes what they add off `half`, where there are norms.
    void follow_feature(const struct slimsvm_descent& descent, int64_t c, T* half_part) const {
        const T factor = descent.learns_scales ? T(exp(double(log_scale[c]))) : T(1);
        scale[c] = factor;
        const T* from = basis + c * k;
        T* to = points + c * width;
        for (int64_t j = 0; j < k; ++j) to[j] = from[j] * factor;
        for (int64_t j = k; j < width; ++j) to[j] = T(0);
        if (descent.has_norms)
            for (int64_t j = 0; j < k; ++j) half_part[j] -= T(0.5) * to[j] * to[j];
    }
    // Sets half to the sum of its parts (n_parts, width), in their order.
    void follow_half(const struct slimsvm_descent& descent, const T* parts, int64_t n_parts) const {
        const T start = descent.has_norms ? T(0) : T(descent.shift);
        for (int64_t j = 0; j < width; ++j) half[j] = j < k ? start : T(0);
        for (int64_t part = 0; part < n_parts; ++part)
            for (int64_t j = 0; j < k; ++j) half[j] += parts[part * width + j];
    }
    void follow_coef() const {
        for (int64_t i = 0; i < k * outputs; ++i) wide_coef[i] = T(0);
        for (int64_t i = 0; i < m * width; ++i) turned_coef[i] = T(0);
        for (int64_t j = 0; j < k; ++j)
            for (int64_t c = 0; c < m; ++c) wide_coef[j * outputs + c] = turned_coef[c * width + j] = coef[j * m + c];
    }
};

// What a group of rows adds to the gradient. For one output, `basis` and `weight` are without the coefficients.
template <class T>
struct GroupSums {
    T* basis;       // (d, width) sum_i W_ij x_i
    T* coef;        // (m, width) sum_i r_ic K_ij
    T* weight;      // (width) sum_i W_ij
    T* scale;       // (d) sum_i a_i x_ic^2
    T* intercept;   // (m) sum_i r_ic
    double* plain;  // (p)
    double* stats;  // weighted loss and weight of wrong predictions; of the norm's group the norm

    // Numbers of one group, and of all with room to begin at a multiple of ALIGNMENT.
    static int64_t size(const struct slimsvm_descent& descent) {
        return (descent.d + descent.m + 1) * padded<T>(descent.k) + padded<T>(descent.d + descent.m);
    }
    static int64_t total_size(const struct slimsvm_descent& descent) {
        return (descent.n_groups + 1) * size(descent) + ALIGNMENT / int64_t(sizeof(T));
    }
    static GroupSums at(const struct slimsvm_descent& descent, int64_t group) {
        const int64_t width = padded<T>(descent.k);
        T* place = aligned<T>(static_cast<uint8_t*>(descent.sums)) + group * size(descent);
        double* plain = descent.plain_sums + group * (descent.n_plain + 2);
        T *coef = place + descent.d * width, *weight = coef + descent.m * width, *scale = weight + width;
        return {place, coef, weight, scale, scale + descent.d, plain, plain + descent.n_plain};
    }
    // Sets all to 0, but for the basis's.
    void clear(const struct slimsvm_descent& descent) const {
        const int64_t n = size(descent) - descent.d * padded<T>(descent.k);
        for (int64_t i = 0; i < n; ++i) coef[i] = T(0);
        for (int64_t i = 0; i < descent.n_plain + 2; ++i) plain[i] = 0.0;
    }
};

}  // namespace slimsvm::SLIMSVM_ISA
