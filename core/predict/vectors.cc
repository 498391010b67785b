#include "predict/vectors.h"

#include <algorithm>

#include "predict/message.h"
#include "slimsvm.h"

namespace slimsvm::predict {

namespace {

// Sparse vectors become dense where they have no more numbers than this many times the stored ones.
constexpr int64_t MOST_TIMES = 8;
// Numbers that sparse vectors of a sum of terms may have when made dense.
constexpr int64_t MOST_OF_TERMS = int64_t(1) << 26;
// Folded vectors farther than this from 0, squared, have kernel values in float64: float32 would lose digits.
constexpr double FAR = 64.0;
constexpr int64_t LANES = 8;  // sums of their own, so that no addition waits for the one before

bool fails(const char* text) { return error() << text, false; }
bool has_no_memory() { return fails("there is no memory for the model"); }

// Increasing, by heap sort: std::sort of whole numbers is a function of the C++ runtime in libc++.
void sort(int64_t* begin, int64_t* end) {
    const auto compare = [](int64_t a, int64_t b) { return a < b; };
    std::make_heap(begin, end, compare);
    std::sort_heap(begin, end, compare);
}

// Vectors as they were read: dense (n, width) numbers, where they lie in the file or in `values`, or CSR with columns
// of the file.
struct Given {
    int64_t n = 0;
    bool is_sparse = false;
    const double* dense = nullptr;
    Array<double> values;
    Array<int64_t> starts, columns;
};

// The array of that name as whole numbers.
bool read_whole(const ModelFile& file, const char* name, Array<int64_t>& numbers) {
    FileArray array;
    if (!file.find(name, array)) return false;
    if (!array.is_numbers() || array.type == 'f' || array.type == 'b' || array.n_axes != 1)
        return error() << "the model file has no array " << name << " of whole numbers", false;
    if (!numbers.make(array.n_items)) return has_no_memory();
    for (int64_t i = 0; i < array.n_items; ++i) numbers[i] = array.whole(i);
    return true;
}

bool are_finite(const double* values, int64_t n) {
    double odd[LANES] = {};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int64_t l = 0; l < LANES; ++l) odd[l] += values[i + l] - values[i + l];
    for (; i < n; ++i) odd[0] += values[i] - values[i];
    for (int64_t l = 1; l < LANES; ++l) odd[0] += odd[l];
    return odd[0] == 0.0 || fails("the model file's vectors are not finite");
}

bool read_values(const FileArray& array, Array<double>& values) {
    return array.copy_to(values) && are_finite(values.data(), values.size());
}

// Numbers of float64 stay where they are: a page of memory costs more than all that is done with its numbers.
bool read_dense(const FileArray& array, Given& given) {
    const bool is_aligned = reinterpret_cast<uintptr_t>(array.bytes) % alignof(double) == 0;
    if (array.type == 'f' && array.item_size == 8 && is_aligned) {
        given.dense = reinterpret_cast<const double*>(array.bytes);
        return true;
    }
    if (!array.copy_to(given.values)) return false;
    given.dense = given.values.data();
    return true;
}

// A vector for each position of a training row, 1 there: of rows of ready kernel values.
bool read_positions(const FileArray& array, const Model& model, Given& given) {
    if (array.shape[1] != 1) return fails("positions of training rows must have one column");
    given.is_sparse = true;
    if (!given.values.make(given.n) || !given.columns.make(given.n) || !given.starts.make(given.n + 1))
        return has_no_memory();
    for (int64_t j = 0; j < given.n; ++j) {
        const double position = array.number(j);
        if (!(position >= 0.0 && position < double(model.width))) return fails("a position is that of no training row");
        given.values[j] = 1.0;
        given.columns[j] = int64_t(position);
        given.starts[j + 1] = j + 1;
    }
    return true;
}

bool read_sparse(const ModelFile& file, const Model& model, Given& given) {
    FileArray array;
    int64_t n = -1, width = -1;
    const Json shape = file.header["basis_shape"];
    given.is_sparse = true;
    if (!file.find("basis_data", array)) return false;
    if (!array.is_reals() || array.n_axes != 1 || !shape.entry(0).get(&n) || !shape.entry(1).get(&width))
        return fails("the model file has no vectors");
    if (n != given.n || width != model.width)
        return error() << "the model file's vectors must be " << given.n << " of " << model.width << " features", false;
    if (!read_values(array, given.values) || !read_whole(file, "basis_indices", given.columns) ||
        !read_whole(file, "basis_indptr", given.starts))
        return false;
    const int64_t n_stored = given.values.size();
    bool is_right = given.columns.size() == n_stored && given.starts.size() == n + 1 && given.starts[0] == 0 &&
                    given.starts[n] == n_stored;
    for (int64_t j = 0; is_right && j < n; ++j) is_right = given.starts[j] <= given.starts[j + 1];
    for (int64_t t = 0; is_right && t < n_stored; ++t) is_right = given.columns[t] >= 0 && given.columns[t] < width;
    return is_right || fails("the model file's sparse vectors are not rows of their features");
}

bool read_given(const ModelFile& file, const Model& model, Given& given) {
    FileArray array;
    if (!file.find("basis", array)) return false;
    if (!array) return model.of_columns ? fails("the model file has no positions") : read_sparse(file, model, given);
    if (!array.is_numbers() || array.type == 'b' || array.n_axes != 2 || array.shape[0] != given.n)
        return fails("the model file's vectors are not as many as its coefficients");
    if (model.of_columns) return read_positions(array, model, given);
    if (array.shape[1] != model.width)
        return error() << "the model file's vectors must have " << model.width << " features, found " << array.shape[1],
               false;
    return read_dense(array, given);
}

// The used features where they are few beside all: by sorting the columns, of which there are too many for a mark each.
bool sort_used(Given& given, Model& model) {
    Array<int64_t> sorted;
    const int64_t n_stored = given.columns.size();
    if (!sorted.make(n_stored)) return has_no_memory();
    if (n_stored) memcpy(sorted.data(), given.columns.data(), size_t(n_stored) * sizeof(int64_t));
    sort(sorted.data(), sorted.data() + n_stored);
    model.n_used = std::unique(sorted.data(), sorted.data() + n_stored) - sorted.data();
    for (int64_t t = 0; t < n_stored; ++t)
        given.columns[t] =
            std::lower_bound(sorted.data(), sorted.data() + model.n_used, given.columns[t]) - sorted.data();
    model.used.swap(sorted);
    return true;
}

// The same by a place for each feature.
bool mark_used(Given& given, Model& model) {
    Array<int64_t> places;
    if (!places.make(model.width)) return has_no_memory();
    for (int64_t t = 0; t < given.columns.size(); ++t) places[given.columns[t]] = 1;
    int64_t n_used = 0;
    for (int64_t f = 0; f < model.width; ++f) n_used += places[f];
    if (!model.used.make(n_used)) return has_no_memory();
    for (int64_t f = 0; f < model.width; ++f) {
        if (!places[f]) continue;
        places[f] = model.n_used;
        model.used[model.n_used++] = f;
    }
    for (int64_t t = 0; t < given.columns.size(); ++t) given.columns[t] = places[given.columns[t]];
    return true;
}

// The used features, and the columns as places among them.
bool find_used(Given& given, Model& model) {
    if (!given.is_sparse || model.terms.size())
        model.n_used = given.n ? model.width : 0;
    else if (!(model.width <= given.columns.size() ? mark_used(given, model) : sort_used(given, model)))
        return false;
    model.has_all = model.n_used == model.width && (given.is_sparse || given.n > 0);
    return true;
}

// What the values of a used feature are multiplied by.
bool find_folding(double factor, Model& model) {
    if (!model.folding.make(model.n_used)) return has_no_memory();
    const bool has_one_scale = model.scales.size() == 1;
    for (int64_t c = 0; c < model.n_used; ++c) {
        const int64_t column = has_one_scale ? 0 : model.has_all ? c : model.used[c];
        model.folding[c] = factor * model.scales[column];
    }
    return true;
}

// Rows of sparse vectors, folded, with rising columns, none twice.
bool sort_rows(const Given& given, Model& model) {
    Array<double> sums;
    if (!sums.make(model.n_used) || !model.starts.make(given.n + 1) || !model.columns.make(given.values.size()) ||
        !model.values.make(given.values.size()))
        return has_no_memory();
    int64_t at = 0;
    for (int64_t j = 0; j < given.n; ++j) {
        int64_t* columns = model.columns.data() + at;
        const int64_t n = given.starts[j + 1] - given.starts[j];
        for (int64_t t = 0; t < n; ++t) {
            columns[t] = given.columns[given.starts[j] + t];
            sums[columns[t]] += given.values[given.starts[j] + t];
        }
        if (!std::is_sorted(columns, columns + n)) sort(columns, columns + n);
        const int64_t n_columns = std::unique(columns, columns + n) - columns;
        for (int64_t t = 0; t < n_columns; ++t) {
            model.values[at + t] = sums[columns[t]] * model.folding[columns[t]];
            sums[columns[t]] = 0.0;
        }
        model.starts[j + 1] = at += n_columns;
    }
    return true;
}

// Weights of features in place of vectors: sum_j coef[j, c] z_j.
bool to_weights(const Given& given, int64_t size, Model& model) {
    Array<double> weights;
    if (!weights.make(size)) return has_no_memory();
    const int64_t m = model.n_outputs;
    const auto add = [&](int64_t j, int64_t place, double value) {
        for (int64_t c = 0; c < m; ++c) weights[place * m + c] += value * model.coef[j * m + c];
    };
    for (int64_t j = 0; j < given.n; ++j) {
        if (given.is_sparse)
            for (int64_t t = given.starts[j]; t < given.starts[j + 1]; ++t) add(j, given.columns[t], given.values[t]);
        else
            for (int64_t f = 0; f < model.width; ++f) add(j, f, given.dense[j * model.width + f]);
    }
    model.coef.swap(weights);
    model.storage = Storage::WEIGHTS;
    return true;
}

// The features that have a weight, which are the rows of coef.
bool read_weights(const ModelFile& file, int64_t n, Model& model) {
    int64_t width = -1;
    if (!file.header["weights"].entry(1).get(&width) || width != model.width || model.map != SLIMSVM_IDENTITY)
        return fails("weights are those of the features of a linear kernel");
    if (!read_whole(file, "features", model.used)) return false;
    if (model.used.size() != n) return fails("features must be as many as coef has rows");
    for (int64_t i = 0; i < n; ++i)
        if (model.used[i] < 0 || model.used[i] >= width || (i > 0 && model.used[i] <= model.used[i - 1]))
            return fails("features must be rising numbers below that of the features");
    model.n_used = n;
    model.has_all = n == width;
    model.storage = Storage::WEIGHTS;
    return true;
}

// The sum of squares of a vector's folded features.
double folded_square(const Model& model, int64_t j) {
    if (!model.dense) {
        double sum = 0.0;
        for (int64_t t = model.starts[j]; t < model.starts[j + 1]; ++t) sum += model.values[t] * model.values[t];
        return sum;
    }
    const double* values = model.dense + j * model.n_used;
    double sums[LANES] = {};
    for (int64_t c = 0; c < model.n_used; ++c) {
        const double p = values[c] * model.folding[c];
        sums[c % LANES] += p * p;
    }
    for (int64_t l = 1; l < LANES; ++l) sums[0] += sums[l];
    return sums[0];
}

// None of them is infinite or no number then.
bool is_near(const Model& model) {
    for (int64_t j = 0; j < model.n_vectors; ++j)
        if (!(folded_square(model, j) <= FAR)) return false;
    return true;
}

}  // namespace

