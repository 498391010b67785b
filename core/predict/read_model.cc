// A model from the header and the arrays of a file; src/slimsvm/deploy/plain_model.py has the same in Python.
#include <math.h>

#include "kernels/maps.h"
#include "predict/message.h"
#include "predict/model.h"
#include "predict/model_file.h"
#include "predict/vectors.h"

namespace slimsvm::predict {

namespace {

// Features and rows of a window beyond these are no model's: products of two of them are numbers.
constexpr int64_t MOST_FEATURES = int64_t(1) << 40, MOST_WINDOW = 1 << 20;
constexpr int64_t MOST_COLUMNS = 1 << 14;  // of a sum of terms, whose vectors are dense

bool fails(const char* text) { return error() << text, false; }

bool all_finite(const Array<double>& numbers) {
    for (int64_t i = 0; i < numbers.size(); ++i)
        if (!(numbers[i] - numbers[i] == 0.0)) return false;
    return true;
}

// The array of that name as finite numbers of n axes.
bool read_numbers(const ModelFile& file, const char* name, int64_t n_axes, FileArray& array, Array<double>& numbers) {
    if (!file.find(name, array)) return false;
    if (!array.is_reals() || array.n_axes != n_axes)
        return error() << "the model file has no array " << name << " of " << n_axes << " axes", false;
    if (!array.copy_to(numbers)) return false;
    if (!all_finite(numbers)) return error() << "the array " << name << " holds numbers that are not finite", false;
    return true;
}

// ---------------------------------------------------------------- what labels come of

// What multi_class stood for; files that do not say it had pairs of classes by the exact solver alone.
bool is_of_pairs(const Json& header) {
    const Json params = header["params"], found = header["fitted"]["multi_class_"];
    if (found) return found.is_text("ovo");
    const Json given = params["multi_class"];
    if (given && !given.is_text("auto")) return given.is_text("ovo");
    const Json solver = params["solver"].is_object() ? params["solver"]["solver"] : params["solver"];
    return solver.is_text("exact") || solver.is_text("Exact");
}

bool read_kind(const Json& header, Model& model) {
    constexpr struct {
        const char* estimator;
        Kind kind;
    } kinds[] = {{"SVR", Kind::REGRESSION},     {"NuSVR", Kind::REGRESSION}, {"OneClassSVM", Kind::ONE_CLASS},
                 {"OrdinalSVC", Kind::ORDINAL}, {"RankSVM", Kind::RANKING},  {"SequenceSVM", Kind::SEQUENCES}};
    const Json estimator = header["estimator"], params = header["params"];
    if (estimator.is_text("SVR") && params["loss"].is_text("poisson")) return model.kind = Kind::COUNTS, true;
    const Json quantile = params["quantile"];  // several are a list, or an array as files have it
    if (estimator.is_text("SVR") && params["loss"].is_text("quantile") && (quantile.is_array() || quantile.is_object()))
        return model.kind = Kind::QUANTILES, true;
    for (const auto& known : kinds)
        if (estimator.is_text(known.estimator)) return model.kind = known.kind, true;
    if (!estimator.is_text("SVC") && !estimator.is_text("NuSVC") && !estimator.is_text("CrossTrainedSVC"))
        return fails("the model file holds no estimator that scores rows: StructuredSVM labels by a task in Python");
    if (header["fitted"]["multilabel_"].is_true())
        model.kind = Kind::LABELS;
    else if (model.n_labels == 0 || model.n_labels == 2)
        model.kind = Kind::BINARY;
    else
        model.kind = is_of_pairs(header) ? Kind::PAIRS : Kind::CLASSES;
    return true;
}

// UTF-8 of a letter; false where it is none.
bool append(uint32_t letter, char*& out) {
    if (letter > 0x10ffff || (letter >= 0xd800 && letter < 0xe000)) return false;
    if (letter < 0x80) return *out++ = char(letter), true;
    const int n_more = letter < 0x800 ? 1 : letter < 0x10000 ? 2 : 3;
    constexpr uint32_t marks[] = {0xc0, 0xe0, 0xf0};
    *out++ = char(marks[n_more - 1] | letter >> 6 * n_more);
    for (int i = n_more - 1; i >= 0; --i) *out++ = char(0x80 | (letter >> 6 * i & 0x3f));
    return true;
}

bool read_labels(const ModelFile& file, Model& model) {
    FileArray classes;
    if (!file.find("classes", classes)) return false;
    if (!classes) return true;
    if (classes.n_axes != 1) return fails("the array classes must have one axis");
    model.n_labels = classes.n_items;
    if (classes.is_numbers()) return classes.copy_to(model.numbers);
    const int64_t n_letters = classes.item_size / 4;
    // 4 bytes for each letter, and one for the end: at most 5/4 of what the file has.
    int64_t size;
    if (__builtin_mul_overflow(classes.n_items, classes.item_size + 1, &size) || !model.texts.make(size) ||
        !model.text_starts.make(classes.n_items))
        return fails("there is no memory for the labels");
    char* out = model.texts.data();
    for (int64_t i = 0; i < classes.n_items; ++i) {
        model.text_starts[i] = out - model.texts.data();
        for (int64_t l = 0; l < n_letters; ++l) {
            uint32_t letter;
            memcpy(&letter, classes.bytes + i * classes.item_size + 4 * l, sizeof letter);
            if (letter && !append(letter, out)) return fails("a label holds what is no letter");
        }
        *out++ = 0;
    }
    return true;
}

// ---------------------------------------------------------------- the kernel

// The kernel of that name; nothing, with a message, where there is none.
const KnownKernel* find_kernel(const Json& name) {
    for (const KnownKernel& known : KERNELS)
        if (name.is_text(known.name)) return &known;
    char found[32] = "nothing";
    if (name) {
        const int64_t given = name.end() - name.begin(), n = given < 31 ? given : 31;
        for (int64_t i = 0; i < n; ++i)
            found[i] = name.begin()[i] < ' ' || name.begin()[i] > '~' ? '?' : name.begin()[i];
        found[n] = 0;
    }
    Message message = error() << "the kernel must be one of ";
    for (const KnownKernel& known : KERNELS) message << known.name << ", ";
    message << "found " << found;
    return nullptr;
}

// Shares of n terms: those of the file, or all alike.
bool read_shares(const ModelFile& file, int64_t n, Model& model) {
    FileArray array;
    double sum = 0.0;
    if (!file.find("kernel_shares", array)) return false;
    if (array) {
        if (!read_numbers(file, "kernel_shares", 1, array, model.shares)) return false;
    } else {
        if (!model.shares.make(n)) return fails("there is no memory for the model");
        for (int64_t t = 0; t < n; ++t) model.shares[t] = 1.0;
    }
    for (int64_t t = 0; t < model.shares.size(); ++t) sum += model.shares[t] >= 0.0 ? model.shares[t] : NAN;
    if (model.shares.size() != n || !(sum > 0.0 && sum < HUGE_VAL))
        return fails("kernel_shares must be a number for each term, none below 0");
    for (int64_t t = 0; t < n; ++t) model.shares[t] *= (1.0 - model.whole) / sum;
    return true;
}

// The terms of a kernel that is a sum of them, and the kernel of each.
const KnownKernel* read_terms(const ModelFile& file, const Json& kernel, Model& model) {
    FileArray array;
    const auto none = [](const char* text) -> const KnownKernel* { return fails(text), nullptr; };
    const KnownKernel* family = find_kernel(kernel["family"]);
    if (!family || !file.find("kernel_widths", array)) return nullptr;
    if (family->step == Step::INNER || family->of_terms)
        return none("the terms of an additive kernel must be kernels of distances");
    if (kernel["interaction"] && !kernel["interaction"].get(&model.whole)) return none("interaction must be a number");
    if (!(model.whole >= 0.0 && model.whole <= 1.0)) return none("interaction must be a share from 0 to 1");
    const bool is_whole = array && (array.type == 'i' || array.type == 'u') && array.n_axes == 1;
    if (array && !is_whole) return none("kernel_widths must be whole numbers");
    if (model.width > MOST_COLUMNS) return none("an additive kernel must have no more than 16384 features");
    const int64_t n = array ? array.n_items : model.width;
    if (n < 1 || n > model.width) return none("kernel_widths must add up to the number of features");
    if (!model.terms.make(n + 1)) return none("there is no memory for the model");
    model.terms[0] = 0;
    for (int64_t t = 0; t < n; ++t) {
        const int64_t n_columns = array ? array.whole(t) : 1;
        if (n_columns < 1 || n_columns > model.width - model.terms[t])
            return none("kernel_widths must add up to the number of features");
        model.terms[t + 1] = model.terms[t] + n_columns;
    }
    if (model.terms[n] != model.width) return none("kernel_widths must add up to the number of features");
    model.ratio = 1.0 / double(n);
    return read_shares(file, n, model) ? family : nullptr;
}

// The kernel's step and map, the scales of its features, and the factor on vectors of inner products.
bool read_kernel(const ModelFile& file, Model& model, double& factor) {
    const Json kernel = file.header["kernel"];
    const KnownKernel* known = find_kernel(kernel["kernel"]);
    if (!known) return false;
    if (known->of_terms && !(known = read_terms(file, kernel, model))) return false;
    model.step = known->step;
    model.map = known->map;
    model.of_columns = known->of_columns;
    FileArray array;
    Array<double> gamma;
    double number = 1.0;
    if (!file.find("kernel_gamma", array)) return false;
    if (array) {
        if (!read_numbers(file, "kernel_gamma", 1, array, gamma)) return false;
        if (gamma.size() != model.width) return fails("kernel_gamma must have a number for each feature");
    } else {
        if (kernel["gamma"] && !kernel["gamma"].get(&number)) return fails("gamma must be a number");
        if (!gamma.make(1)) return fails("there is no memory for the model");
        gamma[0] = number;
    }
    if (!model.scales.make(gamma.size())) return fails("there is no memory for the model");
    if (model.step == Step::INNER) {
        if (array) return fails("this kernel must have one gamma");
        model.scales[0] = 1.0;
        if (model.map == SLIMSVM_IDENTITY) return true;
        factor = number;
        if (kernel["coef0"] && !kernel["coef0"].get(&model.coef0)) return fails("coef0 must be a number");
        if (model.map == SLIMSVM_POWER &&
            (!kernel["degree"].get(&model.degree) || model.degree < 1 || model.degree > MOST_DEGREE))
            return error() << "degree must be a whole number from 1 to " << MOST_DEGREE, false;
        return true;
    }
    for (int64_t f = 0; f < gamma.size(); ++f) {
        if (!(gamma[f] >= 0.0)) return fails("gamma must not be negative");
        const double scale = gamma[f] * known->unit / model.ratio;
        model.scales[f] = model.step == Step::ABSOLUTE ? scale : __builtin_sqrt(scale);
    }
    return true;
}

// What is done to a row before the kernel sees it.
bool read_scaling(const ModelFile& file, Model& model) {
    FileArray low, high, array;
    if (!file.header["scaling"]) return true;
    if (model.kind == Kind::SEQUENCES || model.of_columns)
        return fails("there is no scaling for sequences and for ready kernel values");
    if (!read_numbers(file, "scaling_offset", 1, array, model.offset) ||
        !read_numbers(file, "scaling_factor", 1, array, model.factor) || !file.find("scaling_low", low) ||
        !file.find("scaling_high", high))
        return false;
    const int64_t n = model.n_features;
    bool fits = model.offset.size() == n && model.factor.size() == n && bool(low) == bool(high);
    if (fits && low) {
        fits = low.is_reals() && high.is_reals() && low.n_axes == 1 && high.n_axes == 1 && low.n_items == n &&
               high.n_items == n && low.copy_to(model.low) && high.copy_to(model.high);
        for (int64_t f = 0; fits && f < n; ++f) fits = model.low[f] <= model.high[f];
    }
    for (int64_t f = 0; fits && f < n; ++f) fits = model.factor[f] > 0.0;
    return fits || fails("the scaling must have numbers for each feature, factors above 0, no low above its high");
}

// ---------------------------------------------------------------- all of it

bool read_sizes(const Json& header, Model& model) {
    const Json params = header["params"];
    if (!header["fitted"]["n_features_in_"].get(&model.n_features) || model.n_features < 0 ||
        model.n_features > MOST_FEATURES)
        return fails("n_features_in_ must be a whole number");
    if (params["window"] && (!params["window"].get(&model.window) || model.window < 0 || model.window > MOST_WINDOW))
        return fails("window must be a whole number");
    model.width = model.n_features * (2 * model.window + 1);
    model.wants_pairs = params["decision_function_shape"].is_text("ovo");
    model.breaks_ties = params["break_ties"].is_true();
    return true;
}

// How many outputs and plain numbers a kind has; -1 for any number. Several numbers are targets.
bool shapes_fit(Model& model) {
    const int64_t k = model.n_labels;
    int64_t n_outputs = 1, n_plain = -1;
    if (k > MOST_WINDOW) return fails("there are more labels than a model has");
    if (model.kind == Kind::REGRESSION && model.n_outputs > 1) model.kind = Kind::TARGETS;
    if (model.has_numbers()) n_outputs = model.n_outputs;
    if (model.kind == Kind::CLASSES || model.kind == Kind::LABELS || model.kind == Kind::SEQUENCES) n_outputs = k;
    if (model.kind == Kind::PAIRS) n_outputs = k * (k - 1) / 2;
    if (model.kind == Kind::SEQUENCES) n_plain = k * (k + 2);
    if (model.kind == Kind::ORDINAL) n_plain = k - 1;
    if (n_outputs < 1 || (model.kind == Kind::ORDINAL && k < 2)) return fails("a model must have labels");
    if (model.n_outputs != n_outputs || (n_plain >= 0 && model.plain.size() != n_plain))
        return error() << "coef must have " << n_outputs << " columns beside " << k << " labels, found "
                       << model.n_outputs << ", or there are too few or too many plain numbers",
               false;
    return true;
}

// What makes probabilities of scores: a line for the score of two classes, each pair, each label, all thresholds or
// each.
bool read_calibration(const ModelFile& file, Model& model) {
    FileArray array;
    if (!file.find("calibration", array)) return false;
    if (!array) return true;
    if (!read_numbers(file, "calibration", 2, array, model.calibration)) return false;
    const int64_t k = model.n_labels;
    int64_t n_lines = 0;
    if (model.kind == Kind::BINARY || model.kind == Kind::ORDINAL) n_lines = 1;
    if (model.kind == Kind::CLASSES || model.kind == Kind::PAIRS) n_lines = k * (k - 1) / 2;
    if (model.kind == Kind::LABELS) n_lines = k;
    if (model.kind == Kind::ORDINAL && array.shape[0] > 1) n_lines = k - 1;
    bool fits = k > 0 && n_lines > 0 && array.shape[0] == n_lines && array.shape[1] == 4;
    for (int64_t i = 0; fits && i < array.n_items; ++i) fits = i % 4 == 3 || model.calibration[i] >= 0.0;
    if (!fits) error() << "calibration must have " << n_lines << " lines of 4 numbers, the first three not below 0";
    return fits;
}

bool read(const ModelFile& file, Model& model) {
    FileArray coef, other;
    double factor = 1.0;
    if (!read_sizes(file.header, model) || !read_labels(file, model) || !read_kind(file.header, model) ||
        !read_kernel(file, model, factor) || !read_scaling(file, model) ||
        !read_numbers(file, "coef", 2, coef, model.coef) ||
        !read_numbers(file, "intercept", 1, other, model.intercept) ||
        !read_numbers(file, "plain", 1, other, model.plain))
        return false;
    model.n_outputs = coef.shape[1];
    if (model.intercept.size() != model.n_outputs) return fails("intercept must have a number for each column of coef");
    return shapes_fit(model) && read_calibration(file, model) && read_vectors(file, coef.shape[0], factor, model);
}

}  // namespace

bool read_model(const uint8_t* bytes, size_t n_bytes, Model& model) {
    ModelFile file;
    if (!file.read(bytes, n_bytes) || !read(file, model)) return false;
    model.functions = choose_functions();
    return lay_out(model) || fails("there is no memory for the model");
}

}  // namespace slimsvm::predict
