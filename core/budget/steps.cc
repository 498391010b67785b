// Budgeted training: one row at a time, dual coordinate ascent or stochastic subgradient steps.
//
// Names are the papers': alpha the dual variables, f the score of the budgeted model, delta what a step adds to a
// coefficient, t the number of steps. Coefficients of the primal method are stored times t: shrinking all of them by
// (1 - 1/t) is then no work.
#include "budget/rules.h"
#include "losses/row_steps.h"

namespace slimsvm::SLIMSVM_ISA {

namespace {

constexpr int64_t AHEAD = 3;  // steps ahead that the numbers of a row are asked for

// What the steps work on, and what all of them have in common.
template <class T>
struct Job {
    const struct slimsvm_take_steps_call& call;
    const struct slimsvm_row_steps* steps;  // null: the steps are given
    const T* half;
    BudgetPoints<T> points;
    Rule rule;
    Counts counts;
    double *alpha, *intercept, *delta, *scores;
    int64_t m, t, n_taken;

    explicit Job(const struct slimsvm_take_steps_call& called)
        : call(called),
          steps(called.steps),
          half(static_cast<const T*>(called.rows->half)),
          points(*called.points),
          rule(*called.rule),
          alpha(called.alpha),
          intercept(called.intercept),
          delta(called.points->step),
          scores(called.points->step + called.points->m),
          m(called.points->m),
          t(called.t[0]),
          n_taken(called.t[1]) {
        memcpy(&counts, call.counts, sizeof counts);
    }
    void close() {
        points.close();
        call.t[0] = t;
        call.t[1] = n_taken;
        memcpy(call.counts, &counts, sizeof counts);
    }
    bool is_dual() const { return steps->method == SLIMSVM_DUAL; }

    SLIMSVM_INLINE void prefetch(int64_t i, int64_t at) const {
        __builtin_prefetch(points.slot_of + i);
        __builtin_prefetch(half + at);
        if (!steps) return;
        __builtin_prefetch(steps->labels + i);
        __builtin_prefetch(steps->C_of_row + i);
        __builtin_prefetch(points.diagonal + i);
        if (is_dual()) __builtin_prefetch(alpha + i * m);
    }

    // delta of row i from its kernel values; the row's loss and error are counted.
    template <class Loss>
    void find_delta(const Loss& loss, int64_t i) {
        const double C = steps->C_of_row[i], n = double(steps->n);
        const double unit = is_dual() ? 1.0 : 1.0 / double(most(int64_t(1), t - 1));
        const double k_ii = (points.diagonal[i] + steps->constant) * (1.0 + steps->damping * double(n_taken));
        double lost = 0.0;
        for (int64_t c = 0; c < m; ++c) {
            const double sum = dot(points.k, points.beta_of(c), points.n_in_panels());
            const double f = (sum + steps->constant * intercept[c]) * unit, y = target_of(*steps, i, c);
            delta[c] = is_dual() ? loss.dual_step(y, f, C, k_ii, alpha[i * m + c]) : n * loss.primal_step(y, f, C);
            lost += loss.value(y, f);
            scores[c] = f;
        }
        counts.steps += 1.0;
        counts.loss += lost * C;
        counts.errors += error(steps->labels[i]);
    }

    // What the scores are off by: an absolute residual, or 1 for a wrong label.
    double error(double y) const {
        if (steps->loss == SLIMSVM_EPSILON_INSENSITIVE) return fabs(y - scores[0]);
        if (steps->loss == SLIMSVM_HINGE) return (scores[0] > 0.0) != (y > 0.0) ? 1.0 : 0.0;
        int64_t best = 0;
        for (int64_t c = 1; c < m; ++c)
            if (scores[c] > scores[best]) best = c;
        return double(best) != y ? 1.0 : 0.0;
    }

    // Step s, on row i, whose kernel values are known: delta, and the unit of coefficients after it. Returns whether
    // the row changes the model.
    __attribute__((noinline)) bool find_step(int64_t s, int64_t i, double& unit) {
        unit = 1.0;
        if (!steps) {
            memcpy(delta, alpha + s * m, size_t(m) * sizeof(double));
            return true;
        }
        ++t;
        with_loss(*steps, [&](const auto& loss) { find_delta(loss, i); });
        if (!is_dual()) unit = 1.0 / double(t);
        bool is_changed = false;
        for (int64_t c = 0; c < m; ++c) is_changed |= delta[c] != 0.0;
        return is_changed;
    }

    // delta comes into the model; of a row that is no point of it the numbers are in x.
    __attribute__((noinline)) void change(int64_t i, T h, double unit) {
        const double constant = steps ? steps->constant : 0.0;
        counts.changed += 1.0;
        for (int64_t c = 0; c < m; ++c) {
            intercept[c] += constant * delta[c];
            points.mean[2 + c] += constant * delta[c] * points.mean[0];
        }
        if (points.holds(i))
            add_to_slot(points, points.slot_of[i], delta);
        else if (points.diagonal[i] > 0.0)
            n_taken += add_point(points, rule, i, h, delta, counts, unit);
    }