bool read_vectors(const ModelFile& file, int64_t n_vectors, double factor, Model& model) {
    if (file.header["weights"]) return read_weights(file, n_vectors, model);
    Given given;
    given.n = n_vectors;
    if (!read_given(file, model, given) || !find_used(given, model)) return false;
    // No form has many more numbers than the file.
    int64_t size;
    const int64_t n_given = given.is_sparse ? given.values.size() : given.n * model.width;
    if (model.map == SLIMSVM_IDENTITY && !__builtin_mul_overflow(model.n_used, model.n_outputs, &size) &&
        size - n_given <= model.coef.size())
        return (given.is_sparse || are_finite(given.dense, n_given)) && to_weights(given, size, model);
    model.n_vectors = n_vectors;
    if (!find_folding(factor, model) || (given.is_sparse && !sort_rows(given, model))) return false;
    const bool of_terms = model.terms.size() > 0;  // where all features of a vector matter, those that are 0, too
    if (of_terms && (__builtin_mul_overflow(model.n_used, n_vectors, &size) || size > MOST_OF_TERMS))
        return fails("sparse vectors of a sum of terms are too many to be made dense");
    const bool is_full =
        !given.is_sparse || of_terms ||
        (!__builtin_mul_overflow(model.n_used, n_vectors, &size) && size / MOST_TIMES <= given.values.size());
    model.storage = is_full ? Storage::PANELS : Storage::SPARSE;
    model.dense = given.dense;
    if (model.dense) model.vectors.swap(given.values);
    const bool is_single = is_full && file.header["dtype"].is_text("float32");
    const bool are_near = is_single && model.step != Step::INNER && is_near(model);
    model.is_single = is_single && (are_near || model.step == Step::INNER);
    return are_near || given.is_sparse || are_finite(model.dense, n_given);
}

}  // namespace slimsvm::predict
