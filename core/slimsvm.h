/* The C interface of libslimsvm: every function that Python calls, with shapes, units and who owns what.
 *
 * Each function takes one structure, `struct slimsvm_NAME_call`, and returns a status: 0, or what `slimsvm_status_text`
 * has a sentence for. All memory is the caller's; no function keeps an address. Other structures describe arrays that
 * several functions read (rows, points, ...), and are made once.
 *
 * Python reads this file (slimsvm/core/border.py) and checks each argument against it. So every field has a line of its
 * own with a comment that begins with what Python needs to know:
 *     int64_t n;             // rows                        a number that Python fills in from the arrays' shapes,
 *                                                           if n is the length of an axis below, else an argument
 *     const double* y;       // (n) labels                  an array, C-contiguous, of that type and shape, to be read
 *     double* out;           // (n, m) scores               an array that is written
 *     const int64_t* index;  // (k) in 0..n rows            whole numbers from 0 to n - 1
 *     const int64_t* indptr; // (n + 1) offsets to n_stored numbers that never fall, from >= 0 to <= n_stored
 *     const double* weight;  // (n)? weights                None is allowed, and becomes a null address
 *     const void* x;         // real (n, d : stride) ...    rows may be `stride` numbers apart
 *     int64_t steps;         // -> steps made               a number that the function writes and Python gets back
 *     int64_t at;            // <-> next row                both
 * A field `workspace` is Python's matter: where it is too small a function does nothing, says in n_workspace how many
 * bytes it needs and returns SLIMSVM_NEEDS_WORKSPACE.
 * `real`, `raw` and `whole` stand for one of two types each: float or double (real, raw), int32_t or int64_t (whole);
 * the fields real_size, raw_size and whole_size, filled in by Python, say how many bytes one number has. All arrays
 * of one structure that are `real` have the same type. `flags` stands for NumPy's bool.
 */
#ifndef SLIMSVM_H
#define SLIMSVM_H

#include <stdint.h>

#if defined(SLIMSVM_API) /* the runtime of predict/ shows none of this */
#elif defined(_WIN32)
#define SLIMSVM_API __declspec(dllexport)
#else
#define SLIMSVM_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Statuses. */
#define SLIMSVM_OK 0
#define SLIMSVM_BAD_ARGUMENT 1
#define SLIMSVM_NEEDS_WORKSPACE 2

/* Maps from z, an inner product or -1/2 of a squared distance, to a kernel value (core/kernels/maps.h):
 * 2^min(z, 0), z^degree, z, tanh z, (1 + s) e^-s with s = sqrt(-2 z), 1 / (1 - min(z, 0)). */
#define SLIMSVM_EXP2 0
#define SLIMSVM_POWER 1
#define SLIMSVM_IDENTITY 2
#define SLIMSVM_TANH 3
#define SLIMSVM_MATERN32 4
#define SLIMSVM_RATIONAL 5

/* Products of rows and points: both dense; CSR rows, dense points; CSR rows, CSC points; rows of ready kernel values.
 */
#define SLIMSVM_INNER 0
#define SLIMSVM_MANHATTAN 1
#define SLIMSVM_CSR_INNER 2
#define SLIMSVM_CSR_MANHATTAN 3
#define SLIMSVM_CSC_INNER 4
#define SLIMSVM_CSC_MANHATTAN 5
#define SLIMSVM_GIVEN 6

/* What `half` of folded rows is: 0, -|x|^2 / 2, -|x|_1. */
#define SLIMSVM_NO_NORM 0
#define SLIMSVM_SQUARED 1
#define SLIMSVM_ABSOLUTE 2

/* Losses of rows: of one score (core/losses/score_losses.h), of several classes and of ordered ones; in steps on single
 * rows ..._ONE_VS_REST is the hinge of each of several classes against the rest. */
#define SLIMSVM_HINGE 0
#define SLIMSVM_EPSILON_INSENSITIVE 1
#define SLIMSVM_MULTICLASS 2
#define SLIMSVM_SOFTMAX 3
#define SLIMSVM_ORDINAL 4
#define SLIMSVM_ONE_VS_REST 5
#define SLIMSVM_LOGISTIC 6
#define SLIMSVM_SQUARED_HINGE 7
#define SLIMSVM_SQUARED_ERROR 8
#define SLIMSVM_HUBER 9
#define SLIMSVM_QUANTILE 10
#define SLIMSVM_POISSON 11

/* Losses of a sequence: its wrong labels, or 1 if any is wrong. */
#define SLIMSVM_HAMMING 0
#define SLIMSVM_ZERO_ONE 1

/* The intercept: none, as one more coefficient of the norm, or without a penalty. */
#define SLIMSVM_NO_INTERCEPT 0
#define SLIMSVM_REGULARIZED 1
#define SLIMSVM_FREE 2

/* ---------------------------------------------------------------- the library itself */

SLIMSVM_API const char* slimsvm_abi(void);      /* hash of this file, as it was when the library was built */
SLIMSVM_API const char* slimsvm_isa(void);      /* instruction set in use: "baseline", "avx2", "avx512" */
SLIMSVM_API const char* slimsvm_best_isa(void); /* the best that this machine can run */
SLIMSVM_API const char* slimsvm_status_text(int32_t status);
SLIMSVM_API int64_t slimsvm_vector_bytes(void); /* bytes of a vector of that instruction set */
SLIMSVM_API int64_t slimsvm_panel_bytes(void);  /* bytes of the numbers that stand side by side in a panel */

/* Microseconds of one thread's work from which helpers who are awake share it (10), and from which others are woken for
 * it (1000); how often work was shared, and helpers were woken, so far. For tests. */
SLIMSVM_API void slimsvm_share_from(double sharing, double waking);
SLIMSVM_API int64_t slimsvm_times_shared(void);
SLIMSVM_API int64_t slimsvm_times_woken(void);

/* Place of the first of n numbers of `size` bytes outside lo, ..., hi - 1; -1 if there is none. */
SLIMSVM_API int64_t slimsvm_find_outside(const void* numbers, int64_t size, int64_t n, int64_t lo, int64_t hi);
/* Place of the first of n numbers that is below the one before it, below 0 or above `last`; -1 if there is none. */
SLIMSVM_API int64_t slimsvm_find_fall(const void* numbers, int64_t size, int64_t n, int64_t last);

/* ---------------------------------------------------------------- rows */

/* Folded rows: centred, scaled, with half = h(x) and factor = 2^(h - its nearest integer), over the scale of exp2.
 * Dense rows lie one after another; CSR rows have columns and offsets. */
struct slimsvm_rows {
    int32_t real_size;
    int32_t whole_size;
    int64_t n;              // rows
    int64_t n_features;     // features; argument
    int64_t n_values;       // stored numbers
    const void* values;     // real (n_values)
    const void* half;       // real (n)
    const double* factor;   // (n)
    const void* columns;    // whole (n_values)? in 0..n_features
    const int64_t* indptr;  // (n + 1)? offsets to n_values
};

/* Points in panels, feature after feature; or CSC: values, points and offsets by feature. base = h of each point. */
struct slimsvm_points {
    int32_t real_size;
    int64_t form;            // product, SLIMSVM_INNER ...
    int64_t n_features;      // features; argument
    int64_t n_slots;         // points, padded to whole panels
    int64_t n_values;        // numbers in the panels, or stored
    int64_t n_offsets;       // features + 1
    const void* panels;      // real (n_values)
    const void* base;        // real (n_slots)
    const int32_t* indices;  // (n_values)? in 0..n_slots
    const int64_t* indptr;   // (n_offsets)? offsets to n_values
};

/* Rows i = lo, ..., hi - 1 of raw to out[i] = (raw[i] - centre) * feature_scale, half and factor as in slimsvm_rows. A
 * row too far out for its type gets zeros and a factor of 0; n_far counts these, and rows that are not finite. */
struct slimsvm_fold_rows_call {
    int32_t real_size;
    int32_t raw_size;
    int64_t n;                    // rows
    int64_t d;                    // features
    int64_t norm;                 // SLIMSVM_NO_NORM or SLIMSVM_SQUARED
    double scale;                 // of kernel values, divided out by `factor`
    const void* raw;              // raw (n, d)
    const double* centre;         // (d)
    const double* feature_scale;  // (d)
    void* out;                    // real (n, d)
    void* half;                   // real (n)
    double* factor;               // (n)
    int64_t n_far;                // -> rows that are far or not finite
};

/* The same for CSR rows, not centred; feature_scale has one number for all features, or one for each. */
struct slimsvm_fold_csr_call {
    int32_t real_size;
    int32_t raw_size;
    int32_t whole_size;
    int64_t n;                    // rows
    int64_t n_values;             // stored numbers
    int64_t n_scales;             // numbers in feature_scale
    int64_t norm;                 // SLIMSVM_NO_NORM, ..._SQUARED or ..._ABSOLUTE
    double scale;                 // of kernel values, divided out by `factor`
    const void* raw;              // raw (n_values)
    const void* columns;          // whole (n_values)
    const int64_t* indptr;        // (n + 1) offsets to n_values
    const double* feature_scale;  // (n_scales)
    void* out;                    // real (n_values)
    void* half;                   // real (n)
    double* factor;               // (n)
};

