// Planes are entered, forgotten, and added up.
#include "cuts/planes.h"

namespace slimsvm::SLIMSVM_ISA {

namespace {

int64_t n_nonzero(const double* numbers, int64_t n) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) count += numbers[i] != 0.0;
    return count;
}

// Writes the entries of one found plane behind those there are; returns where they end.
int64_t write_entries(const struct slimsvm_add_planes_call& call, int64_t j, int64_t q) {
    const struct slimsvm_planes& store = *call.planes;
    const int64_t m = call.m, start = call.starts[j];
    for (int64_t i = start; i < call.starts[j + 1]; ++i)
        for (int64_t c = 0; c < m; ++c) {
            if (call.coef[i * m + c] == 0.0) continue;
            store.row[q] = int32_t(i - start);
            store.column[q] = int32_t(c);
            store.value[q++] = call.coef[i * m + c];
        }
    for (int64_t c = 0; c < call.n_plain; ++c) {
        if (call.part[j * call.n_plain + c] == 0.0) continue;
        store.row[q] = -1;
        store.column[q] = int32_t(c);
        store.value[q++] = call.part[j * call.n_plain + c];
    }
    return q;
}

// Whether the entries lo, ..., hi - 1 with this constant are plane k.
bool is_same(const struct slimsvm_planes& store, int64_t k, double constant, int64_t lo, int64_t hi) {
    const int64_t first = store.where[k];
    if (store.constant[k] != constant || store.where[k + 1] - first != hi - lo) return false;
    for (int64_t q = 0; q < hi - lo; ++q)
        if (store.row[lo + q] != store.row[first + q] || store.column[lo + q] != store.column[first + q] ||
            store.value[lo + q] != store.value[first + q])
            return false;
    return true;
}

}  // namespace

int32_t add_planes(struct slimsvm_add_planes_call* call) {
    const struct slimsvm_planes& store = *call->planes;
    const Planes planes(store);
    if (!planes.is_sound() || store.room - 1 - planes.n_planes() < call->n_index) return SLIMSVM_BAD_ARGUMENT;
    for (int64_t j = 0; j < call->n_index; ++j)
        if (!planes.each(call->index[j], [](int64_t) {})) return SLIMSVM_BAD_ARGUMENT;
    const int64_t needed =
        n_nonzero(call->coef, call->n_rows * call->m) + n_nonzero(call->part, call->n_index * call->n_plain);
    call->n_missing = most(int64_t(0), needed - (store.entry_room - planes.n_entries()));
    if (call->n_missing > 0) return SLIMSVM_OK;
    for (int64_t j = 0; j < call->n_index; ++j) {
        const int64_t e = call->index[j], k = store.n[0], lo = store.n[1], hi = write_entries(*call, j, lo);
        bool is_new = hi > lo;
        planes.each(e, [&](int64_t other) { is_new = is_new && !is_same(store, other, call->delta[j], lo, hi); });
        if (!is_new) continue;
        store.where[k] = lo;
        store.where[k + 1] = hi;
        store.constant[k] = call->delta[j];
        store.alpha[k] = 0.0;
        store.idle[k] = 0;
        store.following[k] = store.first[e];
        store.first[e] = k;
        store.n[0] = k + 1;
        store.n[1] = hi;
    }
    return SLIMSVM_OK;
}

int32_t forget_planes(struct slimsvm_forget_planes_call* call) {
    const struct slimsvm_planes& store = *call->planes;
    const Planes planes(store);
    if (!planes.is_sound()) return SLIMSVM_BAD_ARGUMENT;
    const int64_t before = planes.n_planes();
    const int64_t bytes = before * int64_t(sizeof(int64_t)) + ALIGNMENT;
    if (call->n_workspace < bytes) return needs_workspace(*call, bytes);
    int64_t* example = aligned<int64_t>(call->workspace);
    for (int64_t k = 0; k < before; ++k) {
        // The planes fill the entries from the first one on, each in one list.
        if (!planes.is_plane(k) || (k == 0 && store.where[0] != 0)) return SLIMSVM_BAD_ARGUMENT;
        example[k] = -1;
    }
    int64_t listed = 0;
    for (int64_t e = 0; e < store.n_examples; ++e) {
        bool is_listed_once = true;
        const auto visit = [&](int64_t k) {
            is_listed_once = is_listed_once && example[k] < 0;
            example[k] = e;
            ++listed;
        };
        if (!planes.each(e, visit) || !is_listed_once) return SLIMSVM_BAD_ARGUMENT;
    }
    if (listed != before) return SLIMSVM_BAD_ARGUMENT;
    for (int64_t e = 0; e < store.n_examples; ++e) store.first[e] = -1;
    int64_t k = 0, q = 0;
    for (int64_t j = 0, lo = 0, hi = 0; j < before; ++j) {
        lo = hi;
        hi = store.where[j + 1];
        store.idle[j] = store.alpha[j] == 0.0 ? store.idle[j] + 1 : 0;
        if (store.idle[j] > call->max_idle) continue;
        for (int64_t at = lo; at < hi; ++at, ++q) {
            store.row[q] = store.row[at];
            store.column[q] = store.column[at];
            store.value[q] = store.value[at];
        }
        store.constant[k] = store.constant[j];
        store.alpha[k] = store.alpha[j];
        store.idle[k] = store.idle[j];
        store.where[k + 1] = q;
        store.following[k] = store.first[example[j]];
        store.first[example[j]] = k++;
    }
    store.n[0] = k;
    store.n[1] = q;
    return SLIMSVM_OK;
}

int32_t sum_planes(struct slimsvm_sum_planes_call* call) {
    const struct slimsvm_planes& store = *call->planes;
    const struct slimsvm_blocks& blocks = *call->blocks;
    const Planes planes(store);
    if (!planes.is_sound() || blocks.n_examples != store.n_examples || blocks.n_rows != call->n_rows)
        return SLIMSVM_BAD_ARGUMENT;
    for (int64_t e = 0; e < store.n_examples; ++e) {
        const int64_t start = blocks.starts[e], length = blocks.starts[e + 1] - start;
        bool fits = true;
        const auto add = [&](int64_t k) {
            const double alpha = store.alpha[k];
            fits = fits && planes.fits(k, length, call->m, call->n_plain);
            if (!fits || alpha == 0.0) return;
            for (int64_t q = store.where[k]; q < store.where[k + 1]; ++q) {
                const bool is_plain = store.row[q] < 0;
                double* sum = is_plain ? call->plain : call->coef + (start + store.row[q]) * call->m;
                sum[store.column[q]] += alpha * store.value[q];
            }
        };
        if (!planes.each(e, add) || !fits) return SLIMSVM_BAD_ARGUMENT;
    }
    return SLIMSVM_OK;
}

}  // namespace slimsvm::SLIMSVM_ISA
