// The gradient of a batch, in phases that threads share: the sums of every group of rows and of the norm's vectors,
// then what they add up to.
//
// The norm 1/2 sum_c coef_c^T K_BB coef_c has the form of a loss: its rows are the basis vectors, with r_jc = coef_jc
// (half of it for the feature scales, which move both sides at once), taken from some of the vectors at each step.
// Groups are the same for any number of threads, and their sums are added in order.
#pragma once

#include "gradients/losses.h"
#include "gradients/thinning.h"

namespace slimsvm::SLIMSVM_ISA {

// The batch index[first], ..., index[last - 1] of one step.
struct Batch {
    const int64_t* index;
    int64_t first, last, step;
};

template <class T>
struct BatchGradient {
    const struct slimsvm_descent& descent;
    Parameters<T> parameters;
    RowsOf<T> rows;
    BatchLoss loss;
    T* given_scores = nullptr;    // (n, m): a place for the scores, where nothing else is asked for
    T* weight = nullptr;          // (width) sums over rows of W
    T* norm_weight = nullptr;     // (width) the norm's part of them
    T* half_parts = nullptr;      // (n_blocks, width)
    double mean_log_scale = 0.0;  // before the step

    static BatchGradient at(const struct slimsvm_descent& descent, const struct slimsvm_rows& rows,
                            const BatchLoss& loss, Room& room) {
        BatchGradient gradient = {descent, Parameters<T>::at(descent, room), rows_of<T>(rows), loss};
        gradient.weight = room.take<T>(gradient.parameters.width);
        gradient.norm_weight = room.take<T>(gradient.parameters.width);
        gradient.half_parts = room.take<T>(descent.n_blocks * gradient.parameters.width);
        return gradient;
    }

    // ---- tiles: places of the index that a group's tile number `tile` begins and ends at

    // The next place from `at` on where a sequence begins.
    int64_t edge(const Batch& batch, int64_t at) const {
        return at > batch.first ? least(batch.last, loss.ends[at - 1]) : batch.first;
    }
    // Where a tile ends that begins at `start`: one sequence at least, and as many as fit.
    int64_t tile_end(int64_t start, int64_t last) const {
        if (!loss.sequences) return least(last, start + descent.tile_rows);
        int64_t end = least(last, loss.ends[start]);
        while (end < last && loss.ends[end] - start <= descent.tile_rows) end = least(last, loss.ends[end]);
        return end;
    }
    int64_t n_tiles(int64_t n) const { return divide_up(n, descent.tile_rows); }
    int64_t group_start(const Batch& batch, int64_t group) const {
        const int64_t n = batch.last - batch.first;
        if (loss.sequences) return edge(batch, batch.first + n * group / descent.n_groups);
        return least(batch.last, batch.first + n_tiles(n) * group / descent.n_groups * descent.tile_rows);
    }
    // Tiles of the group that has most.
    int64_t most_tiles(const Batch& batch) const {
        int64_t longest = descent.norm_tiles;
        for (int64_t group = 0; group < descent.n_groups; ++group) {
            int64_t count = 0;
            const int64_t last = group_start(batch, group + 1);
            for (int64_t at = group_start(batch, group); at < last; ++count) at = tile_end(at, last);
            longest = most(longest, count);
        }
        return longest;
    }
    // What one row or sequence counts.
    double share_of(const Batch& batch) const {
        if (loss.given) return 1.0;
        int64_t n = batch.last - batch.first;
        if (loss.sequences) {
            n = 0;
            for (int64_t at = batch.first; at < batch.last; ++n) at = least(batch.last, loss.ends[at]);
        }
        return 1.0 / double(n);
    }

    // ---- the sums of groups

