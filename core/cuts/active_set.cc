// Active set for the small quadratic programme over the live cuts.
//
//     max_a  h'a - 1/2 a'G a    subject to  a >= 0,  sum(a) <= C
//
// Method: a primal active set on the simplex, as in Wolfe, "Finding the nearest point in a polytope" (Mathematical
// Programming 11, 1976), and Kiwiel, "A method for solving certain quadratic programming problems arising in nonsmooth
// optimization" (IMA Journal of Numerical Analysis 6, 1986). The slack C - sum(a) is coordinate 0, with g = 0 and h =
// 0, so that the constraint reads sum(a) = C, and G may be replaced by G' = G + kappa 1 1', which is the same on the
// simplex and singular only where points g are *affinely* dependent. The free coordinates F keep a Cholesky factor
// R'R = G'_FF: a column is appended when a coordinate enters, and Givens rotations repair R when one leaves.
//
//     repeat
//         r = h - G a                                      gradient, computed afresh: each round also refines the last
//         if r is not constant on F:  step towards the maximum over F; what reaches zero on the way leaves F
//         else the largest r_j outside F enters;  stop when none exceeds the common value on F
#include <string.h>

#include "simd/reduce.h"
#include "support/call.h"

namespace slimsvm::SLIMSVM_ISA {

namespace {

constexpr int64_t SLACK = 0;
// A squared pivot below this share of its diagonal is recomputed along the direction itself.
constexpr double PIVOT_TRUSTED = 1e-10;
// A slack below this share of C counts as zero.
constexpr double SUM_ROUNDING = 1e-14;
// Rounding of a gradient, as a share of what its terms could add up to.
constexpr double ROUNDING = 1e-15;
constexpr int64_t MAX_REFINEMENTS = 3;

// What a call does first: choose what enters F; let it enter; go to the maximum over F.
enum Stage { CHOOSE, ENTER, MAXIMISE };
// Numbers in slimsvm_simplex_qp.state.
enum State { N_FREE, N_REFINEMENTS, N_PIVOTS, STAGE, BEST, NEXT };

SLIMSVM_INLINE double larger(double a, double b) { return a < b ? b : a; }

class Simplex {
   public:
    Simplex(const struct slimsvm_simplex_qp& qp, int64_t n)
        : n(n),
          room(qp.n_room),
          G(qp.G),
          h(qp.h),
          a(qp.a),
          R(qp.R),
          ones(qp.V),
          residual(qp.V + room),
          r(qp.vectors),
          d(r + room),
          u(d + room),
          free(qp.free),
          inside(qp.marks),
          state(qp.state),
          kappa(qp.kappa),
          p(qp.state[N_FREE]) {}

    bool is_sound(bool goes_on) const;
    void start(double C);
    void keep(const int64_t* kept, int64_t n_kept);
    bool maximise(double tol, int64_t max_pivots, int64_t max_work);
    void read_kkt(double& xi, double& kkt) const;
    void store() { state[N_FREE] = p; }

   private:
    const int64_t n, room;
    double *const G, *const h, *const a, *const R;
    double *const ones, *const residual;  // R'^-1 1 and R'^-1 r_F, which follow R as coordinates come and go
    double *const r, *const d, *const u;  // gradient; direction, by place in F; G times the direction
    int64_t *const free, *const inside, *const state;
    double* const kappa;
    int64_t p;           // coordinates in F
    int64_t work = 0;    // multiply-adds of this call
    double scale = 1.0;  // max(|h|, |G a|)

