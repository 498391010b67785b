/* The library's own test, for platforms without Python: scores, products and a small optimum against plain loops, the
 * same bits from any number of threads, and bad arguments refused. Goes through slimsvm.h only; ends with 0 if all is
 * right.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slimsvm.h"

static int failures = 0;

static void check(int is_right, const char* what) {
    if (is_right) return;
    printf("failed: %s\n", what);
    ++failures;
}

/* Numbers from -1 to 1, the same on every platform. */
static double draw(void) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(state >> 11) / 4503599627370496.0 - 1.0;
}

static void* zeros(int64_t n, size_t size) {
    void* memory = calloc(n > 0 ? (size_t)n : 1, size);
    if (!memory) exit(2);
    return memory;
}

static double* draws(int64_t n) {
    double* numbers = zeros(n, sizeof(double));
    for (int64_t i = 0; i < n; ++i) numbers[i] = draw();
    return numbers;
}

/* Calls a function that may ask for a workspace first. */
#define CALL(name, call)                                                   \
    do {                                                                   \
        int32_t status = slimsvm_##name(&(call));                          \
        if (status == SLIMSVM_NEEDS_WORKSPACE) {                           \
            (call).workspace = zeros((call).n_workspace, 1);               \
            status = slimsvm_##name(&(call));                              \
            free((call).workspace);                                        \
        }                                                                  \
        check(status == SLIMSVM_OK, #name ": a call that should be done"); \
    } while (0)

/* ---------------------------------------------------------------- scores */

enum { N = 301, K = 77, D = 13, M = 3 };

/* Folded rows of N or K, in numbers of `size` bytes. */
struct folded {
    void *values, *half;
    double* factor;
};

static struct folded fold(const double* raw, int64_t n, int32_t size) {
    static double centre[D], ones[D];
    for (int c = 0; c < D; ++c) centre[c] = 0.1 * c, ones[c] = 1.0;
    struct folded rows = {zeros(n * D, size), zeros(n, size), zeros(n, sizeof(double))};
    struct slimsvm_fold_rows_call call = {0};
    call.real_size = size, call.raw_size = 8, call.n = n, call.d = D, call.norm = SLIMSVM_SQUARED;
    call.scale = size == 4 ? 0.9999998689950266 : 1.0;
    call.raw = raw, call.centre = centre, call.feature_scale = ones;
    call.out = rows.values, call.half = rows.half, call.factor = rows.factor;
    check(slimsvm_fold_rows(&call) == SLIMSVM_OK && call.n_far == 0, "fold_rows");
    return rows;
}

static double number(const void* numbers, int64_t i, int32_t size) {
    return size == 4 ? (double)((const float*)numbers)[i] : ((const double*)numbers)[i];
}

static void set_number(void* numbers, int64_t i, int32_t size, double value) {
    if (size == 4)
        ((float*)numbers)[i] = (float)value;
    else
        ((double*)numbers)[i] = value;
}

/* sum_j 2^(-|x - p_j|^2 / 2) coef[j, c] by loops, and by the library with 1 and with 5 threads. */
static void test_scores(int32_t size) {
    double *X = draws(N * D), *P = draws(K * D), *coef = draws(K * M);
    struct folded rows = fold(X, N, size), points = fold(P, K, size);
    const int64_t panel = slimsvm_panel_bytes() / size, n_panels = (K + panel - 1) / panel, n_entries = n_panels + 1;

    struct slimsvm_rows folded_rows = {0};
    folded_rows.real_size = size, folded_rows.n = N, folded_rows.n_features = D, folded_rows.n_values = N * D;
    folded_rows.values = rows.values, folded_rows.half = rows.half, folded_rows.factor = rows.factor;

    struct slimsvm_pack_dense_call pack = {0};
    pack.real_size = size, pack.k = K, pack.d = D, pack.n_values = n_panels * panel * D;
    pack.values = points.values, pack.panels = zeros(pack.n_values, size);
    check(slimsvm_pack_dense(&pack) == SLIMSVM_OK, "pack_dense");
    void* base = zeros(n_panels * panel, size);
    memcpy(base, points.half, (size_t)(K * size));
    struct slimsvm_points packed = {0};
    packed.real_size = size, packed.form = SLIMSVM_INNER, packed.n_features = D, packed.n_slots = n_panels * panel;
    packed.n_values = pack.n_values, packed.panels = pack.panels, packed.base = base;

    const int64_t offsets[2] = {0, K};
    void* narrow = zeros(K * M, size);
    for (int64_t i = 0; i < K * M; ++i) set_number(narrow, i, size, coef[i]);
    struct slimsvm_cut_weights_call cut = {0};
    cut.real_size = size, cut.k = K, cut.m = M, cut.n_offsets = 2, cut.n_first = n_panels + 1,
    cut.n_entries = n_entries;
    cut.n_values = n_entries * M * panel, cut.coef = narrow, cut.offsets = offsets;
    cut.values = zeros(cut.n_values, size), cut.first = zeros(cut.n_first, 8), cut.segments = zeros(n_entries, 8);
    check(slimsvm_cut_weights(&cut) == SLIMSVM_OK, "cut_weights");
    struct slimsvm_weights weights = {0};
    weights.real_size = size, weights.n_segments = 1, weights.n_outputs = M, weights.n_values = cut.n_values;
    weights.n_first = cut.n_first, weights.n_entries = n_entries;
    weights.values = cut.values, weights.first = cut.first, weights.segments = cut.segments;

    void* out[2];
    const int64_t before = slimsvm_times_shared();
    for (int i = 0; i < 2; ++i) {
        struct slimsvm_scores_call call = {0};
        call.real_size = size, call.rows = &folded_rows, call.points = &packed, call.weights = &weights;
        call.n = N, call.columns = M, call.code = SLIMSVM_EXP2, call.degree = 1, call.n_threads = i ? 5 : 1;
        call.microseconds = 1e6, call.out = out[i] = zeros(N * M, size);
        CALL(scores, call);
        call.workspace = NULL, call.columns = M + 1;
        check(slimsvm_scores(&call) == SLIMSVM_BAD_ARGUMENT, "scores: a column too many");
    }
    check(slimsvm_times_shared() > before, "scores: work is shared");
    check(memcmp(out[0], out[1], (size_t)(N * M * size)) == 0, "scores: the same bits from 1 and 5 threads");
    double worst = 0.0;
    for (int64_t i = 0; i < N; ++i)
        for (int64_t c = 0; c < M; ++c) {
            double sum = 0.0;
            for (int64_t j = 0; j < K; ++j) {
                double squares = 0.0;
                for (int64_t f = 0; f < D; ++f) squares += pow(X[i * D + f] - P[j * D + f], 2.0);
                sum += exp2(-0.5 * squares) * coef[j * M + c];
            }
            worst = fmax(worst, fabs(sum - number(out[0], i * M + c, size)));
        }
    check(worst < (size == 4 ? 1e-5 : 1e-13), size == 4 ? "scores in float" : "scores in double");
}

/* ---------------------------------------------------------------- products */

static void test_products(void) {
    enum { ROWS = 5000, COLUMNS = 7 };
    double *values = draws(ROWS * COLUMNS), *coef = draws(ROWS * M), *out[2];
    for (int i = 0; i < 2; ++i) {
        struct slimsvm_multiply_transposed_call call = {0};
        call.real_size = 8, call.n = ROWS, call.k = COLUMNS, call.m = M, call.stride = COLUMNS;
        call.n_threads = i ? 7 : 1, call.microseconds = 1e6;
        call.values = values, call.coef = coef, call.out = out[i] = zeros(COLUMNS * M, 8);
        CALL(multiply_transposed, call);
    }
    check(memcmp(out[0], out[1], sizeof(double) * COLUMNS * M) == 0, "products: the same bits from 1 and 7 threads");
    for (int j = 0; j < COLUMNS; ++j)
        for (int c = 0; c < M; ++c) {
            double sum = 0.0;
            for (int i = 0; i < ROWS; ++i) sum += values[i * COLUMNS + j] * coef[i * M + c];
            check(fabs(sum - out[0][j * M + c]) < 1e-10, "products");
        }
}

/* ---------------------------------------------------------------- an optimum */

/* max 2 a - a^2 / 2 over 0 <= a <= bound, v = (a, -a). */
static void test_smo(double bound, double best) {
    const double values[4] = {1.0, 0.5, 0.5, 1.0}, lo[2] = {0.0, -bound}, hi[2] = {bound, 0.0};
    const int64_t slots[2] = {0, 1};
    double g[2] = {1.0, -1.0}, v[2] = {0.0, 0.0};
    struct slimsvm_smo_call call = {0};
    call.real_size = 8, call.n = 2, call.n_kernel_rows = 2, call.width = 2, call.balanced = 1, call.max_steps = 100;
    call.tol = 1e-12, call.values = values, call.slots = slots, call.lo = lo, call.hi = hi, call.g = g, call.v = v;
    CALL(smo, call);
    check(fabs(v[0] - best) < 1e-12 && fabs(v[1] + best) < 1e-12, "smo: the optimum");
    check(fabs(call.gain - (2.0 * best - 0.5 * best * best)) < 1e-12, "smo: the gain");
}

/* ---------------------------------------------------------------- the library itself */

static void test_searches(void) {
    int64_t wide[600];
    int32_t narrow[600];
    for (int i = 0; i < 600; ++i) wide[i] = narrow[i] = i;
    check(slimsvm_find_outside(wide, 8, 600, 0, 600) == -1, "find_outside: none");
    check(slimsvm_find_outside(narrow, 4, 600, 0, 599) == 599, "find_outside: the last");
    check(slimsvm_find_outside(narrow, 4, 600, 1, 600) == 0, "find_outside: the first");
    check(slimsvm_find_outside(wide, 8, 0, 0, 0) == -1, "find_outside: of none");
    check(slimsvm_find_fall(wide, 8, 600, 599) == -1, "find_fall: none");
    check(slimsvm_find_fall(wide, 8, 600, 598) == 599, "find_fall: above the last");
    wide[300] = 0;
    check(slimsvm_find_fall(wide, 8, 600, 599) == 300, "find_fall: a fall");
    wide[0] = -1;
    check(slimsvm_find_fall(wide, 8, 600, 599) == 0, "find_fall: below 0");
}

int main(void) {
    printf("%s, %d bytes a vector\n", slimsvm_isa(), (int)slimsvm_vector_bytes());
    check(strlen(slimsvm_abi()) == 64, "abi");
    check(strcmp(slimsvm_status_text(SLIMSVM_OK), "done") == 0, "status_text");
    slimsvm_share_from(0.0, 0.0);
    test_searches();
    test_scores(4);
    test_scores(8);
    test_products();
    test_smo(1.0, 1.0);
    test_smo(10.0, 2.0);
    return failures != 0;
}
