// Passes over the losses of rows: loss-augmented argmax, losses along a line, smoothed losses.
#include "losses/class_losses.h"
#include "losses/hinge.h"
#include "losses/score_losses.h"
#include "support/call.h"
#include "threads/share.h"

namespace slimsvm::SLIMSVM_ISA {

namespace {

// Rows are cut into tiles by their number alone, of whole vectors each; sums of tiles are added in order.
constexpr int64_t MOST_TILES = 256, LEAST_ROWS = 1024, STEP_OF_ROWS = 64;
// Microseconds of one thread for one score, about.
constexpr double ALONG_MICROSECONDS = 0.002, SMOOTH_MICROSECONDS = 0.008, MOVE_MICROSECONDS = 0.001;

struct Tiles {
    int64_t n, rows, count;

    explicit Tiles(int64_t n_rows)
        : n(n_rows),
          rows(most(LEAST_ROWS, divide_up(n_rows, MOST_TILES * STEP_OF_ROWS) * STEP_OF_ROWS)),
          count(divide_up(n_rows, rows)) {}
    int64_t first(int64_t tile) const { return tile * rows; }
    int64_t last(int64_t tile) const { return least(n, (tile + 1) * rows); }
};

// Labels of a block of rows as doubles: f(i, labels from i on), vectors of them and single ones. Whole numbers are
// converted a block at a time, which compilers have vector code for.
constexpr int64_t BLOCK = 256;
template <class Label, class F>
SLIMSVM_INLINE void for_labels(const Label* labels, int64_t lo, int64_t hi, const F& f) {
    if constexpr (Label(0.5) > 0) {  // doubles
        for_lanes(lo, hi, [&](auto lanes, int64_t i) { f(i, read<decltype(lanes)>(labels + i)); });
    } else {
        double room[BLOCK];
        for (; lo < hi; lo += BLOCK) {
            const int64_t n = least(BLOCK, hi - lo);
            for (int64_t i = 0; i < n; ++i) room[i] = double(labels[lo + i]);
            for_lanes(lo, lo + n, [&](auto lanes, int64_t i) { f(i, read<decltype(lanes)>(room + i - lo)); });
        }
    }
}

// A loss of one score and one label. Its loops are not inlined: `OfEveryScore` has the same ones, a block at a time.
template <class Loss, class Label>
struct OneScore {
    Loss loss;
    const Label* labels;
    const double* weights;

    OneScore(const Loss& of_score, const Label* of_rows, const double* row_weights)
        : loss(of_score), labels(of_rows), weights(row_weights) {}

    __attribute__((noinline)) void augment(const double* scores, double* delta, double* coef, int64_t n) const {
        for_labels(labels, 0, n, [&](int64_t i, auto y) {
            const auto found = loss.augmented(y, read<decltype(y)>(scores + i));
            write(delta + i, found.delta);
            write(coef + i, found.coef);
        });
    }
    void augment(const struct slimsvm_augment_rows_call& call) const {
        augment(call.scores, call.delta, call.coef, call.n);
    }
    __attribute__((noinline)) AlongSums along(const Line& line, int64_t lo, int64_t hi) const {
        LaneSum total_loss, gain;
        for_labels(labels, lo, hi, [&](int64_t i, auto y) {
            typedef decltype(y) V;
            const V step = read<V>(line.direction + i), f = read<V>(line.base + i) + line.step * step;
            const V weight = read<V>(weights + i);
            const RowAugmented<V> found = loss.augmented(y, f);
            total_loss.add(weight * (found.delta - found.coef * f));
            gain.add(weight * found.coef * step);
        });
        return {total_loss.value(), gain.value()};
    }
    __attribute__((noinline)) SmoothSums smooth(const SmoothPlaces& places, int64_t lo, int64_t hi) const {
        LaneSum total_loss, value, dual, rest;
        for_labels(labels, lo, hi, [&](int64_t i, auto y) {
            typedef decltype(y) V;
            const V weight = read<V>(weights + i);
            const RowSmoothed<V> found = loss.smoothed(y, read<V>(places.scores + i), places.tau);
            const V constant = weight * found.constant;
            const auto is_positive = found.residual > V{};
            write(places.residual + i, weight * found.residual);
            write(places.curvature + i, weight * found.curvature);
            total_loss.add(weight * found.loss);
            value.add(weight * found.value);
            dual.add(choose(is_positive, constant, V{}));
            rest.add(choose(is_positive, V{}, constant));
        });
        return {total_loss.value(), value.value(), dual.value(), rest.value()};
    }
};

// Rows of entries that lie row after row, m to a row: f(c, row) for the next n entries.
struct RowCounter {
    int64_t m, row, left;  // left: entries of the row that are still to come

    RowCounter(int64_t per_row, int64_t first_row) : m(per_row), row(first_row), left(per_row) {}
    template <class F>
    SLIMSVM_INLINE void next(int64_t n, const F& f) {
        for (int64_t c = 0; c < n;) {
            const int64_t end = least(n, c + left);
            left -= end - c;
            for (; c < end; ++c) f(c, row);
            if (left == 0) {
                ++row;
                left = m;
            }
        }
    }
};

// A loss for every score of a row, as one of every (row, score): the constant is the sum of theirs.
template <class Loss, class Label>
struct OfEveryScore {
    Loss loss;
    const Label* labels;
    const double* weights;
    int64_t m;

