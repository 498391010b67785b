// Steps of LASVM on the kernel values between the rows that are in play.
//
// K[a, b] holds the kernel values between slots; v, g = t - Kv, lo, hi and the targets t are per slot; `inside` marks
// the slots of the set S; slots that are not in it have v = 0. Balanced: sum v stays 0 (a free intercept) and steps are
// made in pairs, otherwise one by one on K + offset.
//
// Bordes, Ertekin, Weston, Bottou, "Fast Kernel Classifiers with Online and Active Learning", JMLR 2005, section 3.
#include "decomposition/box.h"
#include "simd/reduce.h"
#include "support/call.h"

namespace slimsvm::SLIMSVM_ISA {

namespace {

template <class T>
struct Online {
    const struct slimsvm_online_set& set;

    const T* kernel_row(int64_t s) const { return static_cast<const T*>(set.values) + s * set.capacity; }

    // Slots of S with the greatest g that can rise and the least that can fall; -1 where there is none.
    void extremes(int64_t& i, int64_t& j) const {
        i = j = -1;
        for (int64_t s = 0; s < set.top; ++s) {
            if (!set.inside[s]) continue;
            if (set.v[s] < set.hi[s] && (i < 0 || set.g[s] > set.g[i])) i = s;
            if (set.v[s] > set.lo[s] && (j < 0 || set.g[s] < set.g[j])) j = s;
        }
    }

    // Raises v_i and lowers v_j by the same, as far as is best.
    void move_pair(int64_t i, int64_t j) const {
        const T *row_i = kernel_row(i), *row_j = kernel_row(j);
        const double curvature = double(row_i[i]) + double(row_j[j]) - 2.0 * double(row_i[j]);
        const double rooms = least(set.hi[i] - set.v[i], set.v[j] - set.lo[j]);
        const double step = least((set.g[i] - set.g[j]) / most(curvature, TINY), rooms);
        set.v[i] = moved(set.v[i], step, set.lo[i], set.hi[i]);
        set.v[j] = moved(set.v[j], -step, set.lo[j], set.hi[j]);
        double* g = set.g;
        for (int64_t s = 0; s < set.top; ++s) g[s] -= step * (double(row_i[s]) - double(row_j[s]));
    }
    // Moves v_i to its best value.
    void move_one(int64_t i) const {
        const T* values = kernel_row(i);
        const double best = set.g[i] / most(double(values[i]) + set.offset, TINY);
        const double step = least(most(best, set.lo[i] - set.v[i]), set.hi[i] - set.v[i]);
        set.v[i] = moved(set.v[i], step, set.lo[i], set.hi[i]);
        double *g = set.g, offset = set.offset;
        for (int64_t s = 0; s < set.top; ++s) g[s] -= step * (double(values[s]) + offset);
    }

    int64_t n_inside() const {
        int64_t n = 0;
        for (int64_t s = 0; s < set.top; ++s) n += set.inside[s] != 0;
        return n;
    }

    // Takes slot k into S if it violates the optimality conditions, and makes the step it asks for.
    void process(int64_t k, double tol, int64_t seeds) const {
        const double value = set.target[k] - dot(kernel_row(k), set.v, set.top) - set.offset * sum(set.v, set.top);
        set.g[k] = value;
        const bool rises = set.hi[k] > 0.0;
        if (!set.balanced) {
            if ((rises ? value : -value) > tol) {
                set.inside[k] = 1;
                move_one(k);
            }
            return;
        }
        int64_t i, j;
        extremes(i, j);
        const int64_t partner = rises ? j : i;
        if (partner < 0) {  // nothing to make a pair with yet
            set.inside[k] = n_inside() < seeds;
        } else if ((rises ? value - set.g[partner] : set.g[partner] - value) > tol) {
            set.inside[k] = 1;
            move_pair(rises ? k : partner, rises ? partner : k);
        }
    }

    // One step on the worst violators in S; false if they violate by no more than tol.
    bool reprocess(double tol) const {
        int64_t i, j;
        extremes(i, j);
        if (set.balanced) {
            if (i < 0 || j < 0 || set.g[i] - set.g[j] <= tol) return false;
            move_pair(i, j);
            return true;
        }
        const double up = i >= 0 ? set.g[i] : 0.0, down = j >= 0 ? set.g[j] : 0.0;
        if (most(up, 0.0) - least(down, 0.0) <= tol) return false;
        const int64_t worst = up >= -down ? i : j;
        if (worst < 0) return false;
        move_one(worst);
        return true;
    }

    // Lets go of slots with v = 0 that no step would move.
    void evict() const {
        int64_t i, j;
        extremes(i, j);
        if (set.balanced && (i < 0 || j < 0)) return;
        double high = i >= 0 ? set.g[i] : 0.0, low = j >= 0 ? set.g[j] : 0.0;
        if (!set.balanced) {
            high = most(high, 0.0);
            low = least(low, 0.0);
        }
        for (int64_t s = 0; s < set.top; ++s)
            if (set.inside[s] && set.v[s] == 0.0 && (set.hi[s] > 0.0 ? set.g[s] <= low : set.g[s] >= high))
                set.inside[s] = 0;
    }
};

bool fits(const struct slimsvm_online_set& set) { return set.top >= 0 && set.top <= set.capacity; }

template <class T>
void learn(struct slimsvm_lasvm_learn_call& call) {
    const Online<T> online = {*call.set};
    for (int64_t q = 0; q < call.n; ++q) {
        online.process(call.queue[q], call.tol, call.seeds);
        if (call.reprocesses && online.reprocess(call.tol)) online.evict();
    }
}

}  // namespace

int32_t lasvm_learn(struct slimsvm_lasvm_learn_call* call) {
    if (!fits(*call->set)) return SLIMSVM_BAD_ARGUMENT;
    if (call->set->real_size == 4)
        learn<float>(*call);
    else
        learn<double>(*call);
    return SLIMSVM_OK;
}

int32_t lasvm_reprocess(struct slimsvm_lasvm_reprocess_call* call) {
    if (!fits(*call->set)) return SLIMSVM_BAD_ARGUMENT;
    call->moved = call->set->real_size == 4 ? Online<float>{*call->set}.reprocess(call->tol)
                                            : Online<double>{*call->set}.reprocess(call->tol);
    return SLIMSVM_OK;
}

int32_t lasvm_evict(struct slimsvm_lasvm_evict_call* call) {
    if (!fits(*call->set)) return SLIMSVM_BAD_ARGUMENT;
    Online<double>{*call->set}.evict();
    return SLIMSVM_OK;
}

}  // namespace slimsvm::SLIMSVM_ISA