/* Points one after another (k, d) into panels, feature after feature; the panels are zero before. */
struct slimsvm_pack_dense_call {
    int32_t real_size;
    int64_t k;           // points
    int64_t d;           // features
    int64_t n_values;    // numbers in the panels, at least the points padded to whole panels
    const void* values;  // real (k, d)
    void* panels;        // real (n_values)
};

/* The same for points in CSR. */
struct slimsvm_pack_csr_call {
    int32_t real_size;
    int32_t whole_size;
    int64_t k;              // points
    int64_t n_features;     // features; argument
    int64_t n_stored;       // stored numbers
    int64_t n_values;       // numbers in the panels
    const void* values;     // real (n_stored)
    const void* columns;    // whole (n_stored) in 0..n_features
    const int64_t* indptr;  // (k + 1) offsets to n_stored
    void* panels;           // real (n_values)
};

/* total += sum of the rows, in float64, row after row. */
struct slimsvm_add_rows_call {
    int32_t raw_size;
    int64_t n;         // rows
    int64_t d;         // features
    const void* rows;  // raw (n, d)
    double* total;     // (d)
};

/* ---------------------------------------------------------------- scores */

/* Coefficients cut at the bounds of panels and segments; entry e takes part in segment segments[e], and the entries of
 * panel q are first[q], ..., first[q + 1] - 1. values by entry, output and place in the panel. */
struct slimsvm_weights {
    int32_t real_size;
    int64_t n_segments;       // segments; argument
    int64_t n_outputs;        // outputs, 0 for kernel values; argument
    int64_t n_values;         // numbers
    int64_t n_first;          // panels + 1
    int64_t n_entries;        // room for entries
    const void* values;       // real (n_values)
    const int64_t* first;     // (n_first) offsets to n_entries
    const int64_t* segments;  // (n_entries)? in 0..n_segments
};

/* Cuts coefficients (k, m) at panels and segments; values, first and segments have room for all. */
struct slimsvm_cut_weights_call {
    int32_t real_size;
    int64_t k;               // points
    int64_t m;               // outputs
    int64_t n_offsets;       // segments + 1
    int64_t n_values;        // room for numbers
    int64_t n_first;         // panels + 1
    int64_t n_entries;       // room for entries
    const void* coef;        // real (k, m)
    const int64_t* offsets;  // (n_offsets) offsets to k
    void* values;            // real (n_values) zeros
    int64_t* first;          // (n_first)
    int64_t* segments;       // (n_entries)
};

/* Scores out[i, s, c] = sum over the points j of segment s of k(x_i, p_j) coef[j, c], or, without outputs, kernel
 * values out[i, j] = k(x_i, p_j). Rows are those at `index`, or consecutive ones from `first`. Values of a row do not
 * depend on the rows computed with it, nor on threads. */
struct slimsvm_scores_call {
    int32_t real_size;
    const struct slimsvm_rows* rows;        // the rows
    const struct slimsvm_points* points;    // the points
    const struct slimsvm_weights* weights;  // the coefficients
    int64_t n;                              // rows of the result
    int64_t columns;                        // numbers in a row of the result
    int64_t n_index;                        // rows chosen, or 0
    int64_t first;                          // first of consecutive rows
    int64_t code;                           // map, SLIMSVM_EXP2 ...
    int64_t degree;                         // of the map SLIMSVM_POWER
    int64_t n_threads;                      // threads
    int64_t n_workspace;                    // bytes of workspace
    double microseconds;                    // of one thread, about
    const int64_t* index;                   // (n_index)? in 0..rows.n
    void* out;                              // real (n, columns)
    uint8_t* workspace;                     // (n_workspace) scratch
};

/* A map of any numbers z, and its derivative there. */
struct slimsvm_map_with_slopes_call {
    int64_t n;        // numbers
    int64_t code;     // map, SLIMSVM_EXP2 ...
    int64_t degree;   // of the map SLIMSVM_POWER
    const double* z;  // (n)
    double* values;   // (n)
    double* slopes;   // (n)
};

/* Ready kernel values K: out[i, s, c] = sum over the columns j of segment s of K[i, j] coef[c, j], in float64. */
struct slimsvm_sum_rows_call {
    int32_t real_size;
    int64_t n;               // rows
    int64_t k;               // points
    int64_t m;               // outputs
    int64_t n_offsets;       // segments + 1
    int64_t n_segments;      // segments
    const void* K;           // real (n, k)
    const void* coef;        // real (m, k)
    const int64_t* offsets;  // (n_offsets) offsets to k
    void* out;               // real (n, n_segments, m)
};

/* Kernel values out[i, j] = sum over the terms t of shares[t] map(z_t), plus whole map(ratio sum_t z_t): z_t is minus
 * the sum over the features of term t of (x_f - p_f)^2 / 2, or of |x_f - p_f|. Rows and points are folded; the points
 * lie in panels. Values of a row do not depend on the rows computed with it, nor on threads. */
struct slimsvm_sum_terms_call {
    int32_t real_size;
    int64_t n;               // rows
    int64_t d;               // features
    int64_t k;               // points
    int64_t n_values;        // numbers in the panels
    int64_t n_terms;         // terms
    int64_t n_offsets;       // terms + 1
    int64_t stride;          // distance of rows of the result
    int64_t is_absolute;     // whether z is of absolute differences; SLIMSVM_EXP2 only
    int64_t code;            // map, SLIMSVM_EXP2, ..._MATERN32 or ..._RATIONAL
    double whole;            // share of the map of all features
    double ratio;            // factor of their sum in it
    int64_t n_threads;       // threads
    double microseconds;     // of one thread, about
    const void* rows;        // real (n, d)
    const void* panels;      // real (n_values)
    const int64_t* offsets;  // (n_offsets) offsets to d
    const double* shares;    // (n_terms)
    void* out;               // real (n, k : stride)
};

/* Scores and labels of dense rows as they are, folded on the way, part by part; what is null is not asked for. A label
 * is the line of `classes` of the greatest score, or of the only score's sign. */
struct slimsvm_score_rows_call {
    int32_t real_size;
    int32_t raw_size;
    const struct slimsvm_points* points;    // dense points
    const struct slimsvm_weights* weights;  // the coefficients
    int64_t n;                              // rows
    int64_t d;                              // features
    int64_t m;                              // outputs
    int64_t columns;                        // numbers in a row of sums
    int64_t n_classes;                      // classes
    int64_t n_words;                        // words of 8 bytes in the name of a class
    int64_t norm;                           // SLIMSVM_NO_NORM or SLIMSVM_SQUARED
    int64_t code;                           // map, SLIMSVM_EXP2 ...
    int64_t degree;                         // of the map SLIMSVM_POWER
    int64_t n_threads;                      // threads
    int64_t n_workspace;                    // bytes of workspace
    double scale;                           // of kernel values
    double microseconds;                    // of one thread, about
    const void* raw;                        // raw (n, d)
    const double* centre;                   // (d)
    const double* feature_scale;            // (d)
    const double* intercept;                // (m)
    const int64_t* classes;                 // (n_classes, n_words)?
    void* sums;                             // real (n, columns)?
    double* scores;                         // (n, m)?
    int64_t* labels;                        // (n, n_words)?
    uint8_t* workspace;                     // (n_workspace) scratch
    int64_t n_far;                          // -> rows that are far or not finite, or whose scores are not
};

/* ---------------------------------------------------------------- losses */

/* A loss of rows with its labels and weights. Losses of one score have signs -1, +1 or targets, one for each of a row's
 * scores; cost are the loss's parameters: of SLIMSVM_HINGE the margins asked of both, of ..._EPSILON_INSENSITIVE and
 * ..._HUBER epsilon, of ..._QUANTILE the share. ..._MULTICLASS: classes; cost = the matrix, row by row. ..._SOFTMAX:
 * classes. ..._ORDINAL: classes; the thresholds are the plain parameters. */
struct slimsvm_row_loss {
    int64_t code;            // SLIMSVM_HINGE ...
    int64_t n;               // rows
    int64_t n_outputs;       // scores of a row; argument
    int64_t n_classes;       // classes, where there are; argument
    int64_t n_signs;         // signs: one a row and score
    int64_t n_targets;       // targets: one a row and score
    int64_t n_cost;          // numbers in cost
    const int8_t* signs;     // (n_signs)? -1 or +1
    const int64_t* classes;  // (n)? in 0..n_classes
    const double* targets;   // (n_targets)?
    const double* weights;   // (n)
    const double* cost;      // (n_cost)?
};

/* The loss-augmented argmax of every row: a loss is delta - sum coef scores - sum part plain, not weighted. */
struct slimsvm_augment_rows_call {
    const struct slimsvm_row_loss* loss;  // the loss
    int64_t n;                            // rows
    int64_t m;                            // scores of a row
    int64_t p;                            // plain parameters
    const double* scores;                 // (n, m)
    const double* plain;                  // (p)?
    double* delta;                        // (n)
    double* coef;                         // (n, m)
    double* part;                         // (n, p)?
};

/* The weighted losses at base + step times direction, and their slope in step. */
struct slimsvm_losses_along_call {
    const struct slimsvm_row_loss* loss;  // the loss
    int64_t n;                            // rows
    int64_t m;                            // scores of a row
    int64_t p;                            // plain parameters
    int64_t n_threads;                    // threads
    double step;                          // step
    const double* base;                   // (n, m)
    const double* direction;              // (n, m)
    const double* base_plain;             // (p)?
    const double* direction_plain;        // (p)?
    double value;                         // -> the losses
    double slope;                         // -> their slope
};