    OfEveryScore(const Loss& of_score, const Label* of_rows, const double* row_weights, int64_t n_scores)
        : loss(of_score), labels(of_rows), weights(row_weights), m(n_scores) {}

    // f(loss, lo, hi) for the scores lo, ..., hi - 1 of blocks that cover the rows, weights of rows given to scores.
    template <class F>
    SLIMSVM_INLINE void for_blocks(int64_t first_row, int64_t last_row, const F& f) const {
        double room[BLOCK];
        RowCounter rows(m, first_row);
        for (int64_t lo = first_row * m; lo < last_row * m; lo += BLOCK) {
            const int64_t hi = least(last_row * m, lo + BLOCK);
            rows.next(hi - lo, [&](int64_t c, int64_t row) { room[c] = weights[row]; });
            f(OneScore<Loss, Label>(loss, labels, room - lo), lo, hi);
        }
    }
    void augment(const struct slimsvm_augment_rows_call& call) const {
        for (int64_t i = 0; i < call.n; ++i) call.delta[i] = 0.0;
        RowCounter rows(m, 0);
        double constant[BLOCK];
        for (int64_t lo = 0; lo < call.n * m; lo += BLOCK) {
            const int64_t n = least(BLOCK, call.n * m - lo);
            const OneScore<Loss, Label> block(loss, labels + lo, nullptr);
            block.augment(call.scores + lo, constant, call.coef + lo, n);
            rows.next(n, [&](int64_t c, int64_t row) { call.delta[row] += constant[c]; });
        }
    }
    AlongSums along(const Line& line, int64_t lo, int64_t hi) const {
        AlongSums sums = {0.0, 0.0};
        for_blocks(lo, hi, [&](const auto& block, int64_t first, int64_t last) {
            const AlongSums own = block.along(line, first, last);
            sums = {sums.loss + own.loss, sums.gain + own.gain};
        });
        return sums;
    }
    SmoothSums smooth(const SmoothPlaces& places, int64_t lo, int64_t hi) const {
        SmoothSums sums = {0.0, 0.0, 0.0, 0.0};
        for_blocks(lo, hi, [&](const auto& block, int64_t first, int64_t last) {
            const SmoothSums own = block.smooth(places, first, last);
            sums = {sums.loss + own.loss, sums.value + own.value, sums.dual + own.dual + own.rest, 0.0};
        });
        return sums;
    }
};

// A hinge at every threshold j, which rows of classes above j should be above, and others below.
struct HingeAtEveryThreshold {
    const int64_t* labels;
    const double* weights;
    int64_t p;
    static constexpr Hinge hinge = {1.0, 1.0};

