// Gradients of batches, steps along them, and whole runs of batches.
#include "gradients/adam.h"
#include "gradients/batch.h"
#include "threads/share.h"

namespace slimsvm::SLIMSVM_ISA {

namespace {

constexpr int64_t MOST_TILE_ROWS = 1 << 14;

template <class T>
bool is_sound(const struct slimsvm_descent& descent, const struct slimsvm_rows& rows) {
    const bool is_sparse = rows.indptr != nullptr;
    const int64_t d = descent.d, k = descent.k, m = descent.m, n = descent.n_flat;
    if (d < 1 || k < 1 || m < 1 || descent.n_plain < 0 || k > n || m > n || descent.n_plain > n ||
        n != Parameters<T>::n_flat(descent) || descent.n_groups < 1 || descent.n_groups > descent.n_sums ||
        descent.n_sums < GroupSums<T>::total_size(descent))
        return false;
    if (!is_map(descent.code, descent.degree) || descent.intercept < 0 || descent.intercept > SLIMSVM_FREE ||
        descent.tile_rows < 1 || descent.tile_rows > MOST_TILE_ROWS || descent.norm_rows < 1 || descent.norm_rows > k ||
        descent.norm_tiles < 1 || descent.norm_tiles > k || descent.n_blocks < 1 || descent.n_blocks > d)
        return false;
    if (descent.learns_scales && (is_sparse || !descent.has_norms)) return false;
    return rows.real_size == descent.real_size && rows.n_features == d && !(is_sparse && descent.noise) &&
           (is_sparse ? rows.columns != nullptr : rows.n_values >= rows.n * d);
}

bool is_sound(const struct slimsvm_row_loss& loss, const struct slimsvm_descent& descent,
              const struct slimsvm_rows& rows) {
    if (loss.n != rows.n || loss.n_outputs != descent.m) return false;
    return has_labels(loss, rows.n, descent.m) || has_classes(loss, descent.m);
}

// Sequences end behind the places that belong to them, and fit in a tile.
bool is_sound(const struct slimsvm_sequence_loss& loss, const int64_t* ends, int64_t n_index,
              const struct slimsvm_descent& descent, const struct slimsvm_rows& rows) {
    const int64_t m = descent.m;
    if (loss.n != rows.n || loss.n_classes != m || descent.n_plain != m * m + 2 * m || !ends || loss.code < 0 ||
        loss.code > SLIMSVM_ZERO_ONE)
        return false;
    for (int64_t p = 0; p < n_index; ++p)
        if (ends[p] <= p || ends[p] > n_index || ends[p] - p > descent.tile_rows) return false;
    return true;
}

bool is_sound(const BatchLoss& loss, int64_t n_index, const struct slimsvm_descent& descent,
              const struct slimsvm_rows& rows) {
    if ((loss.rows != nullptr) + (loss.sequences != nullptr) + (loss.given != nullptr) != 1) return false;
    if (loss.rows) return is_sound(*loss.rows, descent, rows);
    return !loss.sequences || is_sound(*loss.sequences, loss.ends, n_index, descent, rows);
}

// A gradient with the memory of all threads, cut from a workspace.
template <class T>
struct Work {
    BatchGradient<T> gradient;
    uint8_t* tiles = nullptr;
    int64_t tile_bytes = 0, tile_size = 0, chain_bytes = 0, bytes = 0;

