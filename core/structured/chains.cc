// Passes over sequences: loss-augmented argmax, losses along a line, the best labels.
#include "structured/chain.h"
#include "support/call.h"
#include "threads/share.h"

namespace slimsvm::SLIMSVM_ISA {

namespace {

// Sequences are cut into tiles by their number alone; sums of tiles are added in order.
constexpr int64_t MOST_TILES = 256, LEAST_SEQUENCES = 64;
// Steps of Viterbi's recursion, of one label to another, that one thread makes in a microsecond, about.
constexpr double STEPS_PER_MICROSECOND = 1500.0;

// The sequences `first`, ..., `last` - 1 of a call that one thread or several go through.
struct Sequences {
    const int64_t* offsets;
    int64_t k, first, last, longest, rows;

    template <class Call>
    explicit Sequences(const Call& call)
        : offsets(call.offsets), k(call.k), first(call.first), last(call.last), longest(0), rows(0) {
        for (int64_t e = first; e < last; ++e) longest = most(longest, offsets[e + 1] - offsets[e]);
        if (first < last) rows = offsets[last] - offsets[first];
    }
    template <class Call>
    static bool fits(const Call& call) {
        return call.k >= 1 && call.k <= call.p && holds(call.p, call.k, call.k + 2) &&
               call.p == call.k * (call.k + 2) && call.first >= 0 && call.first <= call.last &&
               call.last <= call.n_examples;
    }
    // Scratch memory of one thread, with the labels found.
    int64_t scratch_bytes() const { return ChainScratch::bytes(k, longest) + longest * 8; }
    int64_t bytes(int64_t n_threads) const { return Chain::bytes(k) + n_threads * scratch_bytes() + ALIGNMENT; }