/* Losses with a soft maximum of temperature tau in place of the maximum, weighted. residual is minus the gradient in
 * the scores, curvature the second derivative by each; share, where there are several classes, the soft argmax.
 * dual: what the soft argmax makes of the losses' constants, where the residual is positive, and (rest) where not. */
struct slimsvm_smooth_losses_call {
    const struct slimsvm_row_loss* loss;  // the loss
    int64_t n;                            // rows
    int64_t m;                            // scores of a row
    int64_t n_threads;                    // threads
    double tau;                           // temperature
    const double* scores;                 // (n, m)
    double* residual;                     // (n, m)
    double* curvature;                    // (n, m)
    double* share;                        // (n, m)?
    double value;                         // -> the losses
    double smoothed;                      // -> the smoothed losses
    double dual;                          // -> see above
    double rest;                          // -> see above
};

/* theta of min sum_i weight_i [log(1 + exp(z_i)) - target_i z_i] + 1/2 sum_j pull_j (theta_j - centre_j)^2, where z_i =
 * sum_j theta_j terms_ji, for the rows of each column, one column after another. The first n_bounded of theta are at
 * least 0. Columns have up to 4 terms. */
struct slimsvm_fit_log_odds_call {
    int64_t n_columns;      // columns
    int64_t n;              // rows of all columns
    int64_t d;              // terms
    int64_t n_bounded;      // parameters with a bound
    const double* terms;    // (d, n)
    const double* targets;  // (n)
    const double* weights;  // (n)
    const int64_t* starts;  // (n_columns + 1) offsets to n
    const double* centre;   // (n_columns, d)
    const double* pulls;    // (d)
    double* theta;          // (n_columns, d)
};

/* The class c of the greatest sum over j < c of (score - thresholds[j]), the lowest among equals. */
struct slimsvm_decode_ordinal_call {
    int64_t n;                 // rows
    int64_t p;                 // thresholds
    const double* scores;      // (n, 1)
    const double* thresholds;  // (p)
    int64_t* codes;            // (n)
};

/* moved = best + step (target - best) and beyond = moved + overshoot (target - moved). */
struct slimsvm_move_scores_call {
    int64_t n;             // numbers
    int64_t n_threads;     // threads
    double step;           // step
    double overshoot;      // share of the way that is left
    const double* best;    // (n)
    const double* target;  // (n)
    double* moved;         // (n)
    double* beyond;        // (n)
};

/* ---------------------------------------------------------------- cuts */

/* The quadratic programme over the live cuts, max_a h'a - 1/2 a'G a over a >= 0, sum(a) = C, with what is kept between
 * solutions. Coordinate 0 is the slack, with G and h zero; cut j is coordinate j + 1. */
struct slimsvm_simplex_qp {
    int64_t n_room;   // coordinates that there is room for
    double* G;        // (n_room, n_room) inner products, symmetric
    double* h;        // (n_room) constants
    double* a;        // (n_room) multipliers: where the next solution starts, and the last solution
    double* R;        // (n_room, n_room) upper triangular factor of the free coordinates' G + kappa
    double* V;        // (2, n_room) R'^-1 1 and R'^-1 of the gradient
    double* kappa;    // (1) added to G in the factor
    int64_t* free;    // (n_room) free coordinates, in the order of R's columns
    int64_t* state;   // (6) how many are free; then how far a solution is that goes on with the next call
    double* vectors;  // (3, n_room) scratch
    int64_t* marks;   // (n_room) scratch
};

/* Solves it for the first n coordinates, or goes on with that. */
struct slimsvm_maximise_on_simplex_call {
    const struct slimsvm_simplex_qp* qp;  // the programme
    int64_t n;                            // coordinates in use, the slack included
    int64_t is_start;                     // 1: from the last solution, made feasible for C; 0: goes on
    int64_t max_pivots;                   // changes of the free coordinates at most
    int64_t max_work;                     // multiply-adds after which the call returns, about
    double C;                             // sum of the multipliers
    double tol;                           // KKT residual to reach
    int64_t is_done;                      // -> 1: a is the solution; 0: to be called again
    int64_t n_pivots;                     // -> changes of the free coordinates so far
    double xi;                            // -> multiplier of the sum
    double kkt;                           // -> relative KKT residual
};

/* Moves the coordinates `kept` (the slack first, increasing) to the front; the others' multipliers go to the slack at
 * the next solution. */
struct slimsvm_keep_on_simplex_call {
    const struct slimsvm_simplex_qp* qp;  // the programme
    int64_t n;                            // coordinates in use
    int64_t n_kept;                       // of them kept
    const int64_t* kept;                  // (n_kept) in 0..n
};

/* out[i] = sum_j weights[j] products[slots[j], first + i], in float64. */
struct slimsvm_combine_products_call {
    int32_t real_size;
    int64_t n_slots;        // cuts that there is room for
    int64_t n_numbers;      // numbers of a cut
    int64_t k;              // cuts combined
    int64_t n;              // numbers of the result
    int64_t first;          // of them in a cut
    int64_t n_threads;      // threads
    double microseconds;    // of one thread, about
    const void* products;   // real (n_slots, n_numbers)
    const int64_t* slots;   // (k) in 0..n_slots
    const double* weights;  // (k)
    double* out;            // (n)
};

/* out[j] = sum_u,c coef[u, c] products[slots[j], rows[u], c]: inner products of a cut with others, in float64. */
struct slimsvm_gram_row_call {
    int32_t real_size;
    int64_t n_slots;       // cuts that there is room for
    int64_t n;             // rows
    int64_t m;             // outputs
    int64_t k;             // cuts
    int64_t n_rows;        // rows that the cut lies on
    int64_t n_threads;     // threads
    double microseconds;   // of one thread, about
    const void* products;  // real (n_slots, n, m)
    const int64_t* slots;  // (k) in 0..n_slots
    const int64_t* rows;   // (n_rows) in 0..n
    const double* coef;    // (n_rows, m)
    double* out;           // (k)
};

/* Sparse rows in float64. The columns of a matrix that is stored column by column are such rows, too. */
struct slimsvm_csr {
    int32_t whole_size;
    int64_t n_rows;         // rows
    int64_t n_columns;      // columns; argument
    int64_t n_values;       // stored numbers
    const double* values;   // (n_values)
    const void* columns;    // whole (n_values) in 0..n_columns
    const int64_t* indptr;  // (n_rows + 1) offsets to n_values
};

/* Products of sparse rows with weights: out[k] = bias + sum_f x[i, f] weights[f], for the rows i = index[k], or
 * first + k without an index. */
struct slimsvm_sparse_product_call {
    const struct slimsvm_csr* rows;  // the rows
    int64_t n;                       // rows of the result
    int64_t n_index;                 // rows chosen, or 0
    int64_t first;                   // first of consecutive rows
    int64_t n_features;              // columns of the rows
    int64_t m;                       // outputs
    int64_t n_threads;               // threads
    double microseconds;             // of one thread, about
    const int64_t* index;            // (n_index)? in 0..rows.n_rows
    const double* weights;           // (n_features, m)
    const double* bias;              // (m)?
    const uint8_t* used;             // flags (n_features)? columns whose weights are not all zero
    double* out;                     // (n, m)
};

/* Planes of examples: constraints of a structured dual, each a constant and the entries of g. Those of an example are a
 * linked list. Plane k has the entries where[k], ..., where[k + 1] - 1. */
struct slimsvm_planes {
    int64_t n_examples;  // examples
    int64_t room;        // planes that there is room for, and one
    int64_t entry_room;  // entries that there is room for
    int64_t* n;          // (2) planes and entries that there are
    int64_t* first;      // (n_examples) newest plane of an example; -1: none
    int64_t* following;  // (room) the plane of the same example before it; -1: none
    int64_t* where;      // (room) its first entry
    int64_t* idle;       // (room) passes since it last had a weight
    double* constant;    // (room)
    double* alpha;       // (room) weights
    int32_t* row;        // (entry_room) counted from the example's first one; -1: a plain parameter
    int32_t* column;     // (entry_room) output, or plain parameter
    double* value;       // (entry_room)
};

/* Rows of the examples, one after another, and what their weights may add up to. */
struct slimsvm_blocks {
    int64_t n_examples;          // examples
    int64_t n_rows;              // rows; argument
    int64_t n_longest;           // rows of the longest example
    const int64_t* starts;       // (n_examples + 1) offsets to n_rows
    const double* C_of_example;  // (n_examples)
    int64_t* place;              // (n_longest) scratch
};

/* Enters the planes that differ from those there are, one of each example at `index`; with too little room for their
 * entries it does nothing. */
struct slimsvm_add_planes_call {
    const struct slimsvm_planes* planes;  // the planes
    int64_t n_index;                      // planes found
    int64_t n_rows;                       // rows of these examples
    int64_t m;                            // outputs
    int64_t n_plain;                      // plain parameters
    const int64_t* index;                 // (n_index) in 0..planes.n_examples
    const int64_t* starts;                // (n_index + 1) offsets to n_rows
    const double* delta;                  // (n_index) constants
    const double* coef;                   // (n_rows, m) coefficients at rows and outputs
    const double* part;                   // (n_index, n_plain) and at plain parameters
    int64_t n_missing;                    // -> entries that room is lacking for
};

