// 2**z of vectors, once: a polynomial (minimax) of the rest of z from its nearest integer, times a power of two.
//
// The polynomial of float32 has a constant that is not 1: with it free, one degree less is needed for the same error.
// Results are EXP2_SCALE too small; whoever adds many of them up divides once. Relative error 2e-7 (float32), 4e-16.
// Exponents below `lowest` stay there: far enough from the denormal numbers, which are slow, and small against any sum.
#pragma once

#include "simd/vector.h"

namespace slimsvm::SLIMSVM_ISA {

template <class T>
struct Exp2;

template <>
struct Exp2<float> {
    static constexpr float polynomial[] = {0.9999999403953552f,   0.6931468844413757f,   0.24022117257118225f,
                                           0.055507123470306396f, 0.009675540030002594f, 0.0013276470126584172f};
    static constexpr double scale = 0.9999998689950266;
    static constexpr float lowest = -80.0f, round = 12582912.0f;  // adding 1.5 * 2**23 rounds to an integer
    static constexpr int mantissa = 23;
};
template <>
struct Exp2<double> {
    static constexpr double polynomial[] = {1.0,
                                            6.93147180559945696772e-1,
                                            2.40226506959100980097e-1,
                                            5.55041086647903939241e-2,
                                            9.61812910760700122617e-3,
                                            1.33335581534400713000e-3,
                                            1.54035304415733184687e-4,
                                            1.52527273850646176635e-5,
                                            1.32154426748642451945e-6,
                                            1.01806477328174069968e-7,
                                            7.07257047545789933199e-9,
                                            4.07805777677516680249e-10};
    static constexpr double scale = 1.0;
    static constexpr double lowest = -900.0, round = 6755399441055744.0;
    static constexpr int mantissa = 52;
};

// The polynomial for COUNT vectors of rests, step by step: one alone would wait for its own results.
template <class T, int COUNT>
SLIMSVM_INLINE void power_of_rest(const Vec<T> (&r)[COUNT], Vec<T> (&p)[COUNT]) {
    constexpr int degree = int(sizeof Exp2<T>::polynomial / sizeof(T)) - 1;
    SLIMSVM_EACH (v, COUNT) p[v] = splat<T>(Exp2<T>::polynomial[degree]);
    SLIMSVM_UNROLL for (int k = degree - 1; k >= 0; --k) {
        SLIMSVM_EACH (v, COUNT) p[v] = p[v] * r[v] + Exp2<T>::polynomial[k];
    }
}

// The rests r of numbers from their nearest integers, and n from which `raise` takes these. Ties go the same way
// whatever is added to the integers later.
template <class T, int COUNT>
SLIMSVM_INLINE void take_apart(const Vec<T> (&z)[COUNT], Vec<T> (&r)[COUNT], Vec<T> (&n)[COUNT]) {
#if defined(__AVX512F__) && defined(__AVX512DQ__)
    // AVX-512 has the rest of a number from its nearest integer, and the product with a power of two, in one
    // instruction each: they take the place of the addition that rounds.
    if constexpr (sizeof(T) == 4) {
        SLIMSVM_EACH (v, COUNT) r[v] = (Vec<T>)_mm512_maskz_reduce_ps(0xffff, (__m512)z[v], 0);
        SLIMSVM_EACH (v, COUNT) n[v] = z[v] - r[v];
        return;
    }
#endif
    SLIMSVM_EACH (v, COUNT) {
        n[v] = z[v] + Exp2<T>::round;
        r[v] = z[v] - (n[v] - Exp2<T>::round);
    }
}

// values[v] = p[v] * 2**n[v], n as `take_apart` has it, or that plus an integer.
template <class T, int COUNT>
SLIMSVM_INLINE void raise(const Vec<T> (&p)[COUNT], const Vec<T> (&n)[COUNT], Vec<T> (&values)[COUNT]) {
#if defined(__AVX512F__) && defined(__AVX512DQ__)
    if constexpr (sizeof(T) == 4) {
        SLIMSVM_EACH (v, COUNT) values[v] = (Vec<T>)_mm512_maskz_scalef_ps(0xffff, (__m512)p[v], (__m512)n[v]);
        return;
    }
#endif
    SLIMSVM_EACH (v, COUNT)
        values[v] = (Vec<T>)((IntVec<T>)p[v] + ((IntVec<T>)n[v] << (IntVec<T>{} + Exp2<T>::mantissa)));
}

// z[v] = 2**z[v] * scale for z that are nowhere below `lowest`.
template <class T, int COUNT>
SLIMSVM_INLINE void exp2_near(Vec<T> (&z)[COUNT]) {
    Vec<T> r[COUNT], p[COUNT], n[COUNT];
    take_apart<T, COUNT>(z, r, n);
    power_of_rest<T, COUNT>(r, p);
    raise<T, COUNT>(p, n, z);
}

// z[v] = 2**z[v] * scale; exponents stay at `lowest` at least.
template <class T, int COUNT>
SLIMSVM_INLINE void exp2_bounded(Vec<T> (&z)[COUNT]) {
    SLIMSVM_EACH (v, COUNT) z[v] = maximum<T>(z[v], splat<T>(Exp2<T>::lowest));
    exp2_near<T, COUNT>(z);
}

// z[v] = 2**(z[v] + whole[v]) * scale for integers `whole`; exponents z + whole stay at `lowest` at least.
template <class T, int COUNT>
SLIMSVM_INLINE void exp2_with(Vec<T> (&z)[COUNT], const Vec<T> (&whole)[COUNT]) {
    Vec<T> r[COUNT], p[COUNT], n[COUNT];
    SLIMSVM_EACH (v, COUNT) z[v] = maximum<T>(z[v], Exp2<T>::lowest - whole[v]);
    take_apart<T, COUNT>(z, r, n);
    SLIMSVM_EACH (v, COUNT) n[v] += whole[v];
    power_of_rest<T, COUNT>(r, p);
    raise<T, COUNT>(p, n, z);
}

// 2**z for z <= 0 in every lane, to the last bits: 2**0 is 1, and no value is above it.
template <class T>
SLIMSVM_INLINE Vec<T> exp2_exact(Vec<T> z) {
    Vec<T> values[1] = {z};
    exp2_bounded<T, 1>(values);
    return minimum<T>(values[0] * T(1.0 / Exp2<T>::scale), splat<T>(T(1)));
}

// 2**r for |r| <= 1/2.
SLIMSVM_INLINE double exp2_of_rest(double r) {
    double p = Exp2<double>::polynomial[11];
    for (int k = 10; k >= 0; --k) p = p * r + Exp2<double>::polynomial[k];
    return p;
}

// value * 2**whole for a normal result.
SLIMSVM_INLINE double times_power(double value, int64_t whole) {
    int64_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    bits += int64_t(uint64_t(whole) << 52);
    __builtin_memcpy(&value, &bits, sizeof bits);
    return value;
}

// 2**z of one number z <= 0: the same polynomial, the same bits in every loop it stands in.
SLIMSVM_INLINE double exp2_of(double z) {
    const double bounded = z > Exp2<double>::lowest ? z : Exp2<double>::lowest;
    const double t = bounded + Exp2<double>::round, n = t - Exp2<double>::round;
    return times_power(exp2_of_rest(bounded - n), int64_t(n));
}

}  // namespace slimsvm::SLIMSVM_ISA
