// The functions of slimsvm_predict.h, but for slimsvm_load.
#include <new>

#include "predict/message.h"
#include "predict/model.h"
#include "predict/slimsvm_predict.h"
#if !defined(SLIMSVM_PREDICT_ONE_THREAD)
#include "threads/pool.h"
#endif

#if defined(__wasm__)
// Where slimsvm.mjs writes them.
static_assert(sizeof(slimsvm_rows) == 56 && offsetof(slimsvm_rows, type) == 12 &&
              offsetof(slimsvm_rows, n_rows) == 24 && offsetof(slimsvm_rows, lengths) == 40 &&
              offsetof(slimsvm_rows, n_sequences) == 48);
#endif

namespace slimsvm::predict {

namespace {

constexpr int64_t ROWS_PER_TILE = 24, MOST_THREADS = 256;

static_assert(int(Kind::BINARY) == SLIMSVM_BINARY && int(Kind::CLASSES) == SLIMSVM_CLASSES &&
              int(Kind::PAIRS) == SLIMSVM_PAIRS && int(Kind::LABELS) == SLIMSVM_LABELS &&
              int(Kind::REGRESSION) == SLIMSVM_REGRESSION && int(Kind::ONE_CLASS) == SLIMSVM_ONE_CLASS &&
              int(Kind::ORDINAL) == SLIMSVM_ORDINAL && int(Kind::RANKING) == SLIMSVM_RANKING &&
              int(Kind::SEQUENCES) == SLIMSVM_SEQUENCES && int(Kind::COUNTS) == SLIMSVM_COUNTS &&
              int(Kind::TARGETS) == SLIMSVM_TARGETS && int(Kind::QUANTILES) == SLIMSVM_QUANTILES);

bool fails(const char* text) { return error() << text, false; }

// CSR rows whose columns rise, each within the features.
template <class Index>
bool are_rows(const slimsvm_rows& rows) {
    const Index *starts = static_cast<const Index*>(rows.starts), *columns = static_cast<const Index*>(rows.columns);
    if (!starts || starts[0] < 0) return fails("starts of CSR rows must begin with 0 or more");
    for (int64_t i = 0; i < rows.n_rows; ++i) {
        if (starts[i + 1] < starts[i]) return error() << "starts of CSR rows must not fall, found row " << i, false;
        int64_t before = -1;
        if (starts[i + 1] > starts[i] && (!columns || !rows.values)) return fails("CSR rows have no values or columns");
        for (Index t = starts[i]; t < starts[i + 1]; before = columns[t++])
            if (columns[t] <= before || columns[t] >= rows.n_features)
                return error() << "columns of CSR rows must rise and be below " << rows.n_features << ", found "
                               << columns[t] << " in row " << i,
                       false;
    }
    return true;
}

// The caller's rows, checked; `offsets` are the first rows of its sequences.
bool take_rows(const Model& model, const slimsvm_rows& given, Array<int64_t>& offsets, Rows& rows) {
    if (given.n_features != model.n_features)
        return error() << "rows must have " << model.n_features << " features as in training, found "
                       << given.n_features,
               false;
    if (given.n_rows < 0) return fails("n_rows must not be negative");
    if (given.type != SLIMSVM_FLOAT32 && given.type != SLIMSVM_FLOAT64)
        return fails("type must be SLIMSVM_FLOAT32 or SLIMSVM_FLOAT64");
    if (given.form == SLIMSVM_DENSE) {
        if (!given.values && given.n_rows > 0 && given.n_features > 0) return fails("rows have no values");
    } else if (given.form == SLIMSVM_CSR32 || given.form == SLIMSVM_CSR64) {
        if (given.form == SLIMSVM_CSR32 ? !are_rows<int32_t>(given) : !are_rows<int64_t>(given)) return false;
    } else {
        return fails("form must be SLIMSVM_DENSE, SLIMSVM_CSR32 or SLIMSVM_CSR64");
    }
    const int64_t n_sequences = given.lengths ? given.n_sequences : 1;
    if (n_sequences < 0 || !offsets.make(n_sequences + 1)) return fails("there is no memory for so many sequences");
    offsets[n_sequences] = given.n_rows;
    for (int64_t e = 0; given.lengths && e < n_sequences; ++e)
        if (given.lengths[e] < 0 || __builtin_add_overflow(offsets[e], given.lengths[e], &offsets[e + 1]))
            return fails("lengths of sequences must not be negative");
    if (offsets[n_sequences] != given.n_rows)
        return error() << "lengths of sequences must add up to the rows, " << given.n_rows, false;
    rows = {given.values,     given.columns,  given.starts, given.type == SLIMSVM_FLOAT64, given.form, given.n_rows,
            given.n_features, offsets.data(), n_sequences};
    return true;
}

void score_tiles(const void* context, int64_t lo, int64_t hi, int64_t worker) {
    const Job& job = *static_cast<const Job*>(context);
    const int64_t n = job.rows->n_rows, end = hi * ROWS_PER_TILE;
    job.model->functions->score(job, lo * ROWS_PER_TILE, end < n ? end : n, worker);
}

// The lowest row without scores, with a message.
bool has_all_scores(const Job& job, int64_t n_workers) {
    int64_t worst = -1;
    for (int64_t w = 0; w < n_workers; ++w)
        if (job.faults[w] != Fault::NONE && (worst < 0 || job.fault_rows[w] < job.fault_rows[worst])) worst = w;
    if (worst < 0) return true;
    if (job.faults[worst] == Fault::ROW)
        error() << "rows must hold finite numbers, row " << job.fault_rows[worst] << " does not";
    else
        error() << "the scores of row " << job.fault_rows[worst] << " are beyond what numbers hold: scale rows as in "
                << "training";
    return false;
}

int64_t n_numbers_of(const Model& model, Answer answer) {
    if (answer == Answer::PREDICTION) return model.n_predictions();
    return answer == Answer::SCORES ? model.n_scores() : model.n_probabilities();
}

bool run(const Model& model, const Rows& rows, int64_t n_threads, Answer answer, double* out) {
    const int64_t n_workers = n_threads < 1 ? 1 : n_threads < MOST_THREADS ? n_threads : MOST_THREADS;
    const int64_t n_tiles = rows.n_rows / ROWS_PER_TILE + (rows.n_rows % ROWS_PER_TILE != 0);
    Array<uint8_t> workspaces;
    Array<int64_t> fault_rows;
    Array<Fault> faults;
    int64_t size;
    const int64_t n_workspace = model.functions->workspace(model);
    if (__builtin_mul_overflow(n_workers, n_workspace, &size) || !workspaces.make(size) ||
        !fault_rows.make(n_workers) || !faults.make(n_workers))
        return fails("there is no memory to score rows in");
    const Job job = {&model,
                     &rows,
                     answer,
                     out,
                     n_numbers_of(model, answer),
                     workspaces.data(),
                     n_workspace,
                     fault_rows.data(),
                     faults.data()};
#if defined(SLIMSVM_PREDICT_ONE_THREAD)
    score_tiles(&job, 0, n_tiles, 0);
#else
    constexpr double microseconds = 5e-5;  // of a product of a feature of a row and one of a vector, about
    const double n_products = double(rows.n_rows) * double(model.n_used) *
                              double(model.n_vectors > model.n_outputs ? model.n_vectors : model.n_outputs);
    Team team(n_workers, n_products * microseconds);
    team.share(n_tiles, score_tiles, &job);
#endif
    return has_all_scores(job, n_workers);
}

bool label_sequences(const Model& model, const Rows& rows, int64_t n_threads, double* labels) {
    Array<double> scores;
    Array<uint8_t> workspace;
    int64_t size, longest = 1;
    for (int64_t e = 0; e < rows.n_sequences; ++e)
        if (rows.offsets[e + 1] - rows.offsets[e] > longest) longest = rows.offsets[e + 1] - rows.offsets[e];
    if (__builtin_mul_overflow(rows.n_rows, model.n_outputs, &size) || !scores.make(size) ||
        !workspace.make(model.functions->path_workspace(model, longest)))
        return fails("there is no memory to label sequences in");
    if (!run(model, rows, n_threads, Answer::SCORES, scores.data())) return false;
    model.functions->best_paths(model, rows, scores.data(), workspace.data(), longest, labels);
    return true;
}

bool answer_rows(const Model& model, const slimsvm_rows* given, int64_t n_threads, Answer answer, double* out) {
    Array<int64_t> offsets;
    Rows rows;
    if (!given || !out) return fails("rows and the array for what comes of them must not be NULL");
    if (!take_rows(model, *given, offsets, rows)) return false;
    if (answer == Answer::PROBABILITIES && model.n_probabilities() == 0)
        return fails("the model has no probabilities: a classifier fitted with probability=True has them");
    if (answer == Answer::PREDICTION && model.kind == Kind::PAIRS && model.breaks_ties && model.wants_pairs)
        return fails("break_ties must be False when decision_function_shape is 'ovo'");
    if (answer == Answer::PREDICTION && model.kind == Kind::SEQUENCES)
        return label_sequences(model, rows, n_threads, out);
    return run(model, rows, n_threads, answer, out);
}

}  // namespace

}  // namespace slimsvm::predict