/* Forgets planes that had no weight for more than max_idle passes, this one included. */
struct slimsvm_forget_planes_call {
    const struct slimsvm_planes* planes;  // the planes
    int64_t max_idle;                     // passes
    int64_t n_workspace;                  // bytes of workspace
    uint8_t* workspace;                   // (n_workspace) scratch
};

/* Adds sum_k alpha_k g_k to coefficients of rows and outputs, and to plain parameters. */
struct slimsvm_sum_planes_call {
    const struct slimsvm_planes* planes;  // the planes
    const struct slimsvm_blocks* blocks;  // their examples
    int64_t n_rows;                       // rows
    int64_t m;                            // outputs
    int64_t n_plain;                      // plain parameters
    double* coef;                         // (n_rows, m) is added to
    double* plain;                        // (n_plain) is added to
};

/* Block-coordinate ascent: a step on each example of `order`, from order[at] on, in a kernel machine. K, the scores and
 * the coefficients are of n rows; those of the example order[j] begin at base[j]. */
struct slimsvm_step_by_kernel_call {
    int32_t real_size;
    const struct slimsvm_planes* planes;  // the planes
    const struct slimsvm_blocks* blocks;  // their examples
    int64_t n;                            // rows
    int64_t m;                            // outputs
    int64_t n_plain;                      // plain parameters
    int64_t n_order;                      // examples
    int64_t is_corrective;                // 1: the best mix of the planes there are; 0: a line search
    int64_t max_work;                     // multiply-adds after which the call returns, about
    int64_t n_workspace;                  // bytes of workspace
    double constant;                      // added to K
    double tol;                           // violation below which an example is left alone
    const int64_t* order;                 // (n_order) in 0..planes.n_examples
    const int64_t* base;                  // (n_order) in 0..n+1
    const void* K;                        // real (n, n) kernel values, symmetric
    double* scores;                       // (m, n) are kept up
    double* coef;                         // (n, m) changes are added
    double* plain;                        // (n_plain) plain parameters, kept up
    uint8_t* workspace;                   // (n_workspace) scratch
    int64_t at;                           // <-> examples done
};

/* The same in a linear machine with explicit weights, which are kept up. */
struct slimsvm_step_by_weights_call {
    const struct slimsvm_planes* planes;  // the planes
    const struct slimsvm_blocks* blocks;  // their examples
    const struct slimsvm_csr* rows;       // all rows, columns increasing in each
    int64_t n_features;                   // features
    int64_t m;                            // outputs
    int64_t n_plain;                      // plain parameters
    int64_t n_order;                      // examples
    int64_t n_grams;                      // inner products that are kept
    int64_t is_corrective;                // 1: the best mix of the planes there are; 0: a line search
    int64_t max_work;                     // multiply-adds after which the call returns, about
    int64_t n_workspace;                  // bytes of workspace
    double constant;                      // added to inner products
    double tol;                           // violation below which an example is left alone
    const int64_t* order;                 // (n_order) in 0..planes.n_examples
    const double* grams;                  // (n_grams)? of `multiply_examples`; null: computed when they are needed
    const int64_t* gram_offsets;  // (planes.n_examples + 1)? offsets to n_grams of each example's; null as well then
    double* weights;              // (n_features, m)
    double* bias;                 // (m)
    double* plain;                // (n_plain)
    uint8_t* workspace;           // (n_workspace) scratch
    int64_t at;                   // <-> examples done
};

/* Inner products of rows with those of the same example, a square block for each example: those of n rows from `first`
 * on with rows up to themselves, and the same products mirrored. */
struct slimsvm_multiply_examples_call {
    const struct slimsvm_csr* rows;       // all rows, columns increasing in each
    const struct slimsvm_blocks* blocks;  // their examples
    int64_t n_grams;                      // numbers in all blocks
    int64_t first;                        // first row
    int64_t n;                            // rows; argument
    int64_t n_threads;                    // threads
    double microseconds;                  // of one thread, about
    const int64_t* gram_offsets;          // (blocks.n_examples + 1) offsets to n_grams
    double* grams;                        // (n_grams)
};

/* ---------------------------------------------------------------- decomposition */

/* Sequential minimal optimisation inside a set of rows: maximise D(v) = sum t_i v_i - epsilon sum |v_i| - v'Kv / 2 over
 * lo <= v <= hi, balanced: with sum v_i kept as it is. g = t - Kv. Kernel row slots[i] of `values` is row i of K, less
 * the offset, in its first n numbers or in those at `places`; variables without kernel rows stay as they are, g does
 * not. Ends where the violation is at most tol, after max_steps, or where no step gains. */
struct slimsvm_smo_call {
    int32_t real_size;
    int64_t n;              // rows of the set
    int64_t n_kernel_rows;  // kernel rows
    int64_t width;          // entries of a kernel row, at least n
    int64_t balanced;       // 2: pairs of rows on one side of 0; 1: pairs of rows; 0: bounds only
    int64_t max_steps;      // steps at most; with n they bound the work: n max_steps <= 2^32
    int64_t n_workspace;    // bytes of workspace
    double offset;          // added to K
    double epsilon;         // of the term |v_i|
    double tol;             // violation at which it ends
    const void* values;     // real (n_kernel_rows, width)
    const void* diagonal;   // real (n)? of K, less the offset; None: that of the kernel rows, which are complete
    const int64_t* slots;   // (n) in -1..n_kernel_rows, or -1: there is no kernel row
    const int64_t* places;  // (n)? in 0..width
    const double* lo;       // (n) bounds
    const double* hi;       // (n)
    double* g;              // (n)
    double* v;              // (n)
    uint8_t* workspace;     // (n_workspace) scratch
    int64_t steps;          // -> steps made
    double gain;            // -> by how much D has risen
    double violation;       // -> the greatest derivative upwards less the least downwards; 0 joins both unless balanced
    double middle;          // -> mean derivative of free variables, or the middle of those two: LIBSVM's intercept
};

/* The same with epsilon 0 for many sets of rows of one matrix, one after another. Kernel row i of K is row i, less the
 * offset. A set with no steps stays as it is, and so do its results. */
struct slimsvm_smo_sets_call {
    int32_t real_size;
    int64_t n_sets;            // sets
    int64_t n;                 // rows of all sets
    int64_t width;             // rows of K
    int64_t balanced;          // 1: pairs of rows; 0: bounds only
    int64_t n_workspace;       // bytes of workspace
    double offset;             // added to K
    const void* K;             // real (width, width)
    const int64_t* starts;     // (n_sets + 1) offsets to n
    const int64_t* rows;       // (n) in 0..width
    const int64_t* max_steps;  // (n_sets) for each set, bounded as above
    const double* tol;         // (n_sets)
    const double* lo;          // (n) bounds
    const double* hi;          // (n)
    double* g;                 // (n)
    double* v;                 // (n)
    uint8_t* workspace;        // (n_workspace) scratch
    int64_t* steps;            // (n_sets) steps made
    double* gain;              // (n_sets)
    double* violation;         // (n_sets)
    double* middle;            // (n_sets)
};

/* norms[s] = v'Kv of the rows of set s, summed in float64. */
struct slimsvm_set_norms_call {
    int32_t real_size;
    int64_t n_sets;         // sets
    int64_t n;              // rows of all sets
    int64_t width;          // rows of K
    int64_t n_workspace;    // bytes of workspace
    const void* K;          // real (width, width)
    const int64_t* starts;  // (n_sets + 1) offsets to n
    const int64_t* rows;    // (n) in 0..width
    const double* v;        // (n)
    uint8_t* workspace;     // (n_workspace) scratch
    double* norms;          // (n_sets)
};

/* Squared distances of rows from the span of some, F, in the kernel's space, for many sets of rows, one after another.
 * With A = K_FF + (softness + a little) I, K with the offset, those of F are 1 / (A^-1)_ii - softness, of others
 * K_ii - K_iF A^-1 K_Fi, at least 0. Balanced: A has a border of ones. */
struct slimsvm_span_distances_call {
    int64_t n_sets;              // sets
    int64_t n;                   // rows of all sets
    int64_t n_kernel_rows;       // kernel rows
    int64_t width;               // rows that these are kernel values with
    int64_t balanced;            // 1: a border of ones
    int64_t n_workspace;         // bytes of workspace
    double offset;               // added to K
    const double* K;             // (n_kernel_rows, width)
    const int64_t* starts;       // (n_sets + 1) offsets to n
    const int64_t* kernel_rows;  // (n) in 0..n_kernel_rows those of the rows
    const int64_t* places;       // (n) in 0..width columns of those of F; others': any
    const uint8_t* is_in_span;   // flags (n) whether they are of F
    const double* diagonal;      // (n) kernel values of rows with themselves, with the offset
    const double* softness;      // (n_sets)
    uint8_t* workspace;          // (n_workspace) scratch
    double* squares;             // (n) distances
    uint8_t* is_solved;          // flags (n_sets) false: A has no factor, or F is empty
};

/* values[slots[a], first + r] = block[r, a]. */
struct slimsvm_put_kernel_rows_call {
    int32_t real_size;
    int64_t n;              // columns that are put
    int64_t k;              // kernel rows
    int64_t n_kernel_rows;  // all kernel rows
    int64_t width;          // entries of a kernel row
    int64_t first;          // first column
    int64_t n_threads;      // threads
    double microseconds;    // of one thread, about
    const void* block;      // real (n, k)
    const int64_t* slots;   // (k) in 0..n_kernel_rows
    void* values;           // real (n_kernel_rows, width)
};

