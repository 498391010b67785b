// Dual coordinate ascent for Crammer and Singer's multiclass problem, on a block of rows.
//
//     max_M  D(M) = -sum_i sum_c cost(y_i, c) M_ic - sum_c M_c' K M_c / 2,    sum_c M_ic = 0,   M_ic <= C_i [c = y_i]
//
// A row's M_i, all others given, minimises k |M_i|^2 / 2 + q'M_i with k = K_ii and q_c = cost(y_i, c) + F_ic - k M_ic,
// F = KM: M_ic = min(u_c, (beta - q_c) / k), with beta such that the sum is 0.
//
// Crammer, Singer, "On the Algorithmic Implementation of Multiclass Kernel-based Vector Machines", JMLR 2001, section
// 6; Keerthi, Sundararajan, Chang, Hsieh, Lin, "A Sequential Dual Method for Large Scale Multi-class Linear SVMs", KDD
// 2008.
#include "decomposition/box.h"
#include "support/call.h"

namespace slimsvm::SLIMSVM_ISA {

namespace {

struct ClassBlock {
    struct slimsvm_ascend_classes_call& call;
    double *q, *rooms, *change;
    int64_t* classes;

    const double* cost_of(int64_t i) const { return call.cost + call.labels[i] * call.m; }

    // How far a row is from optimal: the greatest derivative, less the least of those that can still rise.
    double violation(int64_t i) const {
        const double *cost = cost_of(i), *own = call.M + i * call.m, *scores = call.F + i * call.m;
        double top = -HUGE_VAL, low = HUGE_VAL;
        for (int64_t c = 0; c < call.m; ++c) {
            const double value = cost[c] + scores[c];
            if (value > top) top = value;
            if (own[c] < (c == call.labels[i] ? call.C_of_row[i] : 0.0) && value < low) low = value;
        }
        return most(top - low, 0.0);
    }

    // The beta with sum_c max(rooms_c - beta, 0) = budget, from the set of all classes: those that are not above the
    // beta of a set leave it, until none does (Michelot, JOTA 1986).
    double level(double budget) const {
        double beta = -HUGE_VAL;
        for (int64_t n = call.m + 1;;) {
            double total = -budget;
            int64_t n_above = 0;
            for (int64_t c = 0; c < call.m; ++c)
                if (rooms[c] > beta) {
                    total += rooms[c];
                    ++n_above;
                }
            if (n_above == 0 || n_above >= n) return beta;
            n = n_above;
            beta = total / double(n_above);
        }
    }

    // The row's best M_i, less what it is, into `change`.
    void best_row(int64_t i, double k) const {
        const int64_t label = call.labels[i];
        const double C = call.C_of_row[i], *cost = cost_of(i), *scores = call.F + i * call.m;
        const double* own = call.M + i * call.m;
        for (int64_t c = 0; c < call.m; ++c) rooms[c] = q[c] = cost[c] + scores[c] - k * own[c];
        rooms[label] += k * C;
        const double beta = level(k * C);
        double rest = 0.0;
        for (int64_t c = 0; c < call.m; ++c) {
            change[c] = c == label ? 0.0 : least(0.0, (beta - q[c]) / k);
            rest -= change[c];
        }
        if (rest > C) {
            for (int64_t c = 0; c < call.m; ++c) change[c] *= C / rest;
            rest = C;
        }
        change[label] = rest;
    }

    void update(int64_t i) const {
        const double* row = call.K + i * call.n;
        best_row(i, most(row[i] + call.offset, TINY));
        int64_t n_changed = 0;
        for (int64_t c = 0; c < call.m; ++c) {
            double& own = call.M[i * call.m + c];
            const double now = change[c];
            if (now == own) continue;
            change[n_changed] = now - own;
            classes[n_changed++] = c;
            own = now;
        }
        for (int64_t j = 0; j < call.n; ++j) {
            const double factor = row[j] + call.offset;
            double* F = call.F + j * call.m;
            for (int64_t t = 0; t < n_changed; ++t) F[classes[t]] += factor * change[t];
        }
    }

    // Goes on with the sweeps; after max_updates rows were solved for, the rest is for the next call.
    void run() const {
        if (call.goal == 0.0) {
            double first = 0.0;
            for (int64_t i = 0; i < call.n; ++i) first = most(first, violation(i));
            call.goal = most(call.share * first, TINY);
        }
        for (int64_t updates = 0; call.sweeps > 0;) {
            for (; call.row < call.n; ++call.row) {
                const double found = violation(call.row);
                if (!(found > call.goal)) continue;
                if (updates == call.max_updates) return;
                call.worst = most(call.worst, found);
                update(call.row);
                ++updates;
            }
            call.sweeps = call.worst > call.goal ? call.sweeps - 1 : 0;
            call.row = 0;
            call.worst = 0.0;
        }
    }
};

}  // namespace

int32_t ascend_classes(struct slimsvm_ascend_classes_call* call) {
    if (call->row < 0 || call->row > call->n || call->max_updates < 1 ||
        call->max_updates > MOST_WORK / most(call->n * call->m, int64_t(1)))
        return SLIMSVM_BAD_ARGUMENT;
    const int64_t bytes = 4 * call->m * int64_t(sizeof(double)) + 64;
    if (call->n_workspace < bytes) return needs_workspace(*call, bytes);
    double* numbers = reinterpret_cast<double*>(call->workspace + (64 - uintptr_t(call->workspace) % 64) % 64);
    const int64_t m = call->m;
    ClassBlock{*call, numbers, numbers + m, numbers + 2 * m, reinterpret_cast<int64_t*>(numbers + 3 * m)}.run();
    return SLIMSVM_OK;
}

}  // namespace slimsvm::SLIMSVM_ISA
