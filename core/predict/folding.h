// Rows as a kernel sees them: scaled as in training, times the scales of their features, split into the features that
// vectors have and the others.
#pragma once

#include "predict/model.h"
#include "simd/reduce.h"

namespace slimsvm::SLIMSVM_ISA {

using predict::Model;
using predict::Rows;

// What runs once for each model or sequence is compiled for size.
#define SLIMSVM_SMALL __attribute__((cold, noinline))

// A folded row: its used features in `row`, and those of a CSR row also as a list.
template <class T>
struct Folded {
    T* row;
    T* values;
    int64_t* columns;
    int64_t n;
    bool has_list;
    double outside, norm;  // of features that no vector has, and of all: sums of squares or magnitudes
    int64_t index;         // of the row
};

// ---------------------------------------------------------------- entries of a row

// Some entries of a row, columns rising.
struct Entries {
    static constexpr int64_t MOST = 128;
    int64_t columns[MOST];
    double values[MOST];
    int64_t n;
};

// The entries lo, ..., lo + n - 1 of those stored for row i, as far as there are so many; the columns `shift` higher.
template <class X, class Index>
inline void take_entries(const Rows& rows, int64_t i, int64_t lo, int64_t shift, Entries& entries) {
    const X* values = static_cast<const X*>(rows.values);
    const Index *starts = static_cast<const Index*>(rows.starts), *columns = static_cast<const Index*>(rows.columns);
    const int64_t first = rows.form ? int64_t(starts[i]) : i * rows.n_features,
                  n = rows.form ? int64_t(starts[i + 1]) - first : rows.n_features;
    entries.n = least(n - lo, Entries::MOST);
    for (int64_t t = 0; t < entries.n; ++t) {
        entries.columns[t] = shift + (rows.form ? int64_t(columns[first + lo + t]) : lo + t);
        entries.values[t] = double(values[first + lo + t]);
    }
}

// The same for rows of any type and form.
inline void take_entries(const Rows& rows, int64_t i, int64_t lo, int64_t shift, Entries& entries) {
    const auto take = rows.form == 1 ? (rows.is_double ? take_entries<double, int32_t> : take_entries<float, int32_t>)
                                     : (rows.is_double ? take_entries<double, int64_t> : take_entries<float, int64_t>);
    take(rows, i, lo, shift, entries);
}

// The first row of row i's sequence, and the row after its last one.
SLIMSVM_SMALL inline void find_sequence(const Rows& rows, int64_t i, int64_t& begin, int64_t& end) {
    int64_t lo = 0, hi = rows.n_sequences;  // offsets[lo] <= i < offsets[hi]
    while (hi - lo > 1) {
        const int64_t middle = lo + (hi - lo) / 2;
        (rows.offsets[middle] <= i ? lo : hi) = middle;
    }
    begin = rows.offsets[lo];
    end = rows.offsets[hi];
}

// The first place from `at` on of a used feature that is not below the column.
inline int64_t find_used(const Model& model, int64_t at, int64_t column) {
    int64_t end = model.n_used;
    while (at < end) {
        const int64_t middle = at + (end - at) / 2;
        if (model.used[middle] < column)
            at = middle + 1;
        else
            end = middle;
    }
    return at;
}

// ---------------------------------------------------------------- folding

// A dense row whose features are all used; false where it is not finite.
template <class T, class X>
bool fold_dense(const Model& model, const X* row, Folded<T>& folded) {
    const double* scales = model.scales.data();
    double odd = 0.0;
    for (int64_t c = 0; c < model.n_used; ++c) odd += double(row[c]) - double(row[c]);
    if (model.scales.size() == 1)
        for (int64_t c = 0; c < model.n_used; ++c) folded.row[c] = T(double(row[c]) * scales[0]);
    else
        for (int64_t c = 0; c < model.n_used; ++c) folded.row[c] = T(double(row[c]) * scales[c]);
    folded.has_list = false;
    if (model.step == predict::Step::SQUARED) folded.norm = dot(folded.row, folded.row, model.n_used);
    if (model.step == predict::Step::ABSOLUTE)
        for (int64_t c = 0; c < model.n_used; ++c) folded.norm += __builtin_fabs(double(folded.row[c]));
    return odd == 0.0;
}

// Adds entries to a folded row, from the used feature `place` on; false where they are not finite.
template <class T>
__attribute__((noinline)) bool fold_entries(const Model& model, const Entries& entries, int64_t& place,
                                            Folded<T>& folded) {
    const bool is_absolute = model.step == predict::Step::ABSOLUTE, has_one_scale = model.scales.size() == 1;
    double odd = 0.0;
    for (int64_t t = 0; t < entries.n; ++t) {
        const int64_t column = entries.columns[t];
        odd += entries.values[t] - entries.values[t];
        if (entries.values[t] == 0.0) continue;
        const T value = T(entries.values[t] * model.scales[has_one_scale ? 0 : column]);
        const double size = is_absolute ? __builtin_fabs(double(value)) : double(value) * double(value);
        folded.norm += size;
        place = model.has_all ? column : find_used(model, place, column);
        if (place < model.n_used && (model.has_all || model.used[place] == column)) {
            folded.row[place] = value;
            folded.columns[folded.n] = place;
            folded.values[folded.n++] = value;
        } else {
            folded.outside += size;
        }
    }
    return odd == 0.0;
}

// Row i as the model's scaling has it, all features of it; false where it is not finite.
inline bool scale(const Model& model, const Rows& rows, int64_t i, double* scaled) {
    Entries entries;
    int64_t lo = 0;
    double odd = 0.0;
    memset(scaled, 0, size_t(rows.n_features) * sizeof *scaled);
    do {
        take_entries(rows, i, lo, 0, entries);
        for (int64_t t = 0; t < entries.n; ++t) {
            odd += entries.values[t] - entries.values[t];
            scaled[entries.columns[t]] = entries.values[t];
        }
        lo += entries.n;
    } while (entries.n == Entries::MOST);
    for (int64_t f = 0; f < rows.n_features; ++f) scaled[f] = (scaled[f] - model.offset[f]) * model.factor[f];
    for (int64_t f = 0; f < model.low.size(); ++f)
        scaled[f] = scaled[f] < model.low[f] ? model.low[f] : scaled[f] > model.high[f] ? model.high[f] : scaled[f];
    return odd == 0.0;
}

// Row i, in a model with a window with its neighbours in the sequence; false where it is not finite. `row` is 0 but for
// what is written.
template <class T>
bool fold(const Model& model, const Rows& rows, int64_t i, Folded<T>& folded) {
    folded.n = 0;
    folded.has_list = true;
    folded.outside = folded.norm = 0.0;
    if (rows.form == 0 && model.has_all && model.window == 0) {
        const int64_t at = i * rows.n_features;
        return rows.is_double ? fold_dense(model, static_cast<const double*>(rows.values) + at, folded)
                              : fold_dense(model, static_cast<const float*>(rows.values) + at, folded);
    }
    int64_t first = i, last = i, begin, end, place = 0;
    if (model.window > 0) {
        find_sequence(rows, i, begin, end);
        first = i - least(model.window, i - begin);
        last = i + least(model.window, end - 1 - i);
    }
    bool is_finite = true;
    Entries entries;
    for (int64_t t = first; t <= last; ++t) {
        int64_t lo = 0;
        do {
            take_entries(rows, t, lo, (t - i + model.window) * rows.n_features, entries);
            is_finite = fold_entries(model, entries, place, folded) && is_finite;
            lo += entries.n;
        } while (entries.n == Entries::MOST);
    }
    return is_finite;
}

// Makes `row` 0 again where the last row wrote something; one without a list is written over whole.
template <class T>
SLIMSVM_INLINE void forget(Folded<T>& folded) {
    for (int64_t t = 0; t < folded.n; ++t) folded.row[folded.columns[t]] = 0;
}

}  // namespace slimsvm::SLIMSVM_ISA
