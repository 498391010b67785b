// Vectors as the loops over them want them: dense ones in panels, a feature of `panel` vectors side by side.
#include "predict/model.h"

namespace slimsvm::predict {

namespace {

constexpr int64_t MOST_PANEL = 64;  // vectors side by side, on any instruction set

// Vectors first, ..., first + n - 1, that become one panel.
struct Part {
    int64_t first, n, panel;
    double sums[MOST_PANEL];  // of squares or magnitudes of their features
};

// z of a vector and a row of zeros.
double z_of_zeros(const Model& model, double sum) { return model.step == Step::INNER ? model.coef0 : -sum; }

template <class T>
double size_of(const Model& model, T p) {
    return model.step == Step::ABSOLUTE ? __builtin_fabs(double(p)) : double(p) * double(p);
}

// A feature of all vectors at a time: their sums do not wait for each other.
template <class T>
void lay_out_dense(const Model& model, T times, Part& part, T* out) {
    const double* vectors = model.dense + part.first * model.n_used;
    for (int64_t c = 0; c < model.n_used; ++c, out += part.panel)
        for (int64_t l = 0; l < part.n; ++l) {
            const T p = T(vectors[l * model.n_used + c] * model.folding[c]);
            out[l] = times * p;
            part.sums[l] += size_of(model, p);
        }
}

// No panel where `out` is null: of vectors that stay sparse only the sums.
template <class T>
void lay_out_sparse(const Model& model, T times, Part& part, T* out) {
    for (int64_t l = 0; l < part.n; ++l)
        for (int64_t t = model.starts[part.first + l]; t < model.starts[part.first + l + 1]; ++t) {
            const T p = T(model.values[t]);
            if (out) out[model.columns[t] * part.panel + l] = times * p;
            part.sums[l] += size_of(model, p);
        }
}

template <class T>
bool lay_out_vectors(Model& model, int64_t panel) {
    constexpr int64_t n_bytes = sizeof(T);
    const bool is_full = model.storage == Storage::PANELS;
    int64_t size;
    if (__builtin_add_overflow(model.n_vectors, panel - 1, &size)) return false;
    model.n_padded = size / panel * panel;
    if (__builtin_mul_overflow(model.n_padded, n_bytes, &size) || !model.norms.make(size) || !model.base.make(size) ||
        (is_full && (__builtin_mul_overflow(size, model.n_used, &size) || !model.panels.make(size))))
        return false;
    T *norms = reinterpret_cast<T*>(model.norms.data()), *base = reinterpret_cast<T*>(model.base.data());
    T* out = is_full ? reinterpret_cast<T*>(model.panels.data()) : nullptr;
    const T times = model.step == Step::SQUARED ? T(2) : T(1);
    for (int64_t first = 0; first < model.n_padded; first += panel) {
        const int64_t n_left = model.n_vectors - first;
        Part part = {first, n_left < panel ? n_left : panel, panel, {}};
        if (model.dense)
            lay_out_dense(model, times, part, out);
        else
            lay_out_sparse(model, times, part, out);
        for (int64_t l = 0; l < panel; ++l) {
            norms[first + l] = T(z_of_zeros(model, part.sums[l]));
            base[first + l] = T(z_of_zeros(model, 0.0));
        }
        if (out) out += model.n_used * panel;
    }
    return true;
}

// coef (n_vectors, n_outputs) to (n_outputs, n_padded).
bool turn_coefficients(Model& model) {
    Array<double> turned;
    int64_t size;
    if (__builtin_mul_overflow(model.n_outputs, model.n_padded, &size) || !turned.make(size)) return false;
    const int64_t n = model.storage == Storage::WEIGHTS ? model.n_used : model.n_vectors;
    for (int64_t j = 0; j < n; ++j)
        for (int64_t c = 0; c < model.n_outputs; ++c)
            turned[c * model.n_padded + j] = model.coef[j * model.n_outputs + c];
    model.coef.swap(turned);
    return true;
}

template <class T>
void drop(Array<T>& numbers) {
    Array<T>().swap(numbers);
}

// What the laid out vectors were made of.
void drop_given(Model& model) {
    model.dense = nullptr;
    drop(model.vectors);
    drop(model.folding);
    if (model.storage == Storage::SPARSE) return;
    drop(model.values);
    drop(model.starts);
    drop(model.columns);
}

}  // namespace

bool lay_out(Model& model) {
    if (model.storage == Storage::WEIGHTS)
        model.n_padded = model.n_used;
    else if (!(model.is_single ? lay_out_vectors<float>(model, model.functions->panel_of_floats)
                               : lay_out_vectors<double>(model, model.functions->panel_of_doubles)))
        return false;
    drop_given(model);
    return turn_coefficients(model);
}

}  // namespace slimsvm::predict