    // Adds the tiles lo, ..., hi - 1 of a group of rows to its sums; the first one sets them.
    void add_rows(const Batch& batch, int64_t group, int64_t lo, int64_t hi, double share, const Tile<T>& tile) const {
        const GroupSums<T> sums = GroupSums<T>::at(descent, group);
        const RowsOf<T>* sparse = rows.indptr ? &rows : nullptr;
        const int64_t m = parameters.m, last = group_start(batch, group + 1);
        bool is_first = lo == 0;
        if (is_first) sums.clear(descent);
        int64_t start = group_start(batch, group);
        for (int64_t t = 0; t < hi && start < last; ++t) {
            const int64_t end = tile_end(start, last);
            if (t >= lo) {
                int64_t n = end - start;
                gather_rows(descent, parameters, rows, batch.index + start, n, batch.step, tile);
                kernel_values(descent, parameters, sparse, n, tile);
                tile_scores(parameters, parameters.intercept, n, tile);
                if (given_scores)
                    copy_scores(n, tile, given_scores + (start - batch.first) * m);
                else if ((n = taking_part(batch, start, losses(start, n, share, tile, sums), tile)) > 0) {
                    close_ranks(parameters, n, share, tile, sparse != nullptr);
                    if (descent.learns_scales) add_scales(parameters, parameters.intercept, n, tile, sums.scale);
                    add_gradient(parameters, sparse, is_first, n, tile, sums);
                    is_first = false;
                }
            }
            start = end;
        }
        if (is_first && !given_scores) memset(sums.basis, 0, size_t(parameters.d * parameters.width) * sizeof(T));
    }
    void copy_scores(int64_t n, const Tile<T>& tile, T* out) const {
        for (int64_t i = 0; i < n; ++i)
            for (int64_t c = 0; c < parameters.m; ++c)
                out[i * parameters.m + c] = tile.scores[i * parameters.outputs + c];
    }
    int64_t losses(int64_t start, int64_t n, double share, const Tile<T>& tile, const GroupSums<T>& sums) const {
        const int64_t m = parameters.m;
        LossTotals totals = {0.0, 0.0};
        if (loss.rows)
            n = row_losses(*loss.rows, n, m, parameters.outputs, tile, totals);
        else if (loss.sequences)
            n = sequence_losses(loss, parameters, start, n, descent.tile_rows, share, tile, sums.plain, totals);
        else
            n = given_losses(static_cast<const T*>(loss.given) + start * m, n, m, tile);
        sums.stats[0] += totals.loss;
        sums.stats[1] += totals.wrong;
        return n;
    }

    // Of n rows with a loss the number of those whose gradients count in this step.
    int64_t taking_part(const Batch& batch, int64_t start, int64_t n, const Tile<T>& tile) const {
        if (!loss.rows || descent.thinned <= 0.0) return n;
        return thin_out(descent.thinned, n, parameters.m, uint64_t(start) + uint64_t(batch.step) * NOISE_ROWS, tile);
    }

    // Adds the tiles lo, ..., hi - 1 of the norm: of norm_rows basis vectors each, modulo k.
    void add_norm(const Batch& batch, int64_t lo, int64_t hi, const Tile<T>& tile) const {
        const GroupSums<T> sums = GroupSums<T>::at(descent, descent.n_groups);
        const int64_t k = parameters.k, m = parameters.m, d = parameters.d, n = descent.norm_rows;
        const T* ratio = static_cast<const T*>(descent.ratio);
        const double share = double(k) / (double(descent.norm_tiles * n) * descent.C1);
        if (lo == 0) sums.clear(descent);
        for (int64_t t = lo; t < least(hi, descent.norm_tiles); ++t) {
            const int64_t first = int64_t(uint64_t(batch.step * descent.norm_tiles + t) % uint64_t(k)) * n;
            for (int64_t i = 0; i < n; ++i) {
                const int64_t j = (first + i) % k;
                for (int64_t c = 0; c < d; ++c)
                    tile.rows[i * d + c] = parameters.points[c * parameters.width + j] * ratio[c];
                tile.half[i] = descent.has_norms ? parameters.half[j] : T(0);
                for (int64_t c = 0; c < m; ++c) tile.r[i * m + c] = T(double(parameters.coef[j * m + c]) * share);
            }
            kernel_values<T>(descent, parameters, nullptr, n, tile);
            tile_scores<T>(parameters, nullptr, n, tile);
            double total = 0.0;
            for (int64_t i = 0; i < n; ++i)
                for (int64_t c = 0; c < m; ++c)
                    total += double(tile.r[i * m + c]) * double(tile.scores[i * parameters.outputs + c]);
            sums.stats[0] += 0.5 * total;
            if (descent.learns_scales) add_scales<T>(parameters, nullptr, n, tile, sums.scale);
            add_gradient<T>(parameters, nullptr, t == 0, n, tile, sums);
        }
    }

    // ---- what the groups add up to

