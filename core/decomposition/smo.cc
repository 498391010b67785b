// Sequential minimal optimisation inside a set of rows: pairs of variables, or two with bounds only.
//
//     max_v  D(v) = sum t_i v_i - epsilon sum |v_i| - v'Kv / 2,    lo <= v <= hi,    balanced: sum v_i kept as it is,
//                                                                                   and sum |v_i| if it is 2
//
// g = t - Kv. Because of |v_i| the derivatives upwards and downwards differ where v_i = 0: they are u_i = g_i + rise_i
// and d_i = g_i - drop_i, with rise and drop of -epsilon or epsilon, and -BIG where v_i cannot move that way.
#include "decomposition/box.h"
#include "support/call.h"

namespace slimsvm::SLIMSVM_ISA {

namespace {

// Vectors that are met at a time: one alone would wait for its own comparisons.
constexpr int ABREAST = 4;
constexpr int LANES_ABREAST = ABREAST * LANES<double>;

SLIMSVM_INLINE IntVec<double> lane_numbers() {
    IntVec<double> numbers;
    for (int lane = 0; lane < LANES<double>; ++lane) numbers[lane] = lane;
    return numbers;
}

// The place of the greatest fraction top / below of many, and the fraction. Fractions are compared by products: a
// division takes longer than all the rest.
struct Greatest {
    Vec<double> top[ABREAST], below[ABREAST];
    IntVec<double> round[ABREAST];  // which of the calls of `meet` it came from

    SLIMSVM_INLINE explicit Greatest(double least_top) {
        SLIMSVM_EACH (v, ABREAST) {
            top[v] = splat<double>(least_top);
            below[v] = splat<double>(1.0);
            round[v] = IntVec<double>{} - 1;
        }
    }
    SLIMSVM_INLINE void meet(int v, Vec<double> a, IntVec<double> now) {
        const auto is_more = a > top[v];
        top[v] = is_more ? a : top[v];
        round[v] = is_more ? now : round[v];
    }
    SLIMSVM_INLINE void meet(int v, Vec<double> a, Vec<double> b, IntVec<double> now) {
        const auto is_more = a * below[v] > top[v] * b;
        top[v] = is_more ? a : top[v];
        below[v] = is_more ? b : below[v];
        round[v] = is_more ? now : round[v];
    }
};

struct Place {
    double top, below;
    int64_t k;  // -1: none is above what the search began with

    SLIMSVM_INLINE void meet(double a, double b, int64_t place) {
        if (a * below > top * b) {
            top = a;
            below = b;
            k = place;
        }
    }
};

// The greatest of all lanes, and of the last places, which filled no vector.
SLIMSVM_INLINE Place greatest_of(const Greatest& all, const Place& last) {
    Vec<double> top = all.top[0], below = all.below[0];
    IntVec<double> at = all.round[0] * LANES_ABREAST + lane_numbers();
    SLIMSVM_UNROLL for (int v = 1; v < ABREAST; ++v) {
        const auto is_more = all.top[v] * below > top * all.below[v];
        top = is_more ? all.top[v] : top;
        below = is_more ? all.below[v] : below;
        at = is_more ? all.round[v] * LANES_ABREAST + (lane_numbers() + v * LANES<double>) : at;
    }
    Place best = {top[0], below[0], at[0]};
    for (int lane = 1; lane < LANES<double>; ++lane) best.meet(top[lane], below[lane], at[lane]);
    if (best.k < 0) best.k = -1;
    if (last.k >= 0) best.meet(last.top, last.below, last.k);
    return best;
}

// D: what the diagonal of K is kept in. Where the columns of the rows are not the first n, kernel rows are gathered
// when they are first asked for.
template <class T, class D>
struct Set {
    const struct slimsvm_smo_call& call;
    int64_t n;
    double offset, epsilon;
    const double *lo, *hi;
    double *g, *v, *rise, *drop;
    D* diagonal;
    T* gathered;        // n kernel rows
    uint8_t* is_there;  // which of them