/* out[a, b] = values[slots[a], places[b]]. */
struct slimsvm_gather_kernel_rows_call {
    int32_t real_size;
    int64_t n;              // columns
    int64_t k;              // kernel rows
    int64_t n_kernel_rows;  // all kernel rows
    int64_t width;          // entries of a kernel row
    int64_t n_threads;      // threads
    double microseconds;    // of one thread, about
    const void* values;     // real (n_kernel_rows, width)
    const int64_t* slots;   // (k) in 0..n_kernel_rows
    const int64_t* places;  // (n) in 0..width
    void* out;              // real (k, n)
};

/* g[i] -= sum_a change[a] values[slots[a], i]. */
struct slimsvm_subtract_kernel_rows_call {
    int32_t real_size;
    int64_t n;              // numbers of g
    int64_t k;              // kernel rows
    int64_t n_kernel_rows;  // all kernel rows
    int64_t width;          // entries of a kernel row, at least n
    int64_t n_threads;      // threads
    double microseconds;    // of one thread, about
    const void* values;     // real (n_kernel_rows, width)
    const int64_t* slots;   // (k) in 0..n_kernel_rows
    const void* change;     // real (k)
    double* g;              // (n)
};

/* Column keep[b] becomes column b of the kernel rows at slots, up to their first valid[a] entries; keep rises. */
struct slimsvm_keep_columns_call {
    int32_t real_size;
    int64_t n;              // columns kept
    int64_t k;              // kernel rows
    int64_t n_kernel_rows;  // all kernel rows
    int64_t width;          // entries of a kernel row
    int64_t n_threads;      // threads
    double microseconds;    // of one thread, about
    const int64_t* slots;   // (k) in 0..n_kernel_rows
    const int64_t* valid;   // (k)
    const int64_t* keep;    // (n) in 0..width
    void* values;           // real (n_kernel_rows, width)
};

/* What LASVM keeps: slots of rows with their kernel values, dual variables v, g = t - Kv, bounds and targets t. */
struct slimsvm_online_set {
    int32_t real_size;
    int64_t capacity;      // slots
    int64_t top;           // slots in use, the first ones; argument
    int64_t balanced;      // 1: sum v stays 0, steps in pairs; 0: one by one, on K + offset; argument
    double offset;         // added to K unless balanced; argument
    const void* values;    // real (capacity, capacity) kernel values
    const double* target;  // (capacity)
    const double* lo;      // (capacity)
    const double* hi;      // (capacity)
    double* v;             // (capacity)
    double* g;             // (capacity)
    uint8_t* inside;       // flags (capacity) slots of the set S
};

/* LASVM's PROCESS, and REPROCESS if `reprocesses`, for every slot of the queue. */
struct slimsvm_lasvm_learn_call {
    struct slimsvm_online_set* set;  // S
    int64_t n;                       // slots to look at
    int64_t seeds;                   // slots that S may take while there is nothing to make a pair with
    int64_t reprocesses;             // 1: REPROCESS after each PROCESS
    double tol;                      // violation from which steps are made
    const int64_t* queue;            // (n) in 0..set.top
};

/* LASVM's REPROCESS: a step on the worst violators in S. */
struct slimsvm_lasvm_reprocess_call {
    struct slimsvm_online_set* set;  // S
    double tol;                      // violation from which steps are made
    int64_t moved;                   // -> 1 if a step was made
};

/* Lets go of slots of S with v = 0 that no step would move. */
struct slimsvm_lasvm_evict_call {
    struct slimsvm_online_set* set;  // S
};

/* Dual coordinate ascent for Crammer and Singer's problem on a block of rows: sweeps until no violation is above
 * `share` of the largest at first. Begins with row, worst and goal 0; ends with sweeps 0, or goes on with another call.
 */
struct slimsvm_ascend_classes_call {
    int64_t n;               // rows
    int64_t m;               // classes
    int64_t max_updates;     // rows solved for in this call at most; n m max_updates <= 2^32
    int64_t n_workspace;     // bytes of workspace
    double offset;           // added to K
    double share;            // of the largest violation
    const double* K;         // (n, n)
    const int64_t* labels;   // (n) in 0..m
    const double* C_of_row;  // (n)
    const double* cost;      // (m, m)
    double* M;               // (n, m) dual variables
    double* F;               // (n, m) (K + offset) M
    uint8_t* workspace;      // (n_workspace) scratch
    int64_t sweeps;          // <-> sweeps left
    int64_t row;             // <-> next row
    double worst;            // <-> largest violation met in this sweep
    double goal;             // <-> violation that is good enough
};

/* ---------------------------------------------------------------- gradients */

/* What a descent learns, and how a batch is cut into groups, the same for any number of threads. flat holds the
 * parameters one after another: basis (d, k), feature after feature, in folded coordinates; coef (k, m); intercept (m);
 * log_scale (d); plain (n_plain). The objective is the mean loss + 1/2 |w|^2 / C1. */
struct slimsvm_descent {
    int32_t real_size;
    int64_t d;              // features
    int64_t k;              // basis vectors; argument
    int64_t m;              // outputs; argument
    int64_t n_plain;        // plain parameters
    int64_t n_flat;         // numbers in flat
    int64_t n_groups;       // groups of rows
    int64_t n_sums;         // room for the sums of groups: (n_groups + 1) (d + m + 1) k and so on, padded
    int64_t n_blocks;       // blocks that features are shared out by
    int64_t tile_rows;      // rows worked on at a time; more than in any sequence
    int64_t norm_rows;      // basis vectors worked on at a time, for the norm's gradient
    int64_t norm_tiles;     // times so many in a step
    int64_t code;           // map, SLIMSVM_EXP2 ...
    int64_t degree;         // of the map SLIMSVM_POWER
    int64_t has_norms;      // whether the kernel is of distances: half = -|x|^2 / 2
    int64_t learns_scales;  // whether one scale for each feature is learned
    int64_t intercept;      // SLIMSVM_NO_INTERCEPT ...
    double shift;           // what kernels of inner products add to these
    double C1;              // factor of the mean loss
    double thinned;         // rows whose gradient is less than so many times the mean count by chance
    const void* ratio;      // real (d) scale of rows over scale of points
    const void* noise;      // real (d)? width of the noise that dense rows get at each step
    void* flat;             // real (n_flat)
    void* gradient;         // real (n_flat)
    void* sums;             // real (n_sums) of every group, the last being the norm's
    double* plain_sums;     // (n_groups + 1, n_plain + 2) the same for plain parameters, loss and error
};

/* Moments of the gradient, the running mean of the parameters, and the sizes of steps. */
struct slimsvm_adam {
    int32_t real_size;
    int64_t d;                  // features
    int64_t n_flat;             // parameters
    double coef_rate;           // sizes of a step, of coefficients ...
    double intercept_rate;      // ... the intercept
    double scale_rate;          // ... log scales of features
    double plain_rate;          // ... plain parameters
    double pull;                // of log scales to their mean, against the mean loss
    double beta1;               // share of the past in the first moment
    double beta2;               // share of the past in the second moment
    const double* basis_rates;  // (d) ... and of each feature of the basis
    void* first;                // real (n_flat)
    void* second;               // real (n_flat)
    void* mean;                 // real (n_flat)
};

/* A loss of sequences: rows' labels, and weights of the sequences that rows belong to. */
struct slimsvm_sequence_loss {
    int64_t code;            // SLIMSVM_HAMMING or SLIMSVM_ZERO_ONE
    int64_t n;               // rows
    int64_t n_classes;       // labels; argument
    double per_row;          // sequences per row: what a wrong label counts
    const int64_t* classes;  // (n) in 0..n_classes
    const double* weights;   // (n)
};

/* Steps over the batches index[cuts[b]], ..., index[cuts[b + 1] - 1] from batch number `batch` on. All groups of a
 * batch go forward side by side, a tile each; after max_tiles of them the call returns, and goes on when called with
 * the `batch` and `tile` that it gave back: it is done when batch = n_batches. schedule: the number of each step from
 * 1, the factor of all rates, and the share by which the running mean moves. stats gains the weighted loss and the
 * weight of wrong predictions, and gets the last estimate of the norm. */
struct slimsvm_descend_call {
    const struct slimsvm_descent* descent;              // the parameters
    const struct slimsvm_adam* adam;                    // the optimiser
    const struct slimsvm_rows* rows;                    // the rows
    const struct slimsvm_row_loss* row_loss;            // ? either a loss of rows,
    const struct slimsvm_sequence_loss* sequence_loss;  // ? or one of sequences
    int64_t n_index;                                    // places
    int64_t n_batches;                                  // batches
    int64_t n_threads;                                  // threads
    int64_t max_tiles;                                  // tiles of every group in this call
    int64_t n_workspace;                                // bytes of workspace
    int64_t batch;                                      // <-> batches done
    int64_t tile;                                       // <-> tiles done of the next one
    double microseconds;                                // of one thread, about
    const int64_t* index;                               // (n_index) in 0..rows.n
    const int64_t* ends;                                // (n_index)? where the sequence ends that a place belongs to
    const int64_t* cuts;                                // (n_batches + 1) offsets to n_index
    const double* schedule;                             // (n_batches, 3)
    double* stats;                                      // (3)
    uint8_t* workspace;                                 // (n_workspace) scratch
};

