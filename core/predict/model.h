// A model as it is scored: f_c(x) = sum_j coef[c, j] k(z_j, x) + intercept[c].
//
// Rows and vectors are folded first: multiplied by the scales of their features, so that a kernel is a map of one sum
// (see `Step`), and only features that a vector has ("used" ones) are multiplied; what the others add to a distance is
// the row's own.
#pragma once

#include "kernels/step.h"
#include "predict/array.h"

namespace slimsvm::predict {

enum class Kind : int32_t {
    BINARY,
    CLASSES,
    PAIRS,
    LABELS,
    REGRESSION,
    ONE_CLASS,
    ORDINAL,
    RANKING,
    SEQUENCES,
    COUNTS,
    TARGETS,
    QUANTILES
};
using slimsvm::Step;
enum class Storage : int32_t {
    WEIGHTS,  // no vectors: coef (n_outputs, n_used) are those of the features
    PANELS,   // dense vectors side by side
    SPARSE    // as CSR
};

struct Functions;

struct Model {
    const Functions* functions = nullptr;  // of the instruction set that it is laid out for
    Kind kind = Kind::BINARY;
    int64_t n_features = 0;         // of a row
    int64_t window = 0, width = 0;  // rows of a sequence before and after one, and features with theirs
    bool has_all = false;           // every feature is used
    int64_t n_used = 0;
    Array<int64_t> used;   // (n_used) rising, unless all are
    Array<double> scales;  // (width), or one for all

    // (n_features) or nothing: x becomes (x - offset) factor, no less than low and no more than high, before all else.
    Array<double> offset, factor, low, high;

    Step step = Step::INNER;
    int64_t map = 0, degree = 1;  // see kernels/maps.h
    double coef0 = 0.0;
    bool of_columns = false;
    // Of a sum of terms the first feature of each and the number of all, their shares, and the share of the map of all
    // features together, whose z is `ratio` times the sum of the terms' own. Nothing for other kernels.
    Array<int64_t> terms;
    Array<double> shares;
    double whole = 0.0, ratio = 1.0;
    Storage storage = Storage::WEIGHTS;
    bool is_single = false;               // kernel values are float32
    int64_t n_vectors = 0, n_padded = 0;  // and those that fill up the last panel

    // Dense vectors as they were read (n_vectors, n_used), in the file or in `vectors`, and what their features are
    // folded by (n_used). Gone when the model is laid out.
    const double* dense = nullptr;
    Array<double> vectors, folding;
    // Sparse ones, folded; columns are places among the used features. Gone where they are laid out in panels.
    Array<int64_t> starts, columns;
    Array<double> values;
    Array<uint8_t> panels;  // (n_padded / PANEL, n_used, PANEL)
    Array<uint8_t> base;    // (n_padded): what the sum over features begins with
    Array<uint8_t> norms;   // (n_padded) z of a row of zeros

    int64_t n_outputs = 0;
    Array<double> coef;  // (n_vectors, n_outputs), laid out (n_outputs, n_padded)
    Array<double> intercept, plain;
    Array<double> calibration;  // (n_columns, 4) or nothing, see write_probabilities

    int64_t n_labels = 0;
    Array<char> texts;
    Array<int64_t> text_starts;
    Array<double> numbers;
    bool wants_pairs = false;  // decision_function_shape="ovo"
    bool breaks_ties = false;

    SLIMSVM_ALWAYS_INLINE int64_t n_scores() const {
        const int64_t k = n_labels;
        if (kind == Kind::PAIRS || kind == Kind::CLASSES) return wants_pairs ? k * (k - 1) / 2 : k;
        if (kind == Kind::ORDINAL) return k == 2 ? 1 : k;
        return n_outputs;
    }
    SLIMSVM_ALWAYS_INLINE bool has_numbers() const {  // as many predictions as scores
        return kind >= Kind::COUNTS;
    }
    SLIMSVM_ALWAYS_INLINE int64_t n_predictions() const {
        return kind == Kind::LABELS || has_numbers() ? n_outputs : 1;
    }
    SLIMSVM_ALWAYS_INLINE int64_t n_probabilities() const { return calibration.size() == 0 ? 0 : n_labels; }
};

// Rows of a caller, checked.
struct Rows {
    const void* values;
    const void* columns;
    const void* starts;
    bool is_double;
    int32_t form;  // 0 dense, 1 int32 CSR, 2 int64 CSR
    int64_t n_rows, n_features;
    const int64_t* offsets;  // (n_sequences + 1) first rows of the sequences
    int64_t n_sequences;
};

enum class Fault : int32_t { NONE, ROW, SCORES };

// What is asked of a row.
enum class Answer : int32_t { SCORES, PREDICTION, PROBABILITIES };

// The rows that one call scores. `workspaces` has `n_workspace` bytes for each worker.
struct Job {
    const Model* model;
    const Rows* rows;
    Answer answer;
    double* out;  // (n_rows, n_numbers)
    int64_t n_numbers;
    uint8_t* workspaces;
    int64_t n_workspace;
    // (workers): the first row that has no scores, and why.
    int64_t* fault_rows;
    Fault* faults;
};

// What is compiled once for each instruction set.
struct Functions {
    int64_t panel_of_floats, panel_of_doubles;  // vectors side by side
    int64_t (*workspace)(const Model& model);
    // Rows lo, ..., hi - 1.
    void (*score)(const Job& job, int64_t lo, int64_t hi, int64_t worker);
    // The best labelling of each sequence, by Viterbi's recursion, of scores (n_rows, n_outputs).
    int64_t (*path_workspace)(const Model& model, int64_t longest);
    void (*best_paths)(const Model& model, const Rows& rows, const double* scores, uint8_t* workspace, int64_t longest,
                       double* labels);
};
// Of the best instruction set that the processor has, or the lower one that the environment variable SLIMSVM_ISA names.
const Functions* choose_functions();

// Lays the vectors out for the model's functions; false where there is no memory.
bool lay_out(Model& model);

// False, with a message, where the bytes are no model.
bool read_model(const uint8_t* bytes, size_t n_bytes, Model& model);

// Scores as the estimator's decision_function has them, the prediction, or probabilities, of the n_outputs scores of a
// row. `scratch` has 2 n_labels numbers. For all but sequences, whose scores these are.
void write_answer(const Model& model, Answer answer, const double* raw, double* scratch, double* out);

}  // namespace slimsvm::predict