    // Rows without a kernel row are closed by a derivative of BIG, which one beyond that would outdo.
    bool has_kernel_row(int64_t k) const { return k >= 0 && call.slots[k] >= 0; }
    const T* cached_row(int64_t k) const { return static_cast<const T*>(call.values) + call.slots[k] * call.width; }
    const T* kernel_row(int64_t k) const {
        const T* values = cached_row(k);
        if (!call.places) return values;
        T* own = gathered + k * n;
        if (!is_there[k]) {
            for (int64_t b = 0; b < n; ++b) own[b] = values[call.places[b]];
            is_there[k] = 1;
        }
        return own;
    }

    void note_rooms(int64_t k) {
        const bool stays = call.slots[k] < 0;
        rise[k] = stays ? -BIG : rise_at(v[k], hi[k], epsilon);
        drop[k] = stays ? -BIG : drop_at(v[k], lo[k], epsilon);
    }
    void begin() {
        for (int64_t k = 0; k < n; ++k) {
            note_rooms(k);
            if (call.places) is_there[k] = 0;
            const T own = call.diagonal ? static_cast<const T*>(call.diagonal)[k]
                                        : cached_row(k)[call.places ? call.places[k] : k];
            diagonal[k] = D(own) + D(offset);
        }
    }

    // The mean of the derivatives of the variables that are free; of the greatest u and the least d if none is.
    double middle() const {
        double sum = 0.0, highest = -BIG, lowest = BIG;
        int64_t n_free = 0;
        for (int64_t k = 0; k < n; ++k) {
            const double up = g[k] + rise[k], down = g[k] - drop[k];
            if (v[k] > lo[k] && v[k] < hi[k] && v[k] != 0.0) {
                sum += up;
                ++n_free;
            }
            if (v[k] < hi[k]) highest = most(highest, up);
            if (v[k] > lo[k]) lowest = least(lowest, down);
        }
        if (n_free) return sum / double(n_free);
        if (highest == -BIG || lowest == BIG) return highest > -BIG ? highest : lowest < BIG ? lowest : 0.0;
        return 0.5 * (highest + lowest);
    }