/* The gradient of one batch, the rows at `index`. Of given gradients of the loss in the scores, which have their shares
 * and weights, that in the plain parameters is left as it was. Called again as above, it is done when tile = 0. */
struct slimsvm_batch_gradient_call {
    const struct slimsvm_descent* descent;              // the parameters
    const struct slimsvm_rows* rows;                    // the rows
    const struct slimsvm_row_loss* row_loss;            // ? a loss of rows,
    const struct slimsvm_sequence_loss* sequence_loss;  // ? or one of sequences
    int32_t real_size;
    int64_t n_index;       // places
    int64_t columns;       // outputs
    int64_t step;          // number of the step
    int64_t n_threads;     // threads
    int64_t max_tiles;     // tiles of every group in this call
    int64_t n_workspace;   // bytes of workspace
    int64_t tile;          // <-> tiles done
    double pull;           // of log scales to their mean
    double microseconds;   // of one thread, about
    const int64_t* index;  // (n_index) in 0..rows.n
    const int64_t* ends;   // (n_index)?
    const void* given;     // real (n_index, columns)? gradients in the scores
    double* stats;         // (3)
    uint8_t* workspace;    // (n_workspace) scratch
};

/* Scores of the rows at `index`, with the noise of that step. */
struct slimsvm_batch_scores_call {
    const struct slimsvm_descent* descent;  // the parameters
    const struct slimsvm_rows* rows;        // the rows
    int32_t real_size;
    int64_t n_index;       // places
    int64_t columns;       // outputs
    int64_t step;          // number of the step
    int64_t n_threads;     // threads
    int64_t n_workspace;   // bytes of workspace
    double microseconds;   // of one thread, about
    const int64_t* index;  // (n_index) in 0..rows.n
    void* out;             // real (n_index, columns)
    uint8_t* workspace;    // (n_workspace) scratch
};

/* One step along the gradient. */
struct slimsvm_adam_step_call {
    const struct slimsvm_descent* descent;  // the parameters
    const struct slimsvm_adam* adam;        // the optimiser
    double number;                          // of the step, from 1
    double factor;                          // of all rates
    double averaging;                       // share by which the running mean moves
};

/* ---------------------------------------------------------------- span */

/* out[i, c] = sum_j values[i, j] right[j, c], in the working type. Where is_upper is not 0, what lies below the
 * diagonal of right counts as zero. */
struct slimsvm_multiply_rows_call {
    int32_t real_size;
    int64_t n;            // rows
    int64_t r;            // numbers in a row
    int64_t k;            // columns of the result
    int64_t stride;       // distance of rows
    int64_t out_stride;   // distance of rows of the result
    int64_t is_upper;     // whether right is upper triangular
    int64_t n_threads;    // threads
    int64_t n_workspace;  // bytes of workspace
    double microseconds;  // of one thread, about
    const void* values;   // real (n, r : stride)
    const void* right;    // real (r, k)
    void* out;            // real (n, k : out_stride)
    uint8_t* workspace;   // (n_workspace) scratch
};

/* out[j, c] += sum_i left[i, j] weights[i] right[i, c]: sums in the working type over 256 rows, in float64 over these.
 * Where is_upper is not 0, only panels that reach the diagonal of out or lie above it are added to. */
struct slimsvm_add_squares_call {
    int32_t real_size;
    int64_t n;             // rows
    int64_t p;             // columns of left
    int64_t q;             // columns of right
    int64_t left_stride;   // distance of rows of left
    int64_t right_stride;  // distance of rows of right
    int64_t out_stride;    // distance of rows of out
    int64_t is_upper;      // whether only the upper triangle is asked for
    int64_t n_threads;     // threads
    int64_t n_workspace;   // bytes of workspace
    double microseconds;   // of one thread, about
    const void* left;      // real (n, p : left_stride)
    const void* right;     // real (n, q : right_stride)
    const void* weights;   // real (n)
    double* out;           // (p, q : out_stride)
    uint8_t* workspace;    // (n_workspace) scratch
};

/* out[i, c] = sum_j values[i, j] coef[j, c], in float64. */
struct slimsvm_multiply_wide_call {
    int32_t real_size;
    int64_t n;            // rows
    int64_t k;            // numbers in a row
    int64_t m;            // outputs
    int64_t stride;       // distance of rows
    int64_t n_threads;    // threads
    int64_t n_workspace;  // bytes of workspace
    double microseconds;  // of one thread, about
    const void* values;   // real (n, k : stride)
    const double* coef;   // (k, m)
    double* out;          // (n, m)
    uint8_t* workspace;   // (n_workspace) scratch
};

/* out[j, c] += sum_i values[i, j] coef[i, c], in float64: over 512 rows at a time, whose sums are added in order. */
struct slimsvm_multiply_transposed_call {
    int32_t real_size;
    int64_t n;            // rows
    int64_t k;            // numbers in a row
    int64_t m;            // outputs
    int64_t stride;       // distance of rows
    int64_t n_threads;    // threads
    int64_t n_workspace;  // bytes of workspace
    double microseconds;  // of one thread, about
    const void* values;   // real (n, k : stride)
    const double* coef;   // (n, m)
    double* out;          // (k, m)
    uint8_t* workspace;   // (n_workspace) scratch
};

/* Of s vectors the next ones of the greatest sum_c rho_jc^2 / rest_j, up to max_steps of them, chosen one after
 * another; gram has the vectors' products outside the span of a basis, rest what is left of its diagonal outside of
 * those chosen. None of which no more than tolerance * own_j is left, or that explains nothing. */
struct slimsvm_greedy_picks_call {
    int64_t s;           // vectors
    int64_t m;           // outputs
    int64_t n_most;      // vectors to be chosen at most
    int64_t max_steps;   // vectors to be chosen in this call at most
    int64_t n_chosen;    // <-> vectors chosen so far
    double tolerance;    // least share of own that must be left
    const double* gram;  // (s, s)
    const double* own;   // (s) squared lengths
    double* rho;         // (s, m) what is left to be explained
    double* rest;        // (s) at first the diagonal of gram
    double* columns;     // (n_most, s) columns of the Cholesky factor of gram, one for each vector chosen
    uint8_t* is_free;    // flags (s) whether a vector may be chosen
    int64_t* chosen;     // (n_most) in the order of choice
};

/* Column t of an incomplete Cholesky factor of a kernel matrix, from the kernel values with a pivot whose residual is
 * root^2 and whose row of the factor is pivot_row: factor[i, t] = (kernel_i - <factor[i, :t], pivot_row>) / root, and
 * residual[i] -= factor[i, t]^2. Rows with a negative residual are pivots already. */
struct slimsvm_add_pivot_call {
    int32_t real_size;
    int64_t n;                // rows
    int64_t width;            // columns that the factor has room for
    int64_t t;                // column
    int64_t n_threads;        // threads
    int64_t n_workspace;      // bytes of workspace
    double microseconds;      // of one thread, about
    double root;              // root of the pivot's residual
    const void* kernel;       // real (n)
    const double* pivot_row;  // (t)
    void* factor;             // real (n, width)
    double* residual;         // (n)
    uint8_t* workspace;       // (n_workspace) scratch
    int64_t where;            // -> row of the largest residual, the first of equal ones; -1 if all are pivots
    double largest;           // -> that residual, -1 if there is none
};

/* ---------------------------------------------------------------- budget */

/* Methods: dual coordinate ascent, stochastic subgradient steps. */
#define SLIMSVM_DUAL 0
#define SLIMSVM_PRIMAL 1

/* What steps on single rows have in common. Labels are -1 and +1, classes, or numbers. */
struct slimsvm_row_steps {
    int64_t n;               // rows
    int64_t method;          // SLIMSVM_DUAL or SLIMSVM_PRIMAL
    int64_t loss;            // SLIMSVM_HINGE, SLIMSVM_ONE_VS_REST or SLIMSVM_EPSILON_INSENSITIVE
    double epsilon;          // half the width of the tube
    double cost_negative;    // margin asked of the class -1
    double cost_positive;    // ... and of +1
    double constant;         // 1 with an intercept, 0 without
    double damping;          // dual steps are divided by 1 + damping times the points that the budget has taken away
    const double* labels;    // (n)
    const double* C_of_row;  // (n) C times the weight of each row; n times it is a gradient's
};

/* One step of dual coordinate ascent on each row of `order`, for every output. K, n rows, holds the constant feature.
 * alpha: dual variables, beta: coefficients, scores = K beta; all three are kept up to date. */
struct slimsvm_ascend_call {
    const struct slimsvm_row_steps* steps;  // of method SLIMSVM_DUAL
    int64_t n;                              // rows
    int64_t m;                              // outputs
    int64_t n_order;                        // steps
    const double* K;                        // (n, n) kernel matrix
    const int64_t* order;                   // (n_order) in 0..n
    double* alpha;                          // (n, m)
    double* beta;                           // (n, m)
    double* scores;                         // (n, m)
    double* step;                           // (m) scratch
};

/* Dual coordinate ascent for support vector machines of two classes over explicit features, without an intercept:
 * sweeps over the rows of one after another, in random order, until all its derivatives are within `tol`. */
