// Dual coordinate ascent for a support vector machine of two classes over explicit features, without an intercept.
//
//     max_a  sum_i a_i - |w|^2 / 2,   w = sum_i a_i y_i z_i,   0 <= a_i <= C_i
//
// Rows whose variable stays at a bound are left out, until those that are left are solved for; then all are looked at
// again.
//
// Hsieh, Chang, Lin, Keerthi, Sundararajan, "A Dual Coordinate Descent Method for Large-scale Linear SVM", ICML 2008,
// algorithm 3.
#include "decomposition/box.h"
#include "simd/reduce.h"
#include "support/call.h"

namespace slimsvm::SLIMSVM_ISA {

namespace {

// The next of a sequence of random numbers (xorshift; Marsaglia, Journal of Statistical Software 2003).
inline uint64_t next_random(int64_t& state) {
    uint64_t x = uint64_t(state);
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    state = int64_t(x);
    return x;
}

template <class T>
void ascend_rows(struct slimsvm_ascend_linear_call& call) {
    const T* Z = static_cast<const T*>(call.Z);
    const int64_t n = call.n, d = call.d;
    double highest = HUGE_VAL, lowest = -HUGE_VAL;  // derivatives of the sweep before
    int64_t n_active = n;
    for (int64_t s = 0; s < n; ++s) call.active[s] = s;
    for (call.sweeps = 0; call.sweeps < call.max_sweeps; ++call.sweeps) {
        double high = -HUGE_VAL, low = HUGE_VAL;
        for (int64_t s = 0; s < n_active; ++s) {
            const int64_t swap = s + int64_t(next_random(call.random) % uint64_t(n_active - s));
            const int64_t i = call.active[swap];
            call.active[swap] = call.active[s];
            call.active[s] = i;
            const T* z = Z + call.rows[i] * d;
            const double y = call.sign[i], price = call.price[i], now = call.alpha[i];
            const double slope = 1.0 - y * dot(z, call.w, d);
            if ((now <= 0.0 && slope < lowest) || (now >= price && slope > highest)) {
                call.active[s--] = call.active[--n_active];
                call.active[n_active] = i;
                continue;
            }
            const double gain = now <= 0.0 ? most(slope, 0.0) : now >= price ? least(slope, 0.0) : slope;
            high = most(high, gain);
            low = least(low, gain);
            if (gain == 0.0) continue;
            const double after = least(most(now + slope / call.square[i], 0.0), price);
            call.alpha[i] = after;
            add_scaled(y * (after - now), z, call.w, d);
        }
        call.violation = n_active ? high - low : 0.0;
        if (call.violation <= call.tol) {
            if (n_active == n) return;
            n_active = n;
            highest = HUGE_VAL;
            lowest = -HUGE_VAL;
            continue;
        }
        highest = high > 0.0 ? high : HUGE_VAL;
        lowest = low < 0.0 ? low : -HUGE_VAL;
    }
}

}  // namespace

int32_t ascend_linear(struct slimsvm_ascend_linear_call* call) {
    const int64_t size = most(call->n * most(call->d, int64_t(1)), int64_t(1));
    if (call->max_sweeps < 1 || call->random == 0 || call->max_sweeps > MOST_WORK / size) return SLIMSVM_BAD_ARGUMENT;
    for (int64_t i = 0; i < call->n; ++i)
        if (!(call->square[i] > 0.0 && call->price[i] > 0.0)) return SLIMSVM_BAD_ARGUMENT;
    if (call->real_size == 4)
        ascend_rows<float>(*call);
    else
        ascend_rows<double>(*call);
    return SLIMSVM_OK;
}

}  // namespace slimsvm::SLIMSVM_ISA