struct slimsvm_model {
    slimsvm::predict::Model model;
};

extern "C" {

slimsvm_model* slimsvm_load_memory(const void* bytes, size_t n_bytes) {
    slimsvm_model* loaded = static_cast<slimsvm_model*>(malloc(sizeof(slimsvm_model)));
    if (!loaded || !bytes) {
        free(loaded);
        return slimsvm::predict::fails("there is no model, or no memory for one"), nullptr;
    }
    new (loaded) slimsvm_model();
    if (slimsvm::predict::read_model(static_cast<const uint8_t*>(bytes), n_bytes, loaded->model)) return loaded;
    slimsvm_free(loaded);
    return nullptr;
}

void slimsvm_free(slimsvm_model* model) {
    if (!model) return;
    model->~slimsvm_model();
    free(model);
}

const char* slimsvm_last_error(void) { return slimsvm::predict::last_error(); }
int32_t slimsvm_kind(const slimsvm_model* model) { return int32_t(model->model.kind); }
int64_t slimsvm_n_features(const slimsvm_model* model) { return model->model.n_features; }
int64_t slimsvm_n_vectors(const slimsvm_model* model) { return model->model.n_vectors; }
int64_t slimsvm_n_scores(const slimsvm_model* model) { return model->model.n_scores(); }
int64_t slimsvm_n_predictions(const slimsvm_model* model) { return model->model.n_predictions(); }
int64_t slimsvm_n_probabilities(const slimsvm_model* model) { return model->model.n_probabilities(); }
int64_t slimsvm_n_labels(const slimsvm_model* model) { return model->model.n_labels; }

const char* slimsvm_label_text(const slimsvm_model* model, int64_t place) {
    const auto& found = model->model;
    return place >= 0 && place < found.text_starts.size() ? &found.texts[found.text_starts[place]] : nullptr;
}

double slimsvm_label_number(const slimsvm_model* model, int64_t place) {
    const auto& numbers = model->model.numbers;
    return place >= 0 && place < numbers.size() ? numbers[place] : __builtin_nan("");
}

int slimsvm_scores(const slimsvm_model* model, const slimsvm_rows* rows, int32_t n_threads, double* scores) {
    using namespace slimsvm::predict;
    return answer_rows(model->model, rows, n_threads, Answer::SCORES, scores) ? 0 : 1;
}

int slimsvm_predict(const slimsvm_model* model, const slimsvm_rows* rows, int32_t n_threads, double* predictions) {
    using namespace slimsvm::predict;
    return answer_rows(model->model, rows, n_threads, Answer::PREDICTION, predictions) ? 0 : 1;
}

int slimsvm_probabilities(const slimsvm_model* model, const slimsvm_rows* rows, int32_t n_threads,
                          double* probabilities) {
    using namespace slimsvm::predict;
    return answer_rows(model->model, rows, n_threads, Answer::PROBABILITIES, probabilities) ? 0 : 1;
}
}