struct slimsvm_ascend_linear_call {
    int32_t real_size;
    int64_t n_rows;          // rows of Z
    int64_t n_sets;          // problems of two classes
    int64_t n;               // rows of all problems
    int64_t d;               // features
    int64_t max_sweeps;      // sweeps at most; n d max_sweeps <= 2^32
    double tol;              // the greatest derivative less the least at which a problem ends
    const void* Z;           // real (n_rows, d)
    const int64_t* starts;   // (n_sets + 1) offsets to n
    const int64_t* rows;     // (n) in 0..n_rows
    const double* sign;      // (n) labels -1 and +1
    const double* C_of_row;  // (n) C times the weight of each row, above 0
    const double* square;    // (n) |z|^2, above 0
    double* alpha;           // (n) dual variables
    double* w;               // (n_sets, d) sum_i alpha_i sign_i z_i
    int64_t* active;         // (n) scratch
    int64_t* random;         // (n_sets) state of the random numbers, not 0
    double* violation;       // (n_sets) of the last sweep: the greatest derivative less the least
};

/* The same over the rows of a CSR matrix, with an intercept that is given, or is the weight of a constant feature. */
struct slimsvm_ascend_sparse_call {
    int32_t real_size;
    int64_t n;               // rows
    int64_t n_values;        // stored values
    int64_t d;               // features
    int64_t max_sweeps;      // sweeps at most; (n_values + n) max_sweeps <= 2^32
    int32_t moves;           // whether the intercept moves
    double tol;              // the greatest derivative less the least at which it ends
    const void* values;      // real (n_values)
    const int32_t* indices;  // (n_values) in 0..d
    const int64_t* indptr;   // (n + 1) offsets to n_values
    const double* sign;      // (n) labels -1 and +1
    const double* C_of_row;  // (n) C times the weight of each row, above 0
    const double* square;    // (n) |z|^2, and 1 more where the intercept moves; above 0
    double* alpha;           // (n) dual variables
    double* w;               // (d) sum_i alpha_i sign_i z_i
    int64_t* active;         // (n) scratch
    double intercept;        // <-> of the scores
    int64_t random;          // <-> state of the random numbers, not 0
    int64_t sweeps;          // -> sweeps made
    double violation;        // -> of the last one: the greatest derivative less the least
};

/* A model of at most n_slots - 2 points, in panels, feature after feature, one slot each. The last slot is never used:
 * its base is the constant of a kernel that has no norms. For the mean of the models after each step since `mean` was
 * set to 0: mean[0] is the sum A of the units of coefficients, mean[1] the number of steps, -1 where no mean is taken;
 * `sums`, and mean[2:] of the intercept, hold what came in times A as it was then. The mean is (A beta - sums) / steps.
 * A point whose coefficients came back to 0 stays for what the mean has of it, and goes first. */
struct slimsvm_budget_points {
    int32_t real_size;
    int64_t form;  // of the rows, SLIMSVM_INNER ...; with SLIMSVM_GIVEN points are positions in a row of kernel values
    int64_t code;  // map, SLIMSVM_EXP2 ...
    int64_t degree;          // of the map SLIMSVM_POWER
    int64_t n_features;      // numbers of a point
    int64_t n_values;        // numbers in the panels
    int64_t n_slots;         // slots, whole panels
    int64_t n_rows;          // training rows
    int64_t n_inverse;       // n_slots where a rule keeps the inverse, else 0
    int64_t m;               // outputs
    const void* ratio;       // real (n_features) a point's number over a row's
    const double* diagonal;  // (n_rows) k(x, x) of each row
    void* panels;            // real (n_values) the points
    void* base;              // real (n_slots) h of each point
    double* own;             // (n_slots) k(p, p) of each point
    double* beta;            // (m, n_slots) coefficients, 0 in slots that are not used
    int64_t* origin;         // (n_slots) in -1..n_rows the row that a point is, or -1
    int32_t* slot_of;        // (n_rows) in -1..n_slots the slot of each row, or -1
    int64_t* used;           // (1) slots that are used
    double* inverse;         // (n_inverse, n_inverse) of the points' kernel matrix
    double* sums;            // (m, n_slots) for the mean
    double* mean;            // (m + 2) for the mean
    double* least;           // (1) no |beta| of a single output is below
    void* x;                 // real (n_features) scratch
    void* y;                 // real (n_features) scratch
    void* k;                 // real (n_slots) scratch: kernel values
    double* v;               // (n_slots) scratch
    double* step;            // (2, m) scratch
};

/* What makes room where there are too many points. */
struct slimsvm_budget_rule {
    int64_t code;        // as in budget/rules.h
    int64_t max_points;  // points that may stay
    int64_t pairs;       // mergers at a time
    double contrast;     // points of two signs merge where one weighs this many times the other: 2 or more
    const float* table;  // (601, 201, 2)? of mergers, from fill_merge_table; golden section where there is none
};

/* One step on each of the rows `index`, at `places` of `rows`, in that order. alpha: the dual variables of all rows,
 * which change; nothing for the primal method; where no steps are described, the coefficients that each row comes in
 * with. Counts are those of slimsvm.budget.Counts. */
struct slimsvm_take_steps_call {
    const struct slimsvm_row_steps* steps;       // ?
    const struct slimsvm_rows* rows;             // folded rows, or kernel values
    const struct slimsvm_budget_points* points;  // the model, which changes
    const struct slimsvm_budget_rule* rule;      // what keeps it within the budget
    int64_t n;                                   // steps
    int64_t m;                                   // outputs
    int64_t n_alpha;                             // rows of alpha
    const int64_t* index;                        // (n) in 0..points.n_rows training rows
    const int64_t* places;                       // (n) in 0..rows.n where they are in `rows`
    double* alpha;                               // (n_alpha, m)
    double* intercept;                           // (m)
    int64_t* t;                                  // (2) steps so far, points taken away so far
    double* counts;                              // (10)
};

/* Every point with coefficients 0 goes. */
struct slimsvm_drop_idle_call {
    const struct slimsvm_budget_points* points;  // the model, which changes
};

/* The columns lo, ..., hi - 1 of a table of mergers. table[i, j]: the root of what a merger loses over the lighter
 * mass, and the place of the new point, for the share u = i / 400 - 1 of the lighter point and the kernel value j /
 * 200. */
struct slimsvm_fill_merge_table_call {
    int64_t lo;    // first column
    int64_t hi;    // one past the last
    float* table;  // (601, 201, 2)
};

/* What the rule makes of pairs of points, for tests: masses a <= b, cosine of their coefficients, kernel value
 * 2^exponent. By golden section the place of the new point and the squared norm kept there; by the table the root of
 * the loss over a, and the place after a Newton step, with what is left there of b and a; what a light point would lose
 * at this kernel value, and the least kernel value at which one loses no more. */
struct slimsvm_merge_pairs_call {
    int64_t n;               // pairs
    const float* table;      // (601, 201, 2)
    const double* a;         // (n)
    const double* b;         // (n)
    const double* cosine;    // (n)
    const double* exponent;  // (n)
    double* place;           // (n)
    double* kept;            // (n)
    double* loss;            // (n)
    double* polished;        // (n, 3)
    double* light;           // (n)
    double* nearness;        // (n)
};

/* The smallest slot r of one output, and the slot that a merger with it costs least by the table, or -1, for tests; v
 * of the points then has what each merger loses, infinite where two are not merged. */
struct slimsvm_merge_search_call {
    const struct slimsvm_budget_points* points;  // the model
    const struct slimsvm_budget_rule* rule;      // merging, one pair at a time
    int64_t r;                                   // ->
    int64_t partner;                             // ->
};

/* The place of the greatest of the first n numbers, which are positive, 0 or -1, and the greatest of the others, -1 if
 * none is above, for tests. */
struct slimsvm_greatest_two_call {
    int32_t real_size;
    int64_t n;           // numbers; argument
    int64_t n_values;    // whole panels of them
    int64_t place;       // ->
    double other;        // ->
    const void* values;  // real (n_values)
};

/* ---------------------------------------------------------------- structured */

/* Linear chains: the sequences `first`, ..., `last` - 1, of which e has the rows offsets[e], ..., offsets[e + 1] - 1.
 * plain: transitions (k, k) row by row, start (k), end (k).
 * The loss-augmented argmax of every sequence: labels of losses delta, coefficients over scores and plain parameters.
 */
struct slimsvm_augment_chains_call {
    int64_t n;               // rows
    int64_t k;               // labels
    int64_t p;               // plain parameters
    int64_t n_examples;      // sequences
    int64_t loss;            // SLIMSVM_HAMMING or SLIMSVM_ZERO_ONE
    int64_t first;           // first sequence
    int64_t last;            // the one after the last
    int64_t n_workspace;     // bytes of workspace
    const int64_t* labels;   // (n) in 0..k
    const int64_t* offsets;  // (n_examples + 1) offsets to n
    const double* scores;    // (n, k)
    const double* plain;     // (p)
    double* delta;           // (n_examples)
    double* coef;            // (n, k)
    double* part;            // (n_examples, p)
    uint8_t* workspace;      // (n_workspace) scratch
};