    static Work in(uint8_t* memory, const struct slimsvm_descent& descent, const struct slimsvm_rows& rows,
                   const BatchLoss& loss, int64_t n_threads) {
        Room room = {memory}, one;
        Work work = {BatchGradient<T>::at(descent, rows, loss, room)};
        work.tile_size = most(descent.tile_rows, descent.norm_rows);
        if (loss.sequences)
            work.chain_bytes = Chain::bytes(descent.m) + ChainScratch::bytes(descent.m, descent.tile_rows);
        Tile<T>::at(descent, work.tile_size, work.chain_bytes, one);
        work.tile_bytes = one.bytes;
        work.tiles = room.take<uint8_t>(one.bytes * least(n_threads, MOST_THREADS));
        work.bytes = room.bytes + ALIGNMENT;
        return work;
    }
    Tile<T> tile(int64_t worker) const {
        Room room = {tiles + worker * tile_bytes};
        return Tile<T>::at(gradient.descent, tile_size, chain_bytes, room);
    }
    // What follows from the parameters.
    void follow(Team& team) const {
        share(team, gradient.descent.n_blocks, [&](int64_t lo, int64_t hi, int64_t) {
            for (int64_t b = lo; b < hi; ++b)
                gradient.follow_features(b, gradient.block_start(b), gradient.block_start(b + 1));
        });
        gradient.follow_rest();
    }
    // The tiles lo, ..., hi - 1 of every group; the norm's first, which may take longest.
    void add_tiles(Team& team, const Batch& batch, int64_t lo, int64_t hi) const {
        const int64_t n_groups = gradient.descent.n_groups;
        const double weight = gradient.share_of(batch);
        share(team, n_groups + 1, [&](int64_t from, int64_t to, int64_t worker) {
            const Tile<T> own = tile(worker);
            for (int64_t i = from; i < to; ++i)
                if (i == 0)
                    gradient.add_norm(batch, lo, hi, own);
                else
                    gradient.add_rows(batch, i - 1, lo, hi, weight, own);
        });
    }
};

// ---- steps over batches

template <class T>
int32_t descend_with(struct slimsvm_descend_call& call) {
    const struct slimsvm_descent& descent = *call.descent;
    const BatchLoss loss = {call.row_loss, call.sequence_loss, call.ends, nullptr};
    if (!is_sound<T>(descent, *call.rows) || !is_sound(loss, call.n_index, descent, *call.rows))
        return SLIMSVM_BAD_ARGUMENT;
    for (int64_t i = 0; i < call.n_batches; ++i)
        if (!(fabs(call.schedule[3 * i]) < 1e9)) return SLIMSVM_BAD_ARGUMENT;
    const int64_t bytes = Work<T>::in(nullptr, descent, *call.rows, loss, call.n_threads).bytes;
    if (call.n_workspace < bytes) return needs_workspace(call, bytes);
    Work<T> work = Work<T>::in(aligned<uint8_t>(call.workspace), descent, *call.rows, loss, call.n_threads);
    BatchGradient<T>& gradient = work.gradient;
    Team team(call.n_threads, call.microseconds);
    work.follow(team);
    int64_t left = call.max_tiles;
    for (; call.batch < call.n_batches && left > 0; ++call.batch) {
        const double* schedule = call.schedule + 3 * call.batch;
        const Batch batch = {call.index, call.cuts[call.batch], call.cuts[call.batch + 1], int64_t(schedule[0])};
        const int64_t n_tiles = gradient.most_tiles(batch), stop = least(n_tiles, call.tile + left);
        work.add_tiles(team, batch, call.tile, stop);
        left -= stop - call.tile;
        call.tile = stop;
        if (stop < n_tiles) break;
        gradient.add_up(call.stats);
        const AdamStep<T> step = AdamStep<T>::at(descent, *call.adam, schedule);
        share(team, descent.n_blocks, [&](int64_t lo, int64_t hi, int64_t) {
            for (int64_t b = lo; b < hi; ++b) {
                const int64_t first = gradient.block_start(b), last = gradient.block_start(b + 1);
                for (int64_t c = first; c < last; ++c) gradient.add_up_feature(c, call.adam->pull);
                step.move_features(descent, first, last);
                gradient.follow_features(b, first, last);
            }
        });
        step.move_rest(descent);
        gradient.follow_rest();
        call.tile = 0;
    }
    return SLIMSVM_OK;
}

// ---- one batch

template <class T>
int32_t batch_gradient_with(struct slimsvm_batch_gradient_call& call) {
    const struct slimsvm_descent& descent = *call.descent;
    const BatchLoss loss = {call.row_loss, call.sequence_loss, call.ends, call.given};
    if (!is_sound<T>(descent, *call.rows) || !is_sound(loss, call.n_index, descent, *call.rows) ||
        (call.given && call.columns != descent.m))
        return SLIMSVM_BAD_ARGUMENT;
    const int64_t bytes = Work<T>::in(nullptr, descent, *call.rows, loss, call.n_threads).bytes;
    if (call.n_workspace < bytes) return needs_workspace(call, bytes);
    Work<T> work = Work<T>::in(aligned<uint8_t>(call.workspace), descent, *call.rows, loss, call.n_threads);
    const Batch batch = {call.index, 0, call.n_index, call.step};
    Team team(call.n_threads, call.microseconds);
    work.follow(team);
    const int64_t n_tiles = work.gradient.most_tiles(batch), stop = least(n_tiles, call.tile + call.max_tiles);
    work.add_tiles(team, batch, call.tile, stop);
    call.tile = stop;
    if (stop < n_tiles) return SLIMSVM_OK;
    call.tile = 0;
    work.gradient.add_up(call.stats);
    share(team, descent.n_blocks, [&](int64_t lo, int64_t hi, int64_t) {
        for (int64_t c = work.gradient.block_start(lo); c < work.gradient.block_start(hi); ++c)
            work.gradient.add_up_feature(c, call.pull);
    });
    return SLIMSVM_OK;
}

template <class T>
int32_t batch_scores_with(struct slimsvm_batch_scores_call& call) {
    const struct slimsvm_descent& descent = *call.descent;
    if (!is_sound<T>(descent, *call.rows) || call.columns != descent.m) return SLIMSVM_BAD_ARGUMENT;
    const BatchLoss none = {};
    const int64_t bytes = Work<T>::in(nullptr, descent, *call.rows, none, call.n_threads).bytes;
    if (call.n_workspace < bytes) return needs_workspace(call, bytes);
    Work<T> work = Work<T>::in(aligned<uint8_t>(call.workspace), descent, *call.rows, none, call.n_threads);
    work.gradient.given_scores = static_cast<T*>(call.out);
    const Batch batch = {call.index, 0, call.n_index, call.step};
    Team team(call.n_threads, call.microseconds);
    work.follow(team);
    share(team, descent.n_groups, [&](int64_t lo, int64_t hi, int64_t worker) {
        const Tile<T> tile = work.tile(worker);
        for (int64_t g = lo; g < hi; ++g) work.gradient.add_rows(batch, g, 0, INT64_MAX, 1.0, tile);
    });
    return SLIMSVM_OK;
}

template <class T>
int32_t adam_step_with(const struct slimsvm_adam_step_call& call) {
    const struct slimsvm_descent& descent = *call.descent;
    if (descent.n_flat != Parameters<T>::n_flat(descent)) return SLIMSVM_BAD_ARGUMENT;
    const double schedule[3] = {call.number, call.factor, call.averaging};
    const AdamStep<T> step = AdamStep<T>::at(descent, *call.adam, schedule);
    step.move_features(descent, 0, descent.d);
    step.move_rest(descent);
    return SLIMSVM_OK;
}

bool is_sound(const struct slimsvm_adam& adam, const struct slimsvm_descent& descent) {
    return adam.real_size == descent.real_size && adam.d == descent.d && adam.n_flat == descent.n_flat;
}

}  // namespace

int32_t descend(struct slimsvm_descend_call* call) {
    if (call->n_threads < 1 || call->max_tiles < 1 || call->batch < 0 || call->tile < 0 ||
        !is_sound(*call->adam, *call->descent))
        return SLIMSVM_BAD_ARGUMENT;
    return call->descent->real_size == 4 ? descend_with<float>(*call) : descend_with<double>(*call);
}

int32_t batch_gradient(struct slimsvm_batch_gradient_call* call) {
    if (call->n_threads < 1 || call->max_tiles < 1 || call->tile < 0 ||
        (call->given && call->real_size != call->descent->real_size))
        return SLIMSVM_BAD_ARGUMENT;
    return call->descent->real_size == 4 ? batch_gradient_with<float>(*call) : batch_gradient_with<double>(*call);
}

int32_t batch_scores(struct slimsvm_batch_scores_call* call) {
    if (call->n_threads < 1 || call->real_size != call->descent->real_size) return SLIMSVM_BAD_ARGUMENT;
    return call->real_size == 4 ? batch_scores_with<float>(*call) : batch_scores_with<double>(*call);
}

int32_t adam_step(struct slimsvm_adam_step_call* call) {
    if (!is_sound(*call->adam, *call->descent)) return SLIMSVM_BAD_ARGUMENT;
    return call->descent->real_size == 4 ? adam_step_with<float>(*call) : adam_step_with<double>(*call);
}

}  // namespace slimsvm::SLIMSVM_ISA
