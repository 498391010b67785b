// Kernel values and scores of folded rows, and of rows folded on the way.
#include <string.h>

#include "rows/folding.h"
#include "scores/tile.h"
#include "support/call.h"
#include "threads/share.h"

namespace slimsvm::SLIMSVM_ISA {

namespace {

// Whether arrays are there, and have the length that the others ask for.
template <class T>
bool fit_together(const struct slimsvm_rows& rows, const struct slimsvm_points& points) {
    const int64_t d = rows.n_features;
    const bool is_csc = points.form >= SLIMSVM_CSC_INNER, is_csr = points.form >= SLIMSVM_CSR_INNER;
    if (d < 0 || d != points.n_features) return false;
    if (is_csr ? !rows.indptr || (rows.n_values > 0 && !rows.columns) : !holds(rows.n_values, rows.n, d)) return false;
    if (!is_csc) return holds(points.n_values, points.n_slots, d);
    return points.n_slots % PANEL<T> == 0 && points.indptr && points.n_offsets == d + 1 &&
           (points.n_values == 0 || points.indices);
}

template <class T>
bool fit_together(const struct slimsvm_points& points, const struct slimsvm_weights& weights, int64_t columns) {
    const int64_t m = weights.n_outputs, n_segments = weights.n_segments;
    return m >= 1 && n_segments >= 1 && holds(columns, n_segments, m) && columns == n_segments * m &&
           weights.n_first == points.n_slots / PANEL<T> + 1 &&
           holds(weights.n_values / PANEL<T>, weights.n_entries, m) && (weights.n_entries == 0 || weights.segments);
}

template <class T>
int32_t scores_of(struct slimsvm_scores_call& call) {
    const RowsOf<T> rows = rows_of<T>(*call.rows);
    const PointsOf<T> points = points_of<T>(*call.points);
    const WeightsOf<T> weights = weights_of<T>(*call.weights);
    const int64_t slots = points.n_panels * PANEL<T>;
    if (!fit_together<T>(*call.rows, *call.points) ||
        (weights.m == 0 ? call.columns > slots : !fit_together<T>(*call.points, *call.weights, call.columns)) ||
        (call.n_index == 0 ? call.n > 0 && (call.first < 0 || call.first > call.rows->n - call.n)
                           : call.n_index != call.n || !call.index))
        return SLIMSVM_BAD_ARGUMENT;
    Job job = {call.n_index ? call.index : nullptr, call.first, call.n, call.columns, call.code, call.degree, HUGE_VAL};
    const int64_t bytes = Scratch<T>::bytes(weights.m, weights.m ? call.columns : 0, slots, points.form);
    if (call.n_workspace < bytes * call.n_threads) return needs_workspace(call, bytes * call.n_threads);
    if (weights.m) job.near_half = near_from(points, weights, call.weights->n_values, call.code, call.n);
    T* out = static_cast<T*>(call.out);
    Team team(call.n_threads, call.microseconds);
    share(team, divide_up(call.n, ROWS_PER_TILE), [&](int64_t lo, int64_t hi, int64_t worker) {
        Scratch<T> scratch = Scratch<T>::at(call.workspace + worker * bytes, weights.m, weights.m ? call.columns : 0);
        if (weights.m)
            score_tiles<T>(rows, points, weights, job, lo, hi, scratch, out);
        else
            value_tiles<T>(rows, points, job, lo, hi, scratch.z, out);
    });
    return SLIMSVM_OK;
}

// Dense rows as they are, in parts that stay in the nearest caches.
template <class T, class Raw>
struct RawPart {
    static constexpr int64_t NUMBERS = 1 << 15;  // that a thread folds at a time

    const struct slimsvm_score_rows_call& call;
    PointsOf<T> points;
    WeightsOf<T> weights;
    double near_half;
    int64_t tiles;  // of a part

    int64_t rows() const { return least(call.n, tiles * ROWS_PER_TILE); }
    int64_t scratch_bytes() const { return Scratch<T>::bytes(weights.m, call.columns, 0, SLIMSVM_INNER); }
    int64_t bytes() const {
        const int64_t per_row = (call.d + 1 + (call.sums ? 0 : call.columns)) * int64_t(sizeof(T)) + 8;
        return (scratch_bytes() + rows() * per_row) / ALIGNMENT * ALIGNMENT + 4 * ALIGNMENT;
    }