    void* aligned(uint8_t* workspace) const {
        return workspace + (ALIGNMENT - int64_t(uintptr_t(workspace) % ALIGNMENT)) % ALIGNMENT;
    }
    uint8_t* scratch(uint8_t* workspace, int64_t worker) const {
        return static_cast<uint8_t*>(aligned(workspace)) + Chain::bytes(k) + worker * scratch_bytes();
    }
    ChainScratch scratch_at(uint8_t* memory) const { return ChainScratch::at(memory, k, longest); }
    int64_t* path_at(uint8_t* memory) const {
        return reinterpret_cast<int64_t*>(memory + ChainScratch::bytes(k, longest));
    }
};

// Transitions, first and last label of y, each counting `sign`, to part (k * k + 2 k).
void count_labels(const int64_t* y, int64_t length, int64_t k, double sign, double* part) {
    for (int64_t t = 1; t < length; ++t) part[y[t - 1] * k + y[t]] += sign;
    part[k * k + y[0]] += sign;
    part[k * k + k + y[length - 1]] += sign;
}

// What the plain parameters `part` (k * k + 2 k) give the labels y.
double plain_score(const int64_t* y, int64_t length, int64_t k, const double* part) {
    double total = part[k * k + y[0]] + part[k * k + k + y[length - 1]];
    for (int64_t t = 1; t < length; ++t) total += part[y[t - 1] * k + y[t]];
    return total;
}

}  // namespace

int32_t augment_chains(struct slimsvm_augment_chains_call* call) {
    if (!Sequences::fits(*call)) return SLIMSVM_BAD_ARGUMENT;
    const Sequences sequences(*call);
    const int64_t k = call->k, bytes = sequences.bytes(1);
    if (call->n_workspace < bytes) return needs_workspace(*call, bytes);
    const Chain chain = Chain::from(call->plain, k, sequences.aligned(call->workspace));
    uint8_t* memory = sequences.scratch(call->workspace, 0);
    const ChainScratch scratch = sequences.scratch_at(memory);
    int64_t* path = sequences.path_at(memory);
    for (int64_t e = call->first; e < call->last; ++e) {
        const int64_t first = call->offsets[e], length = call->offsets[e + 1] - first, *y = call->labels + first;
        double *coef = call->coef + first * k, *part = call->part + e * call->p;
        memset(part, 0, size_t(call->p) * sizeof *part);
        memset(coef, 0, size_t(length * k) * sizeof *coef);
        call->delta[e] = 0.0;
        if (length == 0) continue;
        scratch.copy_scores(call->scores + first * k, length, chain);
        call->delta[e] = augmented_chain(chain, scratch, length, y, call->loss, path).delta;
        for (int64_t t = 0; t < length; ++t)
            if (path[t] != y[t]) {
                coef[t * k + y[t]] = 1.0;
                coef[t * k + path[t]] = -1.0;
            }
        count_labels(y, length, k, 1.0, part);
        count_labels(path, length, k, -1.0, part);
    }
    return SLIMSVM_OK;
}

int32_t chains_along(struct slimsvm_chains_along_call* call) {
    if (!Sequences::fits(*call)) return SLIMSVM_BAD_ARGUMENT;
    const Sequences sequences(*call);
    const int64_t k = call->k, n_threads = call->n_threads;
    const int64_t bytes = sequences.bytes(n_threads) + call->p * 8;
    if (call->n_workspace < bytes) return needs_workspace(*call, bytes);
    double* moved = reinterpret_cast<double*>(sequences.scratch(call->workspace, n_threads));
    for (int64_t c = 0; c < call->p; ++c) moved[c] = call->base_plain[c] + call->step * call->direction_plain[c];
    const Chain chain = Chain::from(moved, k, sequences.aligned(call->workspace));
    const int64_t n = call->last - call->first, per_tile = most(LEAST_SEQUENCES, divide_up(n, MOST_TILES));
    const int64_t n_tiles = divide_up(n, per_tile);
    double values[MOST_TILES], gains[MOST_TILES];
    Team team(n_threads, double(sequences.rows * k * k) / STEPS_PER_MICROSECOND);
    share(team, n_tiles, [&](int64_t lo, int64_t hi, int64_t worker) {
        uint8_t* memory = sequences.scratch(call->workspace, worker);
        const ChainScratch scratch = sequences.scratch_at(memory);
        int64_t* path = sequences.path_at(memory);
        for (int64_t tile = lo; tile < hi; ++tile) {
            values[tile] = gains[tile] = 0.0;
            const int64_t end = least(call->last, call->first + (tile + 1) * per_tile);
            for (int64_t e = call->first + tile * per_tile; e < end; ++e) {
                const int64_t first = call->offsets[e], length = call->offsets[e + 1] - first;
                if (length == 0) continue;
                const int64_t* y = call->labels + first;
                const double *base = call->base + first * k, *direction = call->direction + first * k;
                scratch.set_scores(length, chain, [&](int64_t i) { return base[i] + call->step * direction[i]; });
                const double value = augmented_chain(chain, scratch, length, y, call->loss, path).value;
                double gain = plain_score(y, length, k, call->direction_plain) -
                              plain_score(path, length, k, call->direction_plain);
                for (int64_t t = 0; t < length; ++t) gain += direction[t * k + y[t]] - direction[t * k + path[t]];
                values[tile] += call->weights[e] * value;
                gains[tile] += call->weights[e] * gain;
            }
        }
    });
    call->value = call->slope = 0.0;
    for (int64_t tile = 0; tile < n_tiles; ++tile) {
        call->value += values[tile];
        call->slope -= gains[tile];
    }
    return SLIMSVM_OK;
}

int32_t decode_chains(struct slimsvm_decode_chains_call* call) {
    if (!Sequences::fits(*call)) return SLIMSVM_BAD_ARGUMENT;
    const Sequences sequences(*call);
    const int64_t bytes = sequences.bytes(1);
    if (call->n_workspace < bytes) return needs_workspace(*call, bytes);
    const Chain chain = Chain::from(call->plain, call->k, sequences.aligned(call->workspace));
    const ChainScratch scratch = sequences.scratch_at(sequences.scratch(call->workspace, 0));
    for (int64_t e = call->first; e < call->last; ++e) {
        const int64_t first = call->offsets[e], length = call->offsets[e + 1] - first;
        if (length == 0) continue;
        scratch.copy_scores(call->scores + first * call->k, length, chain);
        viterbi(chain, scratch, length, call->labels + first);
    }
    return SLIMSVM_OK;
}

}  // namespace slimsvm::SLIMSVM_ISA