    // Calls f(first place, vector of the group, number of the group) for whole vectors, then rest(place).
    template <class F, class R>
    SLIMSVM_INLINE void sweep(const F& f, const R& rest) const {
        constexpr int lanes = LANES<double>;
        int64_t k = 0;
        IntVec<double> now = {};
        for (; k + LANES_ABREAST <= n; k += LANES_ABREAST, now += 1)
            SLIMSVM_EACH (v, ABREAST) f(k + v * lanes, v, now);
        for (int v = 0; v + 1 < ABREAST && k + lanes <= n; ++v, k += lanes) f(k, v, now);
        for (; k < n; ++k) rest(k);
    }
};

// The greatest u and the least d, and where.
struct Slopes {
    Place up, down;  // down: of -d
};

// Takes a row_a + b row_b + constant from g; the slopes then. Where the least d stands is known if `PLACES`.
template <class T, bool MOVES, bool PLACES, class D>
inline Slopes descend(Set<T, D>& set, double a, const T* row_a, double b, const T* row_b, double constant) {
    Greatest ups(-BIG), downs(-BIG);
    double *g = set.g, *rise = set.rise, *drop = set.drop;
    Place last_up = {-BIG, 1.0, -1}, last_down = last_up;
    set.sweep(
        [&](int64_t k, int v, IntVec<double> now) {
            Vec<double> value = load<double>(g + k);
            if (MOVES) {
                value -= a * load_wide(row_a + k) + b * load_wide(row_b + k) + constant;
                store<double>(g + k, value);
            }
            ups.meet(v, value + load<double>(rise + k), now);
            const Vec<double> down = load<double>(drop + k) - value;
            if (PLACES)
                downs.meet(v, down, now);
            else
                downs.top[v] = maximum<double>(down, downs.top[v]);
        },
        [&](int64_t k) {
            if (MOVES) g[k] -= a * double(row_a[k]) + b * double(row_b[k]) + constant;
            last_up.meet(g[k] + rise[k], 1.0, k);
            last_down.meet(drop[k] - g[k], 1.0, k);
        });
    return {greatest_of(ups, last_up), greatest_of(downs, last_down)};
}

// The same of the variables above 0 and of those below, where a variable at 0 rises with the first and falls with the
// others: [0] and [1]. A pair of one side keeps sum |v_i|.
template <class T, bool MOVES>
inline void descend_sides(Set<T, T>& set, double a, const T* row_a, const T* row_b, Slopes sides[2]) {
    Greatest ups(-BIG), downs(-BIG), ups_below(-BIG), downs_below(-BIG);
    double *g = set.g, *rise = set.rise, *drop = set.drop, *v = set.v;
    const Place none = {-BIG, 1.0, -1};
    Slopes last[2] = {{none, none}, {none, none}};
    const Vec<double> zero = {}, closed = splat<double>(-BIG);
    set.sweep(
        [&](int64_t k, int n, IntVec<double> now) {
            Vec<double> value = load<double>(g + k);
            if (MOVES) {
                value -= a * load_wide(row_a + k) - a * load_wide(row_b + k);
                store<double>(g + k, value);
            }
            const Vec<double> at = load<double>(v + k);
            const Vec<double> up = value + load<double>(rise + k), down = load<double>(drop + k) - value;
            ups.meet(n, at >= zero ? up : closed, now);
            ups_below.meet(n, at >= zero ? closed : up, now);
            downs.top[n] = maximum<double>(at > zero ? down : closed, downs.top[n]);
            downs_below.top[n] = maximum<double>(at > zero ? closed : down, downs_below.top[n]);
        },
        [&](int64_t k) {
            if (MOVES) g[k] -= a * double(row_a[k]) - a * double(row_b[k]);
            last[v[k] < 0.0].up.meet(g[k] + rise[k], 1.0, k);
            last[v[k] <= 0.0].down.meet(drop[k] - g[k], 1.0, k);
        });
    sides[0] = {greatest_of(ups, last[0].up), greatest_of(downs, last[0].down)};
    sides[1] = {greatest_of(ups_below, last[1].up), greatest_of(downs_below, last[1].down)};
}

// The slopes of the side that violates more, or of all.
template <class T, bool SIDES, bool MOVES>
SLIMSVM_INLINE Slopes slopes_of(Set<T, T>& set, double move, const T* row_up, const T* row_down) {
    if (!SIDES) return descend<T, MOVES, false>(set, move, row_up, -move, row_down, 0.0);
    Slopes sides[2];
    descend_sides<T, MOVES>(set, move, row_up, row_down, sides);
    const double above = sides[0].up.top + sides[0].down.top, below = sides[1].up.top + sides[1].down.top;
    return sides[below > above];
}

// The k with the greatest gain of moving v_i up and v_k down: (top - d_k)^2 / (K_ii + K_kk - 2 K_ik); of its side.
template <class T, bool SIDES>
inline int64_t best_partner(const Set<T, T>& set, const T* row, double own, double top, bool is_above) {
    Greatest gains(0.0);
    const double *g = set.g, *drop = set.drop, *v = set.v;
    const T* diagonal = set.diagonal;
    Place last = {0.0, 1.0, -1};
    const Vec<double> zero = {}, tiny = splat<double>(TINY);
    set.sweep(
        [&](int64_t k, int n, IntVec<double> now) {
            Vec<double> away = maximum<double>(top + load<double>(drop + k) - load<double>(g + k), zero);
            if (SIDES) {
                const auto stands_above = load<double>(v + k) > zero;
                away = is_above ? (stands_above ? away : zero) : (stands_above ? zero : away);
            }
            const Vec<double> curvature = own + load_wide(diagonal + k) - 2.0 * load_wide(row + k);
            gains.meet(n, away * away, maximum<double>(curvature, tiny), now);
        },
        [&](int64_t k) {
            if (SIDES && (v[k] > 0.0) != is_above) return;
            const double away = most(top + drop[k] - g[k], 0.0);
            last.meet(away * away, most(own + double(diagonal[k]) - 2.0 * double(row[k]), TINY), k);
        });
    return greatest_of(gains, last).k;
}

struct Ended {
    int64_t steps;
    double gain, violation;
};

// Pairs, chosen by second-order information: Fan, Chen, Lin, "Working Set Selection Using Second Order Information for
// Training Support Vector Machines", JMLR 2005, WSS 2. The offset has no effect, and is 0 here.
template <class T, bool SIDES>
Ended pairs(Set<T, T>& set, double tol, int64_t max_steps) {
    set.begin();
    double *v = set.v, *g = set.g, gain = 0.0;
    Slopes slopes = slopes_of<T, SIDES, false>(set, 0.0, nullptr, nullptr);
    int64_t step = 0;
    for (; step < max_steps; ++step) {
        const double top = slopes.up.top;
        const int64_t i = slopes.up.k;
        if (top + slopes.down.top <= tol || !set.has_kernel_row(i)) break;
        set.drop[i] = -BIG;  // no partner of itself
        const T* row = set.kernel_row(i);
        const int64_t j = best_partner<T, SIDES>(set, row, double(set.diagonal[i]), top, v[i] >= 0.0);
        if (!set.has_kernel_row(j)) {
            set.note_rooms(i);
            break;
        }
        const double slope = top + set.drop[j] - g[j];
        const double curvature = most(double(set.diagonal[i]) + double(set.diagonal[j]) - 2.0 * double(row[j]), TINY);
        const double rooms = least(up_room(v[i], set.hi[i]), down_room(v[j], set.lo[j]));
        const double move = least(slope / curvature, rooms);
        gain += move * (slope - 0.5 * move * curvature);
        v[i] = moved(v[i], move, set.lo[i], set.hi[i]);
        v[j] = moved(v[j], -move, set.lo[j], set.hi[j]);
        set.note_rooms(i);
        set.note_rooms(j);
        slopes = slopes_of<T, SIDES, true>(set, move, row, set.kernel_row(j));
    }
    return {step, gain, slopes.up.top + slopes.down.top};
}

// The k whose going with v_i to the best point of both adds most to the gain of a step in v_i; none if none adds.
// Gains are up to a common factor.
template <class T>
inline int64_t second(const Set<T, double>& set, const T* row, double own, double slope) {
    Greatest gains(0.0);
    const double *g = set.g, *rise = set.rise, *drop = set.drop, *diagonal = set.diagonal;
    const double offset = set.offset;
    Place last = {0.0, 1.0, -1};
    const Vec<double> zero = {}, tiny = splat<double>(TINY * own);
    set.sweep(
        [&](int64_t k, int v, IntVec<double> now) {
            const Vec<double> cross = load_wide(row + k) + offset, value = load<double>(g + k), along = slope * cross;
            const Vec<double> up = (value + load<double>(rise + k)) * own - along;
            const Vec<double> down = (value - load<double>(drop + k)) * own - along;
            const Vec<double> part = maximum<double>(up, zero) + minimum<double>(down, zero);
            const Vec<double> det = own * load<double>(diagonal + k) - cross * cross;
            gains.meet(v, part * part, maximum<double>(det, tiny), now);
        },
        [&](int64_t k) {
            const double cross = double(row[k]) + offset, along = slope * cross;
            const double up = (g[k] + rise[k]) * own - along, down = (g[k] - drop[k]) * own - along;
            const double part = most(up, 0.0) + least(down, 0.0);
            last.meet(part * part, most(own * diagonal[k] - cross * cross, TINY * own), k);
        });
    return greatest_of(gains, last).k;
}

// One of two variables: its slope in the direction that it goes, its curvature, and how far it may go.
struct Side {
    double slope, own, room;
    bool rises;
    double low() const { return rises ? 0.0 : -room; }
    double high() const { return rises ? room : 0.0; }
};

// Moves of two variables, each within its room and direction, that raise D: the best ones, mostly. The part of the
// unbounded step that the rooms allow, then each of the two exactly, given the other.
inline void best_of_two(const Side& a, const Side& b, double cross, double det, double& move, double& other) {
    move = (a.slope * b.own - b.slope * cross) / det;
    other = (b.slope * a.own - a.slope * cross) / det;
    double share = 1.0;
    if (move < a.low() || move > a.high())
        share = (move > 0.0) == a.rises ? least(share, most(a.room / fabs(move), 0.0)) : 0.0;
    if (other < b.low() || other > b.high())
        share = (other > 0.0) == b.rises ? least(share, b.room / fabs(other)) : 0.0;
    if (share < 1.0) {
        other *= share;
        move = least(most((a.slope - cross * other) / a.own, a.low()), a.high());
        other = least(most((b.slope - cross * move) / b.own, b.low()), b.high());
    }
}

// Two variables at a time with nothing but bounds: Steinwart, Hush, Scovel, "Training SVMs Without Offset", JMLR 2011,
// section 3.
template <class T>
Ended box(Set<T, double>& set, double tol, int64_t max_steps) {
    set.begin();
    double *v = set.v, *g = set.g, gain = 0.0;
    Slopes slopes = descend<T, false, true>(set, 0.0, nullptr, 0.0, nullptr, 0.0);
    int64_t step = 0;
    for (; step < max_steps; ++step) {
        if (most(slopes.up.top, 0.0) + most(slopes.down.top, 0.0) <= tol) break;
        const bool up = slopes.up.top >= slopes.down.top;
        const int64_t i = up ? slopes.up.k : slopes.down.k;
        if (!set.has_kernel_row(i)) break;
        const T* row = set.kernel_row(i);
        const double own = most(set.diagonal[i], TINY);
        const Side first = {up ? g[i] + set.rise[i] : g[i] - set.drop[i], own,
                            up ? up_room(v[i], set.hi[i]) : down_room(v[i], set.lo[i]), up};
        int64_t j = second(set, row, own, first.slope);
        double move = least(fabs(first.slope) / own, first.room) * (up ? 1.0 : -1.0), other = 0.0;
        if (!set.has_kernel_row(j) || j == i) {
            j = i;
        } else {
            const double cross = double(row[j]) + set.offset;
            const double det = most(own * set.diagonal[j] - cross * cross, TINY * own);
            const bool rises = (g[j] + set.rise[j]) * own - first.slope * cross > 0.0;
            const Side partner = {rises ? g[j] + set.rise[j] : g[j] - set.drop[j], most(set.diagonal[j], TINY),
                                  rises ? up_room(v[j], set.hi[j]) : down_room(v[j], set.lo[j]), rises};
            best_of_two(first, partner, cross, det, move, other);
            gain += other * (partner.slope - 0.5 * other * set.diagonal[j] - move * cross);
            v[j] = moved(v[j], other, set.lo[j], set.hi[j]);
        }
        gain += move * (first.slope - 0.5 * move * own);
        v[i] = moved(v[i], move, set.lo[i], set.hi[i]);
        set.note_rooms(i);
        set.note_rooms(j);
        slopes = descend<T, true, true>(set, move, row, other, set.kernel_row(j), set.offset * (move + other));
    }
    return {step, gain, most(slopes.up.top, 0.0) + most(slopes.down.top, 0.0)};
}

template <class T, class D>
void solve(struct slimsvm_smo_call& call, double offset, uint8_t* workspace,
           Ended (*solver)(Set<T, D>&, double, int64_t)) {
    const int64_t n = call.n;
    double* numbers = reinterpret_cast<double*>(workspace);
    T* gathered = reinterpret_cast<T*>(numbers + 3 * n);
    Set<T, D> set = {call,
                     n,
                     offset,
                     call.epsilon,
                     call.lo,
                     call.hi,
                     call.g,
                     call.v,
                     numbers,
                     numbers + n,
                     reinterpret_cast<D*>(numbers + 2 * n),
                     gathered,
                     reinterpret_cast<uint8_t*>(gathered + n * n)};
    const Ended ended = solver(set, call.tol, call.max_steps);
    call.steps = ended.steps;
    call.gain = ended.gain;
    call.violation = ended.violation;
    call.middle = set.middle();
}

// Of a set of n rows, and of its own kernel rows where they are gathered.
template <class T>
int64_t workspace_bytes(int64_t n, bool gathers) {
    return 3 * n * int64_t(sizeof(double)) + (gathers ? n * n * int64_t(sizeof(T)) + n : 0) + 64;
}

template <class T>
int32_t smo_of(struct slimsvm_smo_call& call) {
    const int64_t n = call.n;
    if ((!call.places && n > call.width) || call.max_steps < 0 || call.max_steps > MOST_WORK / most(n, int64_t(1)))
        return SLIMSVM_BAD_ARGUMENT;
    for (int64_t k = 0; k < n && !call.diagonal; ++k)
        if (call.slots[k] < 0) return SLIMSVM_BAD_ARGUMENT;
    const int64_t bytes = workspace_bytes<T>(n, call.places);
    if (call.n_workspace < bytes) return needs_workspace(call, bytes);
    uint8_t* workspace = call.workspace + (64 - uintptr_t(call.workspace) % 64) % 64;
    if (call.balanced == 2)
        solve<T, T>(call, 0.0, workspace, pairs<T, true>);
    else if (call.balanced)
        solve<T, T>(call, 0.0, workspace, pairs<T, false>);
    else
        solve<T, double>(call, call.offset, workspace, box<T>);
    return SLIMSVM_OK;
}

int64_t largest_set(int64_t n_sets, const int64_t* starts) {
    int64_t largest = 0;
    for (int64_t s = 0; s < n_sets; ++s) largest = most(largest, starts[s + 1] - starts[s]);
    return largest;
}

template <class T>
int32_t sets_of(struct slimsvm_smo_sets_call& call) {
    const int64_t bytes = workspace_bytes<T>(largest_set(call.n_sets, call.starts), true);
    if (call.n_workspace < bytes) return needs_workspace(call, bytes);
    for (int64_t s = 0; s < call.n_sets; ++s) {
        const int64_t first = call.starts[s];
        if (call.max_steps[s] == 0) continue;
        struct slimsvm_smo_call one = {};
        one.real_size = call.real_size;
        one.n = call.starts[s + 1] - first;
        one.n_kernel_rows = one.width = call.width;
        one.balanced = call.balanced;
        one.max_steps = call.max_steps[s];
        one.n_workspace = call.n_workspace;
        one.offset = call.offset;
        one.tol = call.tol[s];
        one.values = call.K;
        one.slots = one.places = call.rows + first;
        one.lo = call.lo + first;
        one.hi = call.hi + first;
        one.g = call.g + first;
        one.v = call.v + first;
        one.workspace = call.workspace;
        if (const int32_t status = smo_of<T>(one)) return status;
        call.steps[s] = one.steps;
        call.gain[s] = one.gain;
        call.violation[s] = one.violation;
        call.middle[s] = one.middle;
    }
    return SLIMSVM_OK;
}

template <class T>
int32_t norms_of(struct slimsvm_set_norms_call& call) {
    const int64_t bytes = largest_set(call.n_sets, call.starts) * int64_t(sizeof(int64_t)) + ALIGNMENT;
    if (call.n_workspace < bytes) return needs_workspace(call, bytes);
    int64_t* used = aligned<int64_t>(call.workspace);
    for (int64_t s = 0; s < call.n_sets; ++s) {
        int64_t n_used = 0;
        for (int64_t k = call.starts[s]; k < call.starts[s + 1]; ++k)
            if (call.v[k] != 0.0) used[n_used++] = k;
        double norm = 0.0;
        for (int64_t a = 0; a < n_used; ++a) {
            const T* row = static_cast<const T*>(call.K) + call.rows[used[a]] * call.width;
            double score = 0.0;
            for (int64_t b = 0; b < n_used; ++b) score += call.v[used[b]] * double(row[call.rows[used[b]]]);
            norm += call.v[used[a]] * score;
        }
        call.norms[s] = norm;
    }
    return SLIMSVM_OK;
}

}  // namespace

int32_t smo(struct slimsvm_smo_call* call) {
    return call->real_size == 4 ? smo_of<float>(*call) : smo_of<double>(*call);
}

int32_t smo_sets(struct slimsvm_smo_sets_call* call) {
    return call->real_size == 4 ? sets_of<float>(*call) : sets_of<double>(*call);
}

int32_t set_norms(struct slimsvm_set_norms_call* call) {
    return call->real_size == 4 ? norms_of<float>(*call) : norms_of<double>(*call);
}

}  // namespace slimsvm::SLIMSVM_ISA