/* The weighted losses at base + step times direction, and their slope in step. */
struct slimsvm_chains_along_call {
    int64_t n;                      // rows
    int64_t k;                      // labels
    int64_t p;                      // plain parameters
    int64_t n_examples;             // sequences
    int64_t loss;                   // SLIMSVM_HAMMING or SLIMSVM_ZERO_ONE
    int64_t first;                  // first sequence
    int64_t last;                   // the one after the last
    int64_t n_threads;              // threads
    int64_t n_workspace;            // bytes of workspace
    double step;                    // step
    const int64_t* labels;          // (n) in 0..k
    const int64_t* offsets;         // (n_examples + 1) offsets to n
    const double* weights;          // (n_examples)
    const double* base;             // (n, k)
    const double* base_plain;       // (p)
    const double* direction;        // (n, k)
    const double* direction_plain;  // (p)
    uint8_t* workspace;             // (n_workspace) scratch
    double value;                   // -> the losses
    double slope;                   // -> their slope
};

/* The labels of the greatest score of every sequence. */
struct slimsvm_decode_chains_call {
    int64_t n;               // rows
    int64_t k;               // labels
    int64_t p;               // plain parameters
    int64_t n_examples;      // sequences
    int64_t first;           // first sequence
    int64_t last;            // the one after the last
    int64_t n_workspace;     // bytes of workspace
    const int64_t* offsets;  // (n_examples + 1) offsets to n
    const double* scores;    // (n, k)
    const double* plain;     // (p)
    int64_t* labels;         // (n)
    uint8_t* workspace;      // (n_workspace) scratch
};

/* For falling scores of both classes: the numbers a of positives that stay positive and b of negatives that become so
 * of the greatest worth 1 - F + (sums of scores) / n, F = (1 + beta_squared) a / (beta_squared P + a + b). Up to
 * max_steps values of a are tried, from `at` on; at first at = 0. kept and flipped: sums of the highest scores. */
struct slimsvm_best_f_table_call {
    int64_t P;                // positives
    int64_t Q;                // negatives
    int64_t max_steps;        // steps
    double beta_squared;      // weight of recall
    const double* positives;  // (P)
    const double* negatives;  // (Q)
    double* kept;             // (P + 1)
    double* flipped;          // (Q + 1)
    int64_t at;               // <-> next a; P + 1: all are done
    int64_t a;                // <-> the best so far
    int64_t b;                // <-> the best so far
    double worth;             // <-> the best so far
};

/* The same among the tables of k positives in all for the loss 1 - a / per; worth is above that of no change. */
struct slimsvm_best_table_at_k_call {
    int64_t P;                // positives
    int64_t Q;                // negatives
    int64_t k;                // predicted positives
    int64_t per;              // what a is counted per
    const double* positives;  // (P)
    const double* negatives;  // (Q)
    double* kept;             // (P + 1)
    double* flipped;          // (Q + 1)
    int64_t a;                // -> true positives
    double worth;             // -> worth
};

/* coef[i] = y_i / n where the labelling of the table (a, b) differs from y: the a positives and the b negatives of the
 * highest scores are positive, of equal scores the last rows. */
struct slimsvm_table_coefficients_call {
    int64_t n;                // rows
    int64_t P;                // positives
    int64_t Q;                // negatives
    int64_t a;                // positives that stay positive
    int64_t b;                // negatives that become positive
    const int8_t* labels;     // (n) -1 or +1
    const double* scores;     // (n, 1)
    const double* positives;  // (P) falling scores
    const double* negatives;  // (Q) falling scores
    double* coef;             // (n, 1)
};

/* Rankings of positive above negative rows, both by rising score: a pair is swapped where s_+ - s_- <= 1. coef[i] is
 * the share of the pairs that are swapped and have the row i, negative for negative rows. */
struct slimsvm_augment_roc_call {
    int64_t n;                 // rows
    int64_t P;                 // positives
    int64_t Q;                 // negatives
    const int64_t* positives;  // (P) in 0..n rows
    const int64_t* negatives;  // (Q) in 0..n rows
    const double* scores;      // (n, 1)
    double* coef;              // (n, 1)
    double share;              // -> swapped pairs
};

/* Queries are ranges of rows. out: the rows of each query in the order that `order` has for all rows. */
struct slimsvm_order_in_queries_call {
    int64_t n;               // rows
    int64_t n_queries;       // queries
    const int64_t* order;    // (n) in 0..n
    const int64_t* query;    // (n) in 0..n_queries
    const int64_t* offsets;  // (n_queries + 1) offsets to n
    int64_t* place;          // (n_queries) scratch
    int64_t* out;            // (n)
};

/* Rankings of the rows of the queries `first`, ..., `last` - 1, `order` by rising score: a pair of grades g_i > g_j is
 * swapped where s_i - s_j <= 1. Grades of a query are 0, 1, 2, ..., none left out. */
struct slimsvm_augment_swaps_call {
    int64_t n;               // rows
    int64_t n_queries;       // queries
    int64_t first;           // first query
    int64_t last;            // the one after the last
    int64_t n_workspace;     // bytes of workspace
    const int64_t* grades;   // (n) in 0..n
    const int64_t* offsets;  // (n_queries + 1) offsets to n
    const int64_t* order;    // (n) in 0..n
    const double* scores;    // (n, 1)
    double* delta;           // (n_queries)
    double* coef;            // (n, 1)
    uint8_t* workspace;      // (n_workspace) scratch
};

/* The ranking of the greatest 1 - AP - <coef, scores>; relevance is 0 or 1, `order` by falling score. */
struct slimsvm_augment_average_precision_call {
    int64_t n;                 // rows
    int64_t n_queries;         // queries
    int64_t first;             // first query
    int64_t last;              // the one after the last
    int64_t n_workspace;       // bytes of workspace
    const int64_t* relevance;  // (n) in 0..2
    const int64_t* offsets;    // (n_queries + 1) offsets to n
    const int64_t* order;      // (n) in 0..n
    const double* scores;      // (n, 1)
    double* delta;             // (n_queries)
    double* coef;              // (n, 1)
    uint8_t* workspace;        // (n_workspace) scratch
};

/* Share of each query's pairs that are ranked the wrong way round, ties half; NaN where there is no pair. */
struct slimsvm_swapped_shares_call {
    int64_t n;                // rows
    int64_t n_queries;        // queries
    int64_t first;            // first query
    int64_t last;             // the one after the last
    int64_t n_workspace;      // bytes of workspace
    const int64_t* grades;    // (n) in 0..n
    const int64_t* offsets;   // (n_queries + 1) offsets to n
    const int64_t* order;     // (n) in 0..n
    const double* predicted;  // (n)
    double* shares;           // (n_queries)
    uint8_t* workspace;       // (n_workspace) scratch
};

/* Every function, once: the library makes its table from this list. */
#define SLIMSVM_FUNCTIONS(F)     \
    F(fold_rows)                 \
    F(fold_csr)                  \
    F(pack_dense)                \
    F(pack_csr)                  \
    F(add_rows)                  \
    F(cut_weights)               \
    F(scores)                    \
    F(map_with_slopes)           \
    F(sum_rows)                  \
    F(sum_terms)                 \
    F(score_rows)                \
    /* losses */                 \
    F(augment_rows)              \
    F(losses_along)              \
    F(smooth_losses)             \
    F(fit_log_odds)              \
    F(decode_ordinal)            \
    F(move_scores)               \
    /* structured */             \
    F(augment_chains)            \
    F(chains_along)              \
    F(decode_chains)             \
    F(best_f_table)              \
    F(best_table_at_k)           \
    F(table_coefficients)        \
    F(augment_roc)               \
    F(order_in_queries)          \
    F(augment_swaps)             \
    F(augment_average_precision) \
    F(swapped_shares)            \
    /* cuts */                   \
    F(maximise_on_simplex)       \
    F(keep_on_simplex)           \
    F(combine_products)          \
    F(gram_row)                  \
    F(sparse_product)            \
    F(add_planes)                \
    F(forget_planes)             \
    F(sum_planes)                \
    F(step_by_kernel)            \
    F(step_by_weights)           \
    F(multiply_examples)         \
    /* decomposition */          \
    F(smo)                       \
    F(smo_sets)                  \
    F(set_norms)                 \
    F(span_distances)            \
    F(put_kernel_rows)           \
    F(gather_kernel_rows)        \
    F(subtract_kernel_rows)      \
    F(keep_columns)              \
    F(lasvm_learn)               \
    F(lasvm_reprocess)           \
    F(lasvm_evict)               \
    F(ascend_classes)            \
    /* budget */                 \
    F(ascend)                    \
    F(ascend_linear)             \
    F(ascend_sparse)             \
    F(take_steps)                \
    F(drop_idle)                 \
    F(fill_merge_table)          \
    F(merge_pairs)               \
    F(merge_search)              \
    F(greatest_two)              \
    /* gradients */              \
    F(descend)                   \
    F(batch_gradient)            \
    F(batch_scores)              \
    F(adam_step)                 \
    /* span */                   \
    F(multiply_rows)             \
    F(add_squares)               \
    F(multiply_wide)             \
    F(multiply_transposed)       \
    F(greedy_picks)              \
    F(add_pivot)                 \
    /* end */

#define SLIMSVM_DECLARE(name) SLIMSVM_API int32_t slimsvm_##name(struct slimsvm_##name##_call* call);
SLIMSVM_FUNCTIONS(SLIMSVM_DECLARE)
#undef SLIMSVM_DECLARE

#ifdef __cplusplus
}
#endif

#endif