    double* row(int64_t i) const { return R + i * room; }
    void solve_lower(double* x);
    void solve_upper(double* x);
    void leave(int64_t k);
    bool balance(int64_t count);
    double longest_step(int64_t count) const;
    void move(int64_t count, double step);
    void append_pivot(double pivot);
    enum Trade { NOWHERE, BETWEEN, TO_AN_END };
    Trade trade(double& curvature);
    void enter(int64_t j);
    bool enter_all(int64_t max_work);
    bool maximise_over_free(int64_t max_work);
    void drop_zeros();
    void make_feasible(double C);
    double gradient(double largest);
    bool all_free() const;
    bool choose(double allowed, double largest);
};

// Whether the free coordinates are different ones and the multipliers finite, and if it goes on, whether the state is
// possible. Uses the marks.
bool Simplex::is_sound(bool goes_on) const {
    if (goes_on && (state[STAGE] < CHOOSE || state[STAGE] > MAXIMISE || state[BEST] < -1 || state[BEST] >= n ||
                    state[NEXT] < 0 || state[NEXT] > n))
        return false;
    if (p < 0 || p > n) return false;
    for (int64_t j = 0; j < n; ++j) {
        if (!(fabs(a[j]) < HUGE_VAL)) return false;
        inside[j] = 0;
    }
    for (int64_t k = 0; k < p; ++k) {
        if (free[k] < 0 || free[k] >= n || inside[free[k]]) return false;
        inside[free[k]] = 1;
    }
    return true;
}

// Solves R'z = x in place.
void Simplex::solve_lower(double* x) {
    for (int64_t i = 0; i < p; ++i) {
        x[i] /= row(i)[i];
        add_scaled(-x[i], row(i) + i + 1, x + i + 1, p - i - 1);
    }
    work += p * p / 2;
}

// Solves R z = x in place.
void Simplex::solve_upper(double* x) {
    for (int64_t i = p - 1; i >= 0; --i) x[i] = (x[i] - dot(row(i) + i + 1, x + i + 1, p - i - 1)) / row(i)[i];
    work += p * p / 2;
}

// Takes the k-th free coordinate out of F, of the factor and of what follows it.
void Simplex::leave(int64_t k) {
    for (int64_t i = k; i < p - 1; ++i) {
        double* __restrict upper = row(i), * __restrict lower = row(i + 1);
        const double x = upper[i + 1], y = lower[i + 1], length = hypot(x, y);
        const double c = x / length, s = y / length;
        upper[i + 1] = length;
        for (int64_t j = i + 2; j < p; ++j) {
            const double above = upper[j], below = lower[j];
            upper[j] = c * above + s * below;
            lower[j] = c * below - s * above;
        }
        for (double* v = ones; v <= residual; v += room) {
            const double above = v[i], below = v[i + 1];
            v[i] = (x * above + y * below) / length;
            v[i + 1] = (x * below - y * above) / length;
        }
        free[i] = free[i + 1];
    }
    for (int64_t i = 0; i < p - 1; ++i) {
        const int64_t first = most(i, k);
        memmove(row(i) + first, row(i) + first + 1, size_t(p - 1 - first) * sizeof(double));
    }
    work += (p - k) * p;
    --p;
}

// Makes sum(d) = 0 hold exactly, which rounding left undone. Whether d leads anywhere.
bool Simplex::balance(int64_t count) {
    double gain = 0.0, loss = 0.0;
    for (int64_t k = 0; k < count; ++k) (d[k] > 0.0 ? gain : loss) += fabs(d[k]);
    if (gain == 0.0 || loss == 0.0) return false;
    for (int64_t k = 0; k < count; ++k)
        if (d[k] > 0.0) d[k] *= loss / gain;
    return true;
}

// Largest step along d that keeps a >= 0.
double Simplex::longest_step(int64_t count) const {
    double longest = HUGE_VAL;
    for (int64_t k = 0; k < count; ++k)
        if (d[k] < 0.0) longest = least(longest, a[free[k]] / -d[k]);
    return longest;
}

// Adds step * d to a on F; what blocks a longer step becomes exactly zero.
void Simplex::move(int64_t count, double step) {
    for (int64_t k = 0; k < count; ++k) {
        const double before = a[free[k]], moved = before + step * d[k];
        a[free[k]] = moved <= 0.0 || (d[k] < 0.0 && before / -d[k] <= step) ? 0.0 : moved;
    }
}

// Takes every free coordinate that is zero out of F.
void Simplex::drop_zeros() {
    for (int64_t k = p - 1; k >= 0; --k)
        if (a[free[k]] == 0.0) leave(k);
}

// Completes the new column p of R, and R'^-1 1.
void Simplex::append_pivot(double pivot) {
    row(p)[p] = pivot;
    double rest = 1.0;
    for (int64_t k = 0; k < p; ++k) rest -= row(k)[p] * ones[k];
    ones[p] = rest / pivot;
    ++p;
}

// Trades a_j, with free[p] = j, for the rest of F, as far as the objective rises: nowhere; to a maximum between the
// ends, whose curvature is returned (a stays as it is); or until a coordinate reaches zero, where a is then.
Simplex::Trade Simplex::trade(double& curvature) {
    solve_upper(d);
    for (int64_t k = 0; k < p; ++k) d[k] = -d[k];
    d[p] = 1.0;
    if (!balance(p + 1)) return NOWHERE;
    for (int64_t i = 0; i < n; ++i) u[i] = 0.0;
    for (int64_t k = 0; k <= p; ++k) add_scaled(d[k], G + free[k] * room, u, n);
    work += (p + 1) * n;
    double slope = 0.0;
    curvature = 0.0;
    for (int64_t k = 0; k <= p; ++k) {
        slope += d[k] * r[free[k]];
        curvature += d[k] * u[free[k]];
    }
    if (slope < 0.0) {
        slope = -slope;
        for (int64_t k = 0; k <= p; ++k) d[k] = -d[k];
        for (int64_t i = 0; i < n; ++i) u[i] = -u[i];
    }
    const double step = longest_step(p + 1);
    if (slope < curvature * step) return BETWEEN;
    move(p + 1, step);
    add_scaled(-step, u, r, n);
    return TO_AN_END;
}

// Brings coordinate j into F, at its present value.
//
// Where g_j is affinely dependent on F the factor has no column for it. The direction that trades a_j for the rest of F
// then has next to no curvature, and rounding may even make it negative: where the objective rises along it until a
// coordinate reaches zero, that one leaves, which ends the dependence; otherwise the curvature found along the
// direction itself, more accurate than the pivot, takes the pivot's place.
void Simplex::enter(int64_t j) {
    ++state[N_PIVOTS];
    for (;;) {
        const double diagonal = G[j * room + j] + *kappa;
        for (int64_t k = 0; k < p; ++k) d[k] = G[j * room + free[k]] + *kappa;
        solve_lower(d);
        const double pivot = diagonal - dot(d, d, p);
        free[p] = j;
        for (int64_t k = 0; k < p; ++k) row(k)[p] = d[k];
        if (p == 0 || pivot > PIVOT_TRUSTED * diagonal) return append_pivot(sqrt(larger(pivot, 1e-300)));
        double curvature;
        const Trade traded = trade(curvature);
        if (traded == BETWEEN) return append_pivot(sqrt(curvature));
        const int64_t before = p;
        if (traded == TO_AN_END) drop_zeros();
        state[N_PIVOTS] += before - p;
        if (a[j] == 0.0 || p == before) return;
    }
}

// Brings state[BEST] and every positive coordinate from state[NEXT] on into F. Whether it came to the end.
bool Simplex::enter_all(int64_t max_work) {
    for (int64_t j = 0; j < n; ++j) inside[j] = 0;
    for (int64_t k = 0; k < p; ++k) inside[free[k]] = 1;
    for (int64_t& j = state[NEXT]; j < n; ++j) {
        if (inside[j] || !(a[j] > 0.0 || j == state[BEST])) continue;
        enter(j);
        if (work < max_work) continue;
        ++j;
        return false;
    }
    return true;
}

// Moves to the maximum over F; what reaches zero on the way leaves F. Needs r on F. Whether it came to the end.
//
// The direction is d = G'_FF^-1 (r_F - mu 1) with mu such that sum(d) = 0. A step of length s leaves
// r_F = (1 - s) r_F + s mu 1, hence R'^-1 r_F needs no new solve.
bool Simplex::maximise_over_free(int64_t max_work) {
    double mean = 0.0;
    for (int64_t k = 0; k < p; ++k) mean += r[free[k]] / double(p);
    for (int64_t k = 0; k < p; ++k) residual[k] = r[free[k]] - mean;
    solve_lower(residual);
    for (;;) {
        const double mu = dot(residual, ones, p) / dot(ones, ones, p);
        add_scaled(-mu, ones, residual, p);
        memcpy(d, residual, size_t(p) * sizeof(double));
        solve_upper(d);
        if (!balance(p)) return true;
        const double step = least(1.0, longest_step(p));
        move(p, step);
        for (int64_t k = 0; k < p; ++k) residual[k] *= 1.0 - step;
        const int64_t before = p;
        drop_zeros();
        state[N_PIVOTS] += before - p;
        if (step == 1.0 || p == before) return true;
        if (work >= max_work) return false;
    }
}

// Clips at zero, scales down to sum C where the cuts' multipliers exceed it, and gives the rest to the slack. Where no
// constant is positive the solution is zero, and exactly so.
void Simplex::make_feasible(double C) {
    double highest = 0.0, total = 0.0;
    for (int64_t j = 1; j < n; ++j) highest = larger(highest, h[j]);
    for (int64_t j = 1; j < n; ++j) {
        a[j] = highest > 0.0 ? larger(a[j], 0.0) : 0.0;
        total += a[j];
    }
    a[SLACK] = C - total;
    if (total > C * (1.0 - SUM_ROUNDING)) {
        a[SLACK] = 0.0;
        for (int64_t j = 1; j < n; ++j) a[j] *= C / total;
    }
}

// Whether no positive coordinate is outside F.
bool Simplex::all_free() const {
    int64_t n_positive = 0;
    for (int64_t j = 0; j < n; ++j) n_positive += a[j] > 0.0;
    return n_positive == p;
}

// Writes r = h - G a and the scale; returns the rounding error that r can have: by Cauchy-Schwarz, |G| a is at most
// sqrt(largest G_jj) sum_k a_k sqrt(G_kk).
double Simplex::gradient(double largest) {
    for (int64_t j = 0; j < n; ++j) r[j] = 0.0;
    double reach = 0.0;
    for (int64_t j = 0; j < n; ++j) {
        if (!(a[j] > 0.0)) continue;
        reach += a[j] * sqrt(larger(G[j * room + j], 0.0));
        add_scaled(a[j], G + j * room, r, n);
        work += n;
    }
    scale = 1e-300;
    for (int64_t j = 0; j < n; ++j) {
        scale = larger(larger(scale, fabs(h[j])), fabs(r[j]));
        r[j] = h[j] - r[j];
    }
    return ROUNDING * (scale + sqrt(largest) * reach);
}

// Decides what enters F, given r, and begins the factor afresh where nothing is lost by it. False: a is the solution.
bool Simplex::choose(double allowed, double largest) {
    double lowest = HUGE_VAL, highest = -HUGE_VAL;
    for (int64_t k = 0; k < p; ++k) {
        lowest = least(lowest, r[free[k]]);
        highest = larger(highest, r[free[k]]);
    }
    int64_t best = -1;
    if (highest - lowest > allowed && state[N_REFINEMENTS] < MAX_REFINEMENTS) {
        if (++state[N_REFINEMENTS] == MAX_REFINEMENTS) p = 0;
    } else if (all_free()) {
        state[N_REFINEMENTS] = 0;
        for (int64_t j = 0; j < n; ++j)
            if (a[j] == 0.0 && (best < 0 || r[j] > r[best])) best = j;
        if (best < 0 || r[best] <= highest + allowed) return false;
    }
    if (p <= 1 && largest > 0.0) {
        p = 0;
        *kappa = largest;
    }
    state[BEST] = best;
    state[NEXT] = 0;
    return true;
}

// Rounds until a is the solution, or all pivots are used up: true. False: the work of this call is done.
bool Simplex::maximise(double tol, int64_t max_pivots, int64_t max_work) {
    double largest = 0.0;
    for (int64_t j = 0; j < n; ++j) largest = larger(largest, G[j * room + j]);
    for (;;) {
        const double noise = gradient(largest);
        const int64_t n_pivots = state[N_PIVOTS], n_refinements = state[N_REFINEMENTS];
        const bool goes_on = state[STAGE] != CHOOSE;
        if (!goes_on) {
            if (n_pivots >= max_pivots || !choose(larger(tol * scale, noise), largest)) return true;
            state[STAGE] = ENTER;
        }
        if (state[STAGE] == ENTER) {
            if (!enter_all(max_work)) return false;
            state[STAGE] = MAXIMISE;
        }
        if (!maximise_over_free(max_work)) return false;
        state[STAGE] = CHOOSE;
        // A round that changes nothing and refines nothing: only numbers that are not finite come here.
        if (!goes_on && state[N_PIVOTS] == n_pivots && state[N_REFINEMENTS] <= n_refinements) return true;
        if (work >= max_work) return false;
    }
}

// Multiplier xi = max(r) of the constraint, and the largest xi - r_j over a_j > 0 relative to the scale.
void Simplex::read_kkt(double& xi, double& kkt) const {
    xi = r[0];
    for (int64_t j = 1; j < n; ++j) xi = larger(xi, r[j]);
    double worst = 0.0;
    for (int64_t j = 0; j < n; ++j)
        if (a[j] > 0.0) worst = larger(worst, xi - r[j]);
    kkt = worst / scale;
}

// Begins to solve: from the last solution, made feasible.
void Simplex::start(double C) {
    state[N_REFINEMENTS] = state[N_PIVOTS] = state[NEXT] = 0;
    state[STAGE] = CHOOSE;
    state[BEST] = -1;
    make_feasible(C);
    drop_zeros();
}

// Moves the coordinates `kept` to the front; the multipliers of the others become zero.
void Simplex::keep(const int64_t* kept, int64_t n_kept) {
    for (int64_t j = 0; j < n; ++j) inside[j] = -1;
    for (int64_t k = 0; k < n_kept; ++k) inside[kept[k]] = k;
    for (int64_t j = 0; j < n; ++j)
        if (inside[j] < 0) a[j] = 0.0;
    drop_zeros();
    for (int64_t k = 0; k < p; ++k) free[k] = inside[free[k]];
    for (int64_t k = 0; k < n_kept; ++k) {
        h[k] = h[kept[k]];
        a[k] = a[kept[k]];
        for (int64_t i = 0; i < n_kept; ++i) G[k * room + i] = G[kept[k] * room + kept[i]];
    }
}

}  // namespace

int32_t maximise_on_simplex(struct slimsvm_maximise_on_simplex_call* call) {
    if (call->n < 1 || call->n > call->qp->n_room || !(call->C > 0.0 && call->C < HUGE_VAL))
        return SLIMSVM_BAD_ARGUMENT;
    Simplex simplex(*call->qp, call->n);
    if (!simplex.is_sound(!call->is_start)) return SLIMSVM_BAD_ARGUMENT;
    if (call->is_start) simplex.start(call->C);
    call->is_done = simplex.maximise(call->tol, call->max_pivots, call->max_work);
    simplex.read_kkt(call->xi, call->kkt);
    simplex.store();
    call->n_pivots = call->qp->state[N_PIVOTS];
    return SLIMSVM_OK;
}

int32_t keep_on_simplex(struct slimsvm_keep_on_simplex_call* call) {
    if (call->n < 1 || call->n > call->qp->n_room || call->n_kept < 1 || call->kept[0] != SLACK)
        return SLIMSVM_BAD_ARGUMENT;
    for (int64_t k = 1; k < call->n_kept; ++k)
        if (call->kept[k] <= call->kept[k - 1]) return SLIMSVM_BAD_ARGUMENT;
    Simplex simplex(*call->qp, call->n);
    if (!simplex.is_sound(false)) return SLIMSVM_BAD_ARGUMENT;
    simplex.keep(call->kept, call->n_kept);
    simplex.store();
    return SLIMSVM_OK;
}

}  // namespace slimsvm::SLIMSVM_ISA
