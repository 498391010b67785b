// Log odds that are linear in a few terms of a score: those of least log loss, by Newton's method, for many columns.
#include "losses/soft.h"
#include "support/call.h"

namespace slimsvm::SLIMSVM_ISA {

namespace {

// Most steps, halvings of a step, and what the last step promises at most, as a share of the weights: what is left
// after it is about its square. How much of a value is rounding.
constexpr int MOST_STEPS = 50, HALVINGS = 12;
constexpr double LEFT = 1e-9, ROUNDING = 1e-12;

// The objective of D parameters at a point, with its derivatives.
template <int D>
struct Curve {
    double value, gradient[D], hessian[D][D];
};

template <int D>
struct Column {
    const struct slimsvm_fit_log_odds_call& call;
    int64_t lo, hi;
    const double* centre;

    double lowest(int j) const { return j < call.n_bounded ? 0.0 : -INFINITY; }

    Curve<D> at(const double (&theta)[D]) const {
        LaneSum value, gradient[D], hessian[D][D];
        for_lanes(lo, hi, [&](auto zero, int64_t i) {
            typedef decltype(zero) V;
            V terms[D], z = zero;
            SLIMSVM_EACH (j, D) z += theta[j] * (terms[j] = read<V>(call.terms + j * call.n + i));
            const Soft<V> soft = soft_positive(z, 1.0);
            const V weight = read<V>(call.weights + i), target = read<V>(call.targets + i);
            const V slope = weight * (soft.slope - target), curved = weight * soft.slope * (1.0 - soft.slope);
            value.add(weight * (soft.value - target * z));
            SLIMSVM_EACH (j, D) {
                gradient[j].add(slope * terms[j]);
                SLIMSVM_EACH (k, j + 1) hessian[j][k].add(curved * terms[j] * terms[k]);
            }
        });
        Curve<D> found;
        found.value = value.value();
        for (int j = 0; j < D; ++j) {
            const double off = theta[j] - centre[j], pull = call.pulls[j];
            found.value += 0.5 * pull * off * off;
            found.gradient[j] = gradient[j].value() + pull * off;
            for (int k = 0; k <= j; ++k) found.hessian[j][k] = found.hessian[k][j] = hessian[j][k].value();
            found.hessian[j][j] += pull;
        }
        return found;
    }

    // Newton's step, of parameters that do not push against their bound; returns the fall that it promises, twice.
    double step_of(Curve<D> now, const double (&theta)[D], double (&step)[D]) const {
        auto& H = now.hessian;
        for (int j = 0; j < D; ++j) {
            if (theta[j] <= lowest(j) && now.gradient[j] >= 0.0) {
                for (int k = 0; k < D; ++k) H[j][k] = H[k][j] = 0.0;
                H[j][j] = 1.0;
                now.gradient[j] = 0.0;
            }
            step[j] = now.gradient[j];
        }
        for (int j = 0; j < D; ++j) H[j][j] += 1e-12 * (1.0 + H[j][j]);
        for (int j = 0; j < D; ++j)  // elimination of a positive definite matrix, and back
            for (int k = j + 1; k < D; ++k) {
                const double factor = H[k][j] / H[j][j];
                for (int l = j; l < D; ++l) H[k][l] -= factor * H[j][l];
                step[k] -= factor * step[j];
            }
        double promised = 0.0;
        for (int j = D - 1; j >= 0; --j) {
            for (int k = j + 1; k < D; ++k) step[j] -= H[j][k] * step[k];
            step[j] /= H[j][j];
            promised += now.gradient[j] * step[j];
        }
        return promised;
    }

    void descend(double* to) const {
        double theta[D], step[D], tried[D], weight = 0.0;
        for (int j = 0; j < D; ++j) theta[j] = centre[j];
        for (int64_t i = lo; i < hi; ++i) weight += call.weights[i];
        Curve<D> now = at(theta);
        for (int t = 0; t < MOST_STEPS; ++t) {
            const double promised = step_of(now, theta, step), little = ROUNDING * fabs(now.value);
            Curve<D> next = now;
            bool is_no_worse = false;
            double share = 1.0;
            for (int halved = 0; halved < HALVINGS && !is_no_worse; ++halved, share *= 0.5) {
                for (int j = 0; j < D; ++j) tried[j] = most(theta[j] - share * step[j], lowest(j));
                next = at(tried);
                is_no_worse = next.value <= now.value + little;
            }
            if (!is_no_worse) break;
            const bool is_better = next.value < now.value - little;
            for (int j = 0; j < D; ++j) theta[j] = tried[j];
            now = next;
            if (!is_better || promised <= LEFT * most(1.0, weight)) break;
        }
        for (int j = 0; j < D; ++j) to[j] = theta[j];
    }
};

template <int D>
int32_t columns_of(struct slimsvm_fit_log_odds_call& call) {
    for (int64_t c = 0; c < call.n_columns; ++c)
        Column<D>{call, call.starts[c], call.starts[c + 1], call.centre + c * D}.descend(call.theta + c * D);
    return SLIMSVM_OK;
}

}  // namespace

int32_t fit_log_odds(struct slimsvm_fit_log_odds_call* call) {
    if (call->d == 1) return columns_of<1>(*call);
    if (call->d == 2) return columns_of<2>(*call);
    if (call->d == 3) return columns_of<3>(*call);
    return call->d == 4 ? columns_of<4>(*call) : SLIMSVM_BAD_ARGUMENT;
}

}  // namespace slimsvm::SLIMSVM_ISA