    // Scores and labels; returns how many rows have scores that are not finite.
    int64_t judge(const T* sums, int64_t lo, int64_t n) const {
        const int64_t m = call.m;
        int64_t n_infinite = 0;
        for (int64_t i = 0; i < n && (call.scores || call.labels); ++i) {
            const T* row = sums + i * call.columns;
            bool is_finite = true;
            for (int64_t c = 0; c < m; ++c) is_finite &= fabs(double(row[c]) + call.intercept[c]) < HUGE_VAL;
            n_infinite += !is_finite;
            if (call.scores)
                for (int64_t c = 0; c < m; ++c) call.scores[(lo + i) * m + c] = double(row[c]) + call.intercept[c];
            if (!call.labels) continue;
            int64_t best = 0;
            double most_score = double(row[0]) + call.intercept[0];
            if (m == 1 && most_score > 0.0) best = 1;
            for (int64_t c = 1; c < m; ++c)
                if (double(row[c]) + call.intercept[c] > most_score) {
                    best = c;
                    most_score = double(row[c]) + call.intercept[c];
                }
            for (int64_t w = 0; w < call.n_words; ++w)
                call.labels[(lo + i) * call.n_words + w] = call.classes[best * call.n_words + w];
        }
        return n_infinite;
    }

    // The rows lo, ..., hi - 1; returns how many are far.
    int64_t run(int64_t lo, int64_t hi, uint8_t* workspace) const {
        Scratch<T> scratch = Scratch<T>::at(workspace, weights.m, call.columns);
        const int64_t n = hi - lo;
        double* factor = reinterpret_cast<double*>(workspace + scratch_bytes());
        factor += (ALIGNMENT - int64_t(uintptr_t(factor) % ALIGNMENT)) % ALIGNMENT / int64_t(sizeof(double));
        T* values = reinterpret_cast<T*>(factor + rows());
        T* half = values + rows() * call.d;
        const Raw* raw = static_cast<const Raw*>(call.raw) + lo * call.d;
        const int64_t n_far = fold_rows<Raw, T>(raw, call.centre, call.feature_scale, call.norm, call.scale, n, call.d,
                                                values, half, factor);
        const RowsOf<T> folded = {values, half, factor, nullptr, 4, nullptr, call.d};
        const Job job = {nullptr, 0, n, call.columns, call.code, call.degree, near_half};
        T* sums = call.sums ? static_cast<T*>(call.sums) + lo * call.columns : half + rows();
        score_tiles<T>(folded, points, weights, job, 0, divide_up(n, ROWS_PER_TILE), scratch, sums);
        return most(n_far, judge(sums, lo, n));
    }
};

template <class T, class Raw>
int32_t score_rows_of(struct slimsvm_score_rows_call& call) {
    const PointsOf<T> points = points_of<T>(*call.points);
    const WeightsOf<T> weights = weights_of<T>(*call.weights);
    if (points.form < 0 || points.form > SLIMSVM_MANHATTAN || weights.m != call.m ||
        !holds(call.points->n_values, call.points->n_slots, call.d) ||
        !fit_together<T>(*call.points, *call.weights, call.columns) ||
        (call.labels && (!call.classes || call.n_classes < most(int64_t(2), call.m))))
        return SLIMSVM_BAD_ARGUMENT;
    RawPart<T, Raw> part = {call, points, weights, HUGE_VAL, 1};
    part.tiles = most(int64_t(1), RawPart<T, Raw>::NUMBERS / (ROWS_PER_TILE * most(int64_t(1), call.d)));
    const int64_t bytes = part.bytes();
    // Few rows in one thread need no workspace of the caller's.
    uint8_t small[16384];
    const bool is_small = call.n_threads == 1 && bytes <= int64_t(sizeof small);
    if (!is_small && call.n_workspace < bytes * call.n_threads) return needs_workspace(call, bytes * call.n_threads);
    uint8_t* workspace = is_small ? small : call.workspace;
    part.near_half = near_from(points, weights, call.weights->n_values, call.code, call.n);
    int64_t n_far = 0;
    Team team(call.n_threads, call.microseconds);
    share(team, divide_up(call.n, ROWS_PER_TILE), [&](int64_t lo, int64_t hi, int64_t worker) {
        for (int64_t tile = lo; tile < hi; tile += part.tiles) {
            const int64_t end = least(call.n, least(hi, tile + part.tiles) * ROWS_PER_TILE);
            const int64_t far = part.run(tile * ROWS_PER_TILE, end, workspace + worker * bytes);
            if (far) __atomic_fetch_add(&n_far, far, __ATOMIC_RELAXED);
        }
    });
    call.n_far = n_far;
    return SLIMSVM_OK;
}

template <class T>
int32_t sum_rows_of(const struct slimsvm_sum_rows_call& call) {
    const T *K = static_cast<const T*>(call.K), *coef = static_cast<const T*>(call.coef);
    T* out = static_cast<T*>(call.out);
    if (call.n_offsets != call.n_segments + 1) return SLIMSVM_BAD_ARGUMENT;
    for (int64_t i = 0; i < call.n; ++i)
        for (int64_t c = 0; c < call.m; ++c)
            for (int64_t s = 0; s < call.n_segments; ++s) {
                double total = 0.0;
                for (int64_t j = call.offsets[s]; j < call.offsets[s + 1]; ++j)
                    total += double(K[i * call.k + j]) * double(coef[c * call.k + j]);
                out[(i * call.n_segments + s) * call.m + c] = T(total);
            }
    return SLIMSVM_OK;
}

// Cuts coefficients at panels and segments, each piece padded with zeros to a whole panel.
template <class T>
int32_t cut_weights_of(const struct slimsvm_cut_weights_call& call) {
    const T* coef = static_cast<const T*>(call.coef);
    T* values = static_cast<T*>(call.values);
    const int64_t m = call.m, panel = PANEL<T>;
    const int64_t n_panels = divide_up(call.k, panel), n_segments = call.n_offsets - 1;
    if (call.n_first != n_panels + 1 || call.n_entries < n_panels + n_segments || n_segments < 1 ||
        call.n_values < call.n_entries * m * panel || call.offsets[n_segments] != call.k || call.offsets[0] != 0)
        return SLIMSVM_BAD_ARGUMENT;
    int64_t piece = -1, segment = 0;
    call.first[0] = 0;
    for (int64_t j = 0; j < call.k; ++j) {
        bool is_new = j % panel == 0;
        if (is_new) call.first[j / panel] = piece + 1;
        while (call.offsets[segment + 1] <= j) {
            ++segment;
            is_new = true;
        }
        if (is_new) call.segments[++piece] = segment;
        for (int64_t c = 0; c < m; ++c) values[(piece * m + c) * panel + j % panel] = coef[j * m + c];
    }
    call.first[n_panels] = piece + 1;
    return SLIMSVM_OK;
}

}  // namespace

int32_t scores(struct slimsvm_scores_call* call) {
    if (call->n_threads < 1 || call->rows->real_size != call->real_size || call->points->real_size != call->real_size ||
        call->weights->real_size != call->real_size || !is_map(call->code, call->degree) || call->points->form < 0 ||
        call->points->form > SLIMSVM_CSC_MANHATTAN)
        return SLIMSVM_BAD_ARGUMENT;
    return call->real_size == 4 ? scores_of<float>(*call) : scores_of<double>(*call);
}

int32_t score_rows(struct slimsvm_score_rows_call* call) {
    const int32_t real_size = call->points->real_size;
    if (call->n_threads < 1 || (call->sums && call->real_size != real_size) || call->points->n_features != call->d ||
        call->weights->real_size != real_size || !is_map(call->code, call->degree))
        return SLIMSVM_BAD_ARGUMENT;
    if (real_size == 4)
        return call->raw_size == 4 ? score_rows_of<float, float>(*call) : score_rows_of<float, double>(*call);
    return call->raw_size == 4 ? score_rows_of<double, float>(*call) : score_rows_of<double, double>(*call);
}

int32_t map_with_slopes(struct slimsvm_map_with_slopes_call* call) {
    if (!is_map(call->code, call->degree)) return SLIMSVM_BAD_ARGUMENT;
    constexpr int lanes = LANES<double>;
    const double none[lanes] = {};
    for (int64_t j = 0; j < call->n; j += lanes) {
        const size_t bytes = size_t(least(int64_t(lanes), call->n - j)) * sizeof(double);
        double values[lanes] = {}, slopes[lanes];
        memcpy(values, call->z + j, bytes);
        map_with_slopes<double>(values, slopes, none, 0.0, lanes, call->code, call->degree);
        memcpy(call->values + j, values, bytes);
        for (int i = 0; i < lanes; ++i)
            slopes[i] = slope_factor(call->code) * (slope_is_value(call->code) ? values[i] : slopes[i]);
        memcpy(call->slopes + j, slopes, bytes);
    }
    return SLIMSVM_OK;
}

int32_t sum_rows(struct slimsvm_sum_rows_call* call) {
    return call->real_size == 4 ? sum_rows_of<float>(*call) : sum_rows_of<double>(*call);
}

int32_t cut_weights(struct slimsvm_cut_weights_call* call) {
    return call->real_size == 4 ? cut_weights_of<float>(*call) : cut_weights_of<double>(*call);
}

}  // namespace slimsvm::SLIMSVM_ISA
