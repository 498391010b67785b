// Vectors chosen one after another: greedily by what they explain, and as pivots of an incomplete Cholesky factor.
#include "simd/reduce.h"
#include "support/call.h"
#include "threads/share.h"

namespace slimsvm::SLIMSVM_ISA {

namespace {

constexpr int64_t PIVOT_ROWS = 1024;  // rows of one task

// The vector that explains most of what those chosen leave over; -1 if none explains any.
int64_t next_pick(const struct slimsvm_greedy_picks_call& call) {
    int64_t best = -1;
    double most_explained = 0.0;
    for (int64_t j = 0; j < call.s; ++j) {
        if (!call.is_free[j] || !(call.rest[j] > call.tolerance * call.own[j])) continue;
        const double* rho = call.rho + j * call.m;
        double total = 0.0;
        for (int64_t c = 0; c < call.m; ++c) total += rho[c] * rho[c];
        if (total > most_explained * call.rest[j]) {
            best = j;
            most_explained = total / call.rest[j];
        }
    }
    return best;
}

// Takes vector `at` in as number t, and what it explains off all others.
void take_pick(const struct slimsvm_greedy_picks_call& call, int64_t at, int64_t t) {
    const int64_t s = call.s;
    call.chosen[t] = at;
    call.is_free[at] = 0;
    double* column = call.columns + t * s;
    const double pivot = sqrt(call.rest[at]);
    for (int64_t j = 0; j < s; ++j) column[j] = call.gram[at * s + j];
    for (int64_t u = 0; u < t; ++u) add_scaled(-call.columns[u * s + at], call.columns + u * s, column, s);
    for (int64_t j = 0; j < s; ++j) {
        column[j] /= pivot;
        call.rest[j] -= column[j] * column[j];
    }
    for (int64_t c = 0; c < call.m; ++c) {
        const double weight = call.rho[at * call.m + c] / pivot;
        for (int64_t j = 0; j < s; ++j) call.rho[j * call.m + c] -= weight * column[j];
    }
}

struct Largest {
    double value;
    int64_t where;
};

template <class T>
Largest add_to_tile(const struct slimsvm_add_pivot_call& call, int64_t first, int64_t last) {
    const T* kernel = static_cast<const T*>(call.kernel);
    Largest largest = {-1.0, -1};
    for (int64_t i = first; i < last; ++i) {
        T* row = static_cast<T*>(call.factor) + i * call.width;
        const double value = (double(kernel[i]) - dot(row, call.pivot_row, call.t)) / call.root;
        row[call.t] = T(value);
        double& residual = call.residual[i];
        if (!(residual >= 0.0)) continue;
        residual = most(0.0, residual - value * value);
        if (residual > largest.value) largest = {residual, i};
    }
    return largest;
}

template <class T>
int32_t add_pivot_of(struct slimsvm_add_pivot_call& call) {
    const int64_t n_tiles = divide_up(call.n, PIVOT_ROWS), bytes = n_tiles * int64_t(sizeof(Largest)) + ALIGNMENT;
    if (call.n_workspace < bytes) return needs_workspace(call, bytes);
    Largest* found = aligned<Largest>(call.workspace);
    Team team(call.n_threads, call.microseconds);
    share(team, n_tiles, [&](int64_t lo, int64_t hi, int64_t) {
        for (int64_t tile = lo; tile < hi; ++tile)
            found[tile] = add_to_tile<T>(call, tile * PIVOT_ROWS, least(call.n, (tile + 1) * PIVOT_ROWS));
    });
    Largest largest = {-1.0, -1};
    for (int64_t tile = 0; tile < n_tiles; ++tile)
        if (found[tile].value > largest.value) largest = found[tile];
    call.largest = largest.value;
    call.where = largest.where;
    return SLIMSVM_OK;
}

}  // namespace

int32_t greedy_picks(struct slimsvm_greedy_picks_call* call) {
    const int64_t stop = least(least(call->n_most, call->s), call->n_chosen + most(int64_t(0), call->max_steps));
    if (call->n_chosen < 0 || call->n_chosen > call->n_most) return SLIMSVM_BAD_ARGUMENT;
    while (call->n_chosen < stop) {
        const int64_t at = next_pick(*call);
        if (at < 0) break;
        take_pick(*call, at, call->n_chosen++);
    }
    return SLIMSVM_OK;
}

int32_t add_pivot(struct slimsvm_add_pivot_call* call) {
    if (call->n_threads < 1 || call->t >= call->width) return SLIMSVM_BAD_ARGUMENT;
    return call->real_size == 4 ? add_pivot_of<float>(*call) : add_pivot_of<double>(*call);
}

}  // namespace slimsvm::SLIMSVM_ISA