    template <class Form>
    void run(const Form& form) {
        const int64_t *index = call.index, *places = call.places, n = call.n;
        for (int64_t s = 0; s < n; ++s) {
            const int64_t ahead = least(s + AHEAD, n - 1);
            prefetch(index[ahead], places[ahead]);
            form.prefetch(places[ahead]);
            const int64_t i = index[s], at = places[s];
            row_values(form, at, half[at], points);
            if constexpr (!Form::IS_GIVEN) counts.evals += double(points.n);
            double unit;
            if (find_step(s, i, unit)) {
                if (!points.holds(i)) form.read(at, points);
                change(i, half[at], unit);
            }
            if (points.mean[1] >= 0.0) {
                points.mean[0] += unit;
                points.mean[1] += 1.0;
            }
        }
    }
};

template <class T>
void run_steps(const struct slimsvm_take_steps_call& call) {
    Job<T> job(call);
    const struct slimsvm_rows& rows = *call.rows;
    const T* values = static_cast<const T*>(rows.values);
    if (job.points.form == SLIMSVM_INNER)
        job.run(DenseForm<T, Inner>{values, rows.n_features});
    else if (job.points.form == SLIMSVM_MANHATTAN)
        job.run(DenseForm<T, Manhattan>{values, rows.n_features});
    else if (job.points.form == SLIMSVM_GIVEN)
        job.run(GivenForm<T>{values, rows.n_features});
    else if (job.points.form == SLIMSVM_CSR_INNER)
        job.run(SparseForm<T, Inner>{values, static_cast<const int32_t*>(rows.columns), rows.indptr});
    else
        job.run(SparseForm<T, Shared>{values, static_cast<const int32_t*>(rows.columns), rows.indptr});
    job.close();
}

// Whether the rows are of the form that the model is for, and as wide. Points are dense: columns of 64 bits are for
// rows that are wider than any memory.
bool are_rows_for(const struct slimsvm_rows& rows, const struct slimsvm_budget_points& points) {
    const int64_t width = points.form == SLIMSVM_GIVEN ? points.n_rows : points.n_features;
    if (rows.real_size != points.real_size || rows.n_features != width) return false;
    if (points.form == SLIMSVM_CSR_INNER || points.form == SLIMSVM_CSR_MANHATTAN)
        return rows.indptr && (rows.n_values == 0 || (rows.columns && rows.whole_size == 4));
    return (points.form == SLIMSVM_INNER || points.form == SLIMSVM_MANHATTAN || points.form == SLIMSVM_GIVEN) &&
           holds(rows.n_values, rows.n, width);
}

// Whether the steps are for the rows of the model, and alpha is as long as they need it.
bool are_steps_for(const struct slimsvm_take_steps_call& call) {
    const struct slimsvm_row_steps* steps = call.steps;
    if (!steps) return call.n_alpha == call.n;
    if (steps->n != call.points->n_rows || !is_known(*steps)) return false;
    return steps->method == SLIMSVM_PRIMAL || (steps->method == SLIMSVM_DUAL && call.n_alpha == steps->n);
}

}  // namespace

int32_t take_steps(struct slimsvm_take_steps_call* call) {
    if (!is_suitable(*call->rule, *call->points) || !are_rows_for(*call->rows, *call->points) ||
        !are_steps_for(*call) || call->m != call->points->m)
        return SLIMSVM_BAD_ARGUMENT;
    call->points->real_size == 4 ? run_steps<float>(*call) : run_steps<double>(*call);
    return SLIMSVM_OK;
}

namespace {

template <class T>
void drop_idle_of(const struct slimsvm_budget_points& given) {
    BudgetPoints<T> points(given);
    for (int64_t j = points.n - 1; j >= 0; --j)
        if (points.is_at_zero(points.beta, j)) points.drop(j);
    points.close();
}

template <class T>
void search(struct slimsvm_merge_search_call& call) {
    const BudgetPoints<T> points(*call.points);
    const Rule& rule = *call.rule;
    const int64_t r = smallest(points, false).slot;
    slot_values(points, r);
    merge_losses(points, rule, r);
    points.k[r] = T(-1);
    call.r = r;
    call.partner = best_partner(points, rule, points.beta[r]).slot;
}

}  // namespace

int32_t drop_idle(struct slimsvm_drop_idle_call* call) {
    if (!is_model(*call->points, call->points->n_slots - 2)) return SLIMSVM_BAD_ARGUMENT;
    call->points->real_size == 4 ? drop_idle_of<float>(*call->points) : drop_idle_of<double>(*call->points);
    return SLIMSVM_OK;
}

int32_t merge_search(struct slimsvm_merge_search_call* call) {
    if (!is_suitable(*call->rule, *call->points) || call->rule->code != MERGE || !call->rule->table ||
        call->points->m != 1 || call->points->used[0] < 1)
        return SLIMSVM_BAD_ARGUMENT;
    call->points->real_size == 4 ? search<float>(*call) : search<double>(*call);
    return SLIMSVM_OK;
}

}  // namespace slimsvm::SLIMSVM_ISA
