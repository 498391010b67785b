// Noise on rows: a hash of row, feature and step, the same for any number of threads and whenever it is asked for.
//
// Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014.
#pragma once

#include "simd/reduce.h"

namespace slimsvm::SLIMSVM_ISA {

constexpr uint64_t NOISE_ROWS = uint64_t(1) << 40;  // more than there are rows

// A number that looks random, of a number.
SLIMSVM_INLINE uint64_t hashed(uint64_t number) {
    uint64_t z = number * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

// x_c += noise_c * u_c for the d features of a row, u_c uniform in [-1/2, 1/2).
template <class T>
inline void add_noise(int64_t row, int64_t step, int64_t d, const T* noise, T* x) {
    const uint64_t start = (uint64_t(row) + uint64_t(step) * NOISE_ROWS) * uint64_t(d) + 1;
    for (int64_t c = 0; c < d; ++c)
        x[c] += noise[c] * (T(int32_t(hashed(start + uint64_t(c)) >> 40)) * T(1.0 / 16777216.0) - T(0.5));
}

}  // namespace slimsvm::SLIMSVM_ISA