    T* gradient() const { return static_cast<T*>(descent.gradient); }
    // By one thread: the gradient in coefficients and intercept, the sums over rows of W; loss, error and norm to
    // stats.
    void add_up(double* stats) {
        const int64_t d = parameters.d, k = parameters.k, m = parameters.m, width = parameters.width;
        const int64_t norm = descent.n_groups;
        T *by_coef = gradient() + d * k, *by_intercept = by_coef + k * m;
        for (int64_t i = 0; i < k * m; ++i) by_coef[i] = T(0);
        for (int64_t j = 0; j < width; ++j) weight[j] = T(0);
        for (int64_t g = 0; g <= norm; ++g) {
            const GroupSums<T> sums = GroupSums<T>::at(descent, g);
            for (int64_t j = 0; j < k; ++j)
                for (int64_t c = 0; c < m; ++c) by_coef[j * m + c] += sums.coef[c * width + j];
            const T* own = one_weight() ? sums.coef : sums.weight;
            for (int64_t j = 0; j < width; ++j) weight[j] += own[j];
            if (g == norm) memcpy(norm_weight, own, size_t(width) * sizeof(T));
        }
        if (m == 1)
            for (int64_t j = 0; j < k; ++j) {
                weight[j] *= parameters.coef[j];
                norm_weight[j] *= parameters.coef[j];
            }
        for (int64_t c = 0; c < m; ++c) {
            T total = descent.intercept == SLIMSVM_REGULARIZED ? T(double(parameters.intercept[c]) / descent.C1) : T(0);
            for (int64_t g = 0; g < norm; ++g) total += GroupSums<T>::at(descent, g).intercept[c];
            by_intercept[c] = descent.intercept == SLIMSVM_NO_INTERCEPT ? T(0) : total;
        }
        mean_log_scale = sum(parameters.log_scale, d) / double(d);
        stats[2] = GroupSums<T>::at(descent, norm).stats[0];
        for (int64_t g = 0; g < norm; ++g)
            for (int i = 0; i < 2; ++i) stats[i] += GroupSums<T>::at(descent, g).stats[i];
        if (loss.sequences) stats[2] += add_up_plain(by_intercept + m + d);
    }
    // Whether sum_i W_ij is that of the coefficients' gradient: one output, and a kernel that is its own slope.
    bool one_weight() const { return parameters.m == 1 && slope_is_value(descent.code); }
    // The gradient in the plain parameters; returns their part of the norm.
    double add_up_plain(T* out) const {
        double total = 0.0;
        for (int64_t j = 0; j < parameters.p; ++j) {
            const double value = double(parameters.plain[j]);
            double sum = value / descent.C1;
            for (int64_t g = 0; g < descent.n_groups; ++g) sum += GroupSums<T>::at(descent, g).plain[j];
            out[j] = T(sum);
            total += value * value;
        }
        return 0.5 * total / descent.C1;
    }
    // The gradient in feature c of all basis vectors, and in its scale, with a pull of the scale to the mean of all.
    void add_up_feature(int64_t c, double pull) const {
        const int64_t k = parameters.k, m = parameters.m, width = parameters.width, norm = descent.n_groups;
        const T* own = GroupSums<T>::at(descent, norm).basis + c * width;
        T* out = gradient() + c * k;
        for (int64_t j = 0; j < k; ++j) out[j] = own[j];
        for (int64_t g = 0; g < norm; ++g) {
            const T* part = GroupSums<T>::at(descent, g).basis + c * width;
            for (int64_t j = 0; j < k; ++j) out[j] += part[j];
        }
        if (m == 1)
            for (int64_t j = 0; j < k; ++j) out[j] *= parameters.coef[j];
        const T factor = T(slope_factor(descent.code)) * parameters.scale[c];
        const T* points = parameters.points + c * width;
        if (descent.learns_scales) {
            double total = 0.5 * double(GroupSums<T>::at(descent, norm).scale[c]);
            for (int64_t g = 0; g < norm; ++g) total += double(GroupSums<T>::at(descent, g).scale[c]);
            for (int64_t j = 0; j < k; ++j) {
                const T mine = m == 1 ? own[j] * parameters.coef[j] : own[j];
                total +=
                    double(points[j] * (points[j] * (weight[j] - T(0.5) * norm_weight[j]) - (out[j] + out[j] - mine)));
            }
            const double away = double(parameters.log_scale[c]) - mean_log_scale;
            gradient()[parameters.d * k + k * m + m + c] = T(-slope_factor(descent.code) * total + pull * away);
        }
        for (int64_t j = 0; j < k; ++j) out[j] = factor * (descent.has_norms ? out[j] - points[j] * weight[j] : out[j]);
    }

    // ---- what follows from the parameters

    // Features first, ..., last - 1 of block b, once they have moved.
    void follow_features(int64_t b, int64_t first, int64_t last) const {
        T* half_part = half_parts + b * parameters.width;
        for (int64_t j = 0; j < parameters.width; ++j) half_part[j] = T(0);
        for (int64_t c = first; c < last; ++c) parameters.follow_feature(descent, c, half_part);
    }
    // By one thread, after all features and the coefficients.
    void follow_rest() const {
        parameters.follow_half(descent, half_parts, descent.n_blocks);
        parameters.follow_coef();
    }
    int64_t block_start(int64_t b) const { return parameters.d * b / descent.n_blocks; }
};

}  // namespace slimsvm::SLIMSVM_ISA