    template <class V>
    static SLIMSVM_INLINE V side(V label, int64_t j) {
        return choose(label > filled<V>(double(j)), filled<V>(1.0), filled<V>(-1.0));
    }
    void augment(const struct slimsvm_augment_rows_call& call) const {
        for_labels(labels, 0, call.n, [&](int64_t i, auto label) {
            typedef decltype(label) V;
            constexpr int64_t n = sizeof(V) / sizeof(double);
            const V f = read<V>(call.scores + i);
            V wrong = {}, coef = {};
            for (int64_t j = 0; j < p; ++j) {
                const RowAugmented<V> found = hinge.augmented(side(label, j), f - call.plain[j]);
                double parts[n];
                write(parts, -found.coef);
                for (int64_t l = 0; l < n; ++l) call.part[(i + l) * p + j] = parts[l];
                wrong += found.delta;
                coef += found.coef;
            }
            write(call.delta + i, wrong);
            write(call.coef + i, coef);
        });
    }
    AlongSums along(const Line& line, int64_t lo, int64_t hi) const {
        LaneSum total_loss, gain;
        for_labels(labels, lo, hi, [&](int64_t i, auto label) {
            typedef decltype(label) V;
            const V step = read<V>(line.direction + i), f = read<V>(line.base + i) + line.step * step;
            const V weight = read<V>(weights + i);
            for (int64_t j = 0; j < p; ++j) {
                const V above = f - (line.base_plain[j] + line.step * line.direction_plain[j]);
                const RowAugmented<V> found = hinge.augmented(side(label, j), above);
                total_loss.add(weight * (found.delta - found.coef * above));
                gain.add(weight * found.coef * (step - line.direction_plain[j]));
            }
        });
        return {total_loss.value(), gain.value()};
    }
};

// Whether the loss has what its code says it has, for scores (n, m) and p plain parameters.
bool fits(const struct slimsvm_row_loss& loss, int64_t n, int64_t m, int64_t p) {
    if (loss.n != n || loss.n_outputs != m || m < 1) return false;
    if (loss.code == SLIMSVM_ORDINAL) return loss.classes && loss.n_classes == p + 1 && m == 1;
    if (p != 0) return false;
    return has_labels(loss, n, m) || has_classes(loss, m);
}

// f(loss) for the loss of a code that `fits` knows.
template <class F>
SLIMSVM_INLINE void with_smooth_loss(const struct slimsvm_row_loss& loss, const F& f) {
    if (is_class_loss(loss)) return with_class_loss(loss, f);
    with_score_loss(loss, [&](const auto& of_score, const auto* labels) {
        if (loss.n_outputs == 1)
            f(OneScore{of_score, labels, loss.weights});
        else
            f(OfEveryScore{of_score, labels, loss.weights, loss.n_outputs});
    });
}
template <class F>
SLIMSVM_INLINE void with_loss(const struct slimsvm_row_loss& loss, const F& f) {
    if (loss.code == SLIMSVM_ORDINAL)
        f(HingeAtEveryThreshold{loss.classes, loss.weights, loss.n_classes - 1});
    else
        with_smooth_loss(loss, f);
}

}  // namespace

int32_t augment_rows(struct slimsvm_augment_rows_call* call) {
    if (!fits(*call->loss, call->n, call->m, call->p) || (call->p > 0 && (!call->plain || !call->part)))
        return SLIMSVM_BAD_ARGUMENT;
    with_loss(*call->loss, [&](const auto& loss) { loss.augment(*call); });
    return SLIMSVM_OK;
}

int32_t losses_along(struct slimsvm_losses_along_call* call) {
    if (!fits(*call->loss, call->n, call->m, call->p) || (call->p > 0 && (!call->base_plain || !call->direction_plain)))
        return SLIMSVM_BAD_ARGUMENT;
    const Tiles tiles(call->n);
    const Line line = {call->base, call->direction, call->base_plain, call->direction_plain, call->step};
    AlongSums sums[MOST_TILES];
    Team team(call->n_threads, ALONG_MICROSECONDS * double(call->n * (call->m + call->p)));
    with_loss(*call->loss, [&](const auto& loss) {
        share(team, tiles.count, [&](int64_t lo, int64_t hi, int64_t) {
            for (int64_t tile = lo; tile < hi; ++tile)
                sums[tile] = loss.along(line, tiles.first(tile), tiles.last(tile));
        });
    });
    call->value = call->slope = 0.0;
    for (int64_t tile = 0; tile < tiles.count; ++tile) {
        call->value += sums[tile].loss;
        call->slope -= sums[tile].gain;
    }
    return SLIMSVM_OK;
}

int32_t smooth_losses(struct slimsvm_smooth_losses_call* call) {
    if (!fits(*call->loss, call->n, call->m, 0) || call->loss->code == SLIMSVM_ORDINAL || !(call->tau > 0.0) ||
        (is_class_loss(*call->loss) && !call->share))
        return SLIMSVM_BAD_ARGUMENT;
    const Tiles tiles(call->n);
    const SmoothPlaces places = {call->scores, call->tau, call->residual, call->curvature, call->share};
    SmoothSums sums[MOST_TILES];
    Team team(call->n_threads, SMOOTH_MICROSECONDS * double(call->n * call->m));
    with_smooth_loss(*call->loss, [&](const auto& loss) {
        share(team, tiles.count, [&](int64_t lo, int64_t hi, int64_t) {
            for (int64_t tile = lo; tile < hi; ++tile)
                sums[tile] = loss.smooth(places, tiles.first(tile), tiles.last(tile));
        });
    });
    call->value = call->smoothed = call->dual = call->rest = 0.0;
    for (int64_t tile = 0; tile < tiles.count; ++tile) {
        call->value += sums[tile].loss;
        call->smoothed += sums[tile].value;
        call->dual += sums[tile].dual;
        call->rest += sums[tile].rest;
    }
    return SLIMSVM_OK;
}

int32_t decode_ordinal(struct slimsvm_decode_ordinal_call* call) {
    for (int64_t i = 0; i < call->n; ++i) {
        double sum = 0.0, most_worth = 0.0;
        int64_t code = 0;
        for (int64_t j = 0; j < call->p; ++j) {
            sum += call->scores[i] - call->thresholds[j];
            code = sum > most_worth ? j + 1 : code;
            most_worth = most(most_worth, sum);
        }
        call->codes[i] = code;
    }
    return SLIMSVM_OK;
}

int32_t move_scores(struct slimsvm_move_scores_call* call) {
    const Tiles tiles(call->n);
    const double *best = call->best, *target = call->target, step = call->step, overshoot = call->overshoot;
    Team team(call->n_threads, MOVE_MICROSECONDS * double(call->n));
    share(team, tiles.count, [&](int64_t lo, int64_t hi, int64_t) {
        for_lanes(tiles.first(lo), tiles.last(hi - 1), [&](auto lanes, int64_t i) {
            typedef decltype(lanes) V;
            const V from = read<V>(best + i), to = read<V>(target + i), here = from + step * (to - from);
            write(call->moved + i, here);
            write(call->beyond + i, here + overshoot * (to - here));
        });
    });
    return SLIMSVM_OK;
}

}  // namespace slimsvm::SLIMSVM_ISA
