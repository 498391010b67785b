// Rows and points, folded and laid out for the register tiles.
#include "rows/folding.h"
#include "simd/tiles.h"
#include "slimsvm.h"
#include "support/call.h"

namespace slimsvm::SLIMSVM_ISA {

namespace {

template <class T, class Raw>
void fold_rows_of(struct slimsvm_fold_rows_call& call) {
    call.n_far =
        fold_rows<Raw, T>(static_cast<const Raw*>(call.raw), call.centre, call.feature_scale, call.norm, call.scale,
                          call.n, call.d, static_cast<T*>(call.out), static_cast<T*>(call.half), call.factor);
}

template <class T, class Raw, class Index>
void fold_csr_of(const struct slimsvm_fold_csr_call& call) {
    const Raw* raw = static_cast<const Raw*>(call.raw);
    const Index* columns = static_cast<const Index*>(call.columns);
    T* out = static_cast<T*>(call.out);
    T* half = static_cast<T*>(call.half);
    for (int64_t i = 0; i < call.n; ++i) {
        double minus_h = 0.0;
        for (int64_t t = call.indptr[i]; t < call.indptr[i + 1]; ++t) {
            const int64_t c = call.n_scales == 1 ? 0 : int64_t(columns[t]);
            out[t] = T(double(raw[t]) * call.feature_scale[c]);
            const double value = double(out[t]);
            minus_h += call.norm == SLIMSVM_ABSOLUTE ? fabs(value) : 0.5 * value * value;
        }
        call.factor[i] = minus_h;
    }
    if (!finish_folding<T>(call.norm, call.scale, call.n, half, call.factor)) return;
    for (int64_t i = 0; i < call.n; ++i)
        if (call.factor[i] == 0.0)
            for (int64_t t = call.indptr[i]; t < call.indptr[i + 1]; ++t) out[t] = 0;
}

template <class Index>
bool within(const void* columns, int64_t n, int64_t bound) {
    for (int64_t t = 0; t < n; ++t)
        if (static_cast<const Index*>(columns)[t] < 0 || static_cast<const Index*>(columns)[t] >= bound) return false;
    return true;
}

template <class T>
void pack_dense_of(const struct slimsvm_pack_dense_call& call) {
    const T* values = static_cast<const T*>(call.values);
    T* panels = static_cast<T*>(call.panels);
    for (int64_t j = 0; j < call.k; ++j) {
        T* place = panels + j / PANEL<T> * PANEL<T> * call.d + j % PANEL<T>;
        for (int64_t c = 0; c < call.d; ++c) place[c * PANEL<T>] = values[j * call.d + c];
    }
}

template <class T, class Index>
void pack_csr_of(const struct slimsvm_pack_csr_call& call) {
    const T* values = static_cast<const T*>(call.values);
    const Index* columns = static_cast<const Index*>(call.columns);
    T* panels = static_cast<T*>(call.panels);
    for (int64_t j = 0; j < call.k; ++j) {
        T* place = panels + j / PANEL<T> * PANEL<T> * call.n_features + j % PANEL<T>;
        for (int64_t t = call.indptr[j]; t < call.indptr[j + 1]; ++t) place[int64_t(columns[t]) * PANEL<T>] = values[t];
    }
}

}  // namespace

int32_t fold_rows(struct slimsvm_fold_rows_call* call) {
    if (call->real_size == 4)
        call->raw_size == 4 ? fold_rows_of<float, float>(*call) : fold_rows_of<float, double>(*call);
    else
        call->raw_size == 4 ? fold_rows_of<double, float>(*call) : fold_rows_of<double, double>(*call);
    return SLIMSVM_OK;
}

int32_t fold_csr(struct slimsvm_fold_csr_call* call) {
    const bool is_narrow = call->whole_size == 4;
    if (call->n_scales < 1) return SLIMSVM_BAD_ARGUMENT;
    if (call->n_scales > 1 && !(is_narrow ? within<int32_t>(call->columns, call->n_values, call->n_scales)
                                          : within<int64_t>(call->columns, call->n_values, call->n_scales)))
        return SLIMSVM_BAD_ARGUMENT;
    if (call->real_size == 4 && call->raw_size == 4)
        is_narrow ? fold_csr_of<float, float, int32_t>(*call) : fold_csr_of<float, float, int64_t>(*call);
    else if (call->real_size == 4)
        is_narrow ? fold_csr_of<float, double, int32_t>(*call) : fold_csr_of<float, double, int64_t>(*call);
    else if (call->raw_size == 4)
        is_narrow ? fold_csr_of<double, float, int32_t>(*call) : fold_csr_of<double, float, int64_t>(*call);
    else
        is_narrow ? fold_csr_of<double, double, int32_t>(*call) : fold_csr_of<double, double, int64_t>(*call);
    return SLIMSVM_OK;
}

int32_t pack_dense(struct slimsvm_pack_dense_call* call) {
    const int64_t panel = call->real_size == 4 ? PANEL<float> : PANEL<double>;
    if (call->n_values < divide_up(call->k, panel) * panel * call->d) return SLIMSVM_BAD_ARGUMENT;
    call->real_size == 4 ? pack_dense_of<float>(*call) : pack_dense_of<double>(*call);
    return SLIMSVM_OK;
}

int32_t pack_csr(struct slimsvm_pack_csr_call* call) {
    const int64_t panel = call->real_size == 4 ? PANEL<float> : PANEL<double>;
    if (!holds(call->n_values, divide_up(call->k, panel) * panel, call->n_features)) return SLIMSVM_BAD_ARGUMENT;
    if (call->real_size == 4)
        call->whole_size == 4 ? pack_csr_of<float, int32_t>(*call) : pack_csr_of<float, int64_t>(*call);
    else
        call->whole_size == 4 ? pack_csr_of<double, int32_t>(*call) : pack_csr_of<double, int64_t>(*call);
    return SLIMSVM_OK;
}

int32_t add_rows(struct slimsvm_add_rows_call* call) {
    for (int64_t i = 0; i < call->n; ++i)
        for (int64_t c = 0; c < call->d; ++c)
            call->total[c] += call->raw_size == 4 ? double(static_cast<const float*>(call->rows)[i * call->d + c])
                                                  : static_cast<const double*>(call->rows)[i * call->d + c];
    return SLIMSVM_OK;
}

}  // namespace slimsvm::SLIMSVM_ISA
