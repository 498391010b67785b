// Scores of rows: folded, their kernel values with all vectors, and the products of these with coefficients.
//
// Dense vectors lie in panels as those of core/scores; up to ROWS rows share one reading of them. A CSR row with few
// features goes alone, over the features that it has. What a row's scores are does not depend on the rows beside it.
#include "kernels/maps.h"
#include "predict/folding.h"
#include "predict/model.h"
#include "simd/reduce.h"
#include "simd/tiles.h"
#include "structured/chain.h"
#include "support/room.h"

namespace slimsvm::SLIMSVM_ISA {

using predict::Fault;
using predict::Job;
using predict::Storage;

namespace {

// Beyond this |x|^2 a distance is taken from differences: |x|^2 + |z|^2 - 2 <x, z> would lose too many digits.
template <class T>
constexpr double FAR_ROW = sizeof(T) == 4 ? 64.0 : 1e7;

// -|x - p|^2 from 2 p, which the panels hold for |x|^2 + |p|^2 - <x, 2 p>.
struct SquaredDistance {
    template <class T>
    static SLIMSVM_INLINE Vec<T> add(Vec<T> sum, T x, Vec<T> twice) {
        const Vec<T> difference = x - T(0.5) * twice;
        return sum - difference * difference;
    }
};

template <class T>
struct Memory {
    Folded<T> folded[ROWS];
    T* kernel_values;  // (ROWS, n_padded)
    T *term, *all;     // the same of one term, and of the sums of all, for a kernel that is a sum of terms
    double *raw, *scratch, *scaled;

    Memory(const Model& model, Room& room) {
        const int64_t n_rows = model.storage == Storage::PANELS ? ROWS : 1;
        for (int64_t r = 0; r < n_rows; ++r) {
            folded[r].row = room.take<T>(model.n_used);
            folded[r].values = room.take<T>(model.n_used);
            folded[r].columns = room.take<int64_t>(model.n_used);
        }
        kernel_values = room.take<T>(n_rows * model.n_padded);
        term = room.take<T>(model.terms.size() ? n_rows * model.n_padded : 0);
        all = room.take<T>(model.terms.size() ? n_rows * model.n_padded : 0);
        raw = room.take<double>(model.n_outputs);
        scratch = room.take<double>(2 * model.n_labels);
        scaled = room.take<double>(model.offset.size());
    }
};

// ---------------------------------------------------------------- kernel values

template <class T>
const T* numbers(const predict::Array<uint8_t>& bytes) {
    return reinterpret_cast<const T*>(bytes.data());
}

// z of ROWS rows and all vectors, from differences or products of the features lo, ..., hi - 1; the rows begin at lo.
template <class T, class Pair>
void sums_of_tile(const Model& model, const T* const (&rows)[ROWS], int64_t n, int64_t lo, int64_t hi, const T* base,
                  T* values) {
    const T* panels = numbers<T>(model.panels) + lo * PANEL<T>;
    for (int64_t j = 0; j < model.n_padded; j += PANEL<T>) {
        Vec<T> sums[ROWS][VECTORS];
        tile_sums<T, Pair>(rows, panels + j * model.n_used, hi - lo, base + j, sums);
        for (int64_t r = 0; r < n; ++r)
            for (int v = 0; v < VECTORS; ++v) store<T>(values + r * model.n_padded + j + v * LANES<T>, sums[r][v]);
    }
}

// z of one row and all vectors, over the features that the row has.
template <class T, class Pair>
void sums_of_list(const Model& model, const Folded<T>& folded, T* values) {
    const T *panels = numbers<T>(model.panels), *norms = numbers<T>(model.norms);
    for (int64_t j = 0; j < model.n_padded; j += PANEL<T>) {
        Vec<T> sums[VECTORS];
        sparse_row_sums<T, Pair>(folded.values, folded.columns, folded.n, panels + j * model.n_used, norms + j, sums);
        for (int v = 0; v < VECTORS; ++v) store<T>(values + j + v * LANES<T>, sums[v]);
    }
}

// z of one row and sparse vectors, but for the row's own part.
template <class T>
void sums_of_sparse(const Model& model, const Folded<T>& folded, T* values) {
    const T* norms = numbers<T>(model.norms);
    for (int64_t j = 0; j < model.n_vectors; ++j) {
        double sum = double(norms[j]);
        for (int64_t t = model.starts[j]; t < model.starts[j + 1]; ++t) {
            const double x = double(folded.row[model.columns[t]]), p = model.values[t];
            if (model.step == predict::Step::ABSOLUTE)
                sum += __builtin_fabs(x) + __builtin_fabs(p) - __builtin_fabs(x - p);
            else
                sum += model.step == predict::Step::INNER ? x * p : 2.0 * x * p;
        }
        values[j] = T(sum);
    }
    for (int64_t j = model.n_vectors; j < model.n_padded; ++j) values[j] = norms[j];
}

// values = map(values - own).
template <class T>
void map_row(const Model& model, double own, T* values) {
    if (model.map == SLIMSVM_EXP2) return map_exp2<T>(values, nullptr, T(-own), model.n_padded);
    if (const T lowest = T(lowest_z(model.map)); lowest < 0) {
        for (int64_t j = 0; j < model.n_padded; ++j) {
            const T z = values[j] - T(own);
            values[j] = z > lowest ? z : lowest;
        }
        own = 0.0;
    }
    map_array<T>(values, T(-own), model.n_padded, model.map, model.degree);
}

// Kernel values of one row by its list, or with sparse vectors.
template <class T>
void kernel_values_alone(const Model& model, const Folded<T>& folded, T* values) {
    if (model.storage == Storage::SPARSE)
        sums_of_sparse(model, folded, values);
    else if (model.step == predict::Step::ABSOLUTE)
        sums_of_list<T, Shared>(model, folded, values);
    else
        sums_of_list<T, Inner>(model, folded, values);
    map_row(model, model.step == predict::Step::INNER ? 0.0 : folded.norm, values);
}

// Kernel values of up to ROWS rows with dense vectors; of far rows from differences.
template <class T>
void kernel_values_of_tile(const Model& model, const Folded<T>* folded, int64_t n, bool is_far, T* values) {
    const T *rows[ROWS], *norms = numbers<T>(model.norms), *base = numbers<T>(model.base);
    for (int64_t r = 0; r < ROWS; ++r) rows[r] = folded[r < n ? r : 0].row;
    const bool from_norms = model.step == predict::Step::SQUARED && !is_far;
    if (model.step == predict::Step::ABSOLUTE)
        sums_of_tile<T, Manhattan>(model, rows, n, 0, model.n_used, base, values);
    else if (is_far)
        sums_of_tile<T, SquaredDistance>(model, rows, n, 0, model.n_used, base, values);
    else
        sums_of_tile<T, Inner>(model, rows, n, 0, model.n_used, norms, values);
    for (int64_t r = 0; r < n; ++r) {
        const double own = model.step == predict::Step::INNER ? 0.0 : from_norms ? folded[r].norm : folded[r].outside;
        map_row(model, own, values + r * model.n_padded);
    }
}

// sums += factor * values, of n numbers that fill whole vectors.
template <class T>
SLIMSVM_INLINE void add_times(T factor, const T* values, T* sums, int64_t n) {
    for (int64_t j = 0; j < n; j += LANES<T>) store<T>(sums + j, load<T>(sums + j) + factor * load<T>(values + j));
}

// Kernel values that are sums of terms, all from differences. Compiled for size: all that takes time is called.
template <class T>
SLIMSVM_SMALL void sum_terms_of_tile(const Model& model, Memory<T>& memory, const Folded<T>* folded, int64_t n) {
    const int64_t size = n * model.n_padded, n_terms = model.shares.size();
    const T* base = numbers<T>(model.base);
    T *values = memory.kernel_values, *all = memory.all;
    for (int64_t j = 0; j < size; ++j) values[j] = all[j] = 0;
    for (int64_t t = 0; t <= n_terms; ++t) {  // the last one is the map of all together
        T* z = t < n_terms ? memory.term : all;
        if (t < n_terms) {
            const int64_t lo = model.terms[t], hi = model.terms[t + 1];
            const T* rows[ROWS];
            for (int64_t r = 0; r < ROWS; ++r) rows[r] = folded[r < n ? r : 0].row + lo;
            if (model.step == predict::Step::ABSOLUTE)
                sums_of_tile<T, Manhattan>(model, rows, n, lo, hi, base, z);
            else
                sums_of_tile<T, SquaredDistance>(model, rows, n, lo, hi, base, z);
            add_times(T(model.ratio), z, all, size);
        }
        const double share = t < n_terms ? model.shares[t] : model.whole;
        if (share == 0.0) continue;
        for (int64_t r = 0; r < n; ++r) map_row(model, 0.0, z + r * model.n_padded);
        add_times(T(share), z, values, size);
    }
}

// ---------------------------------------------------------------- scores

// The products with coefficients, and what comes of them, to the row's place in the output.
template <class T>
void finish(const Job& job, Memory<T>& memory, const Folded<T>& folded, const T* values, int64_t worker) {
    const Model& model = *job.model;
    double odd = 0.0;
    for (int64_t c = 0; c < model.n_outputs; ++c) {
        memory.raw[c] = model.intercept[c] + dot(values, model.coef.data() + c * model.n_padded, model.n_padded);
        odd += memory.raw[c] - memory.raw[c];
    }
    if (!(odd == 0.0)) {
        if (job.faults[worker] == Fault::NONE || folded.index < job.fault_rows[worker]) {
            job.faults[worker] = Fault::SCORES;
            job.fault_rows[worker] = folded.index;
        }
        return;
    }
    predict::write_answer(model, job.answer, memory.raw, memory.scratch, job.out + folded.index * job.n_numbers);
}

// The rows first, ..., first + n - 1 of the folded ones.
template <class T>
void finish_tile(const Job& job, Memory<T>& memory, int64_t first, int64_t n, bool is_far, int64_t worker) {
    if (n == 0) return;
    if (job.model->terms.size())
        sum_terms_of_tile(*job.model, memory, memory.folded + first, n);
    else
        kernel_values_of_tile(*job.model, memory.folded + first, n, is_far, memory.kernel_values);
    for (int64_t r = 0; r < n; ++r) {
        finish(job, memory, memory.folded[first + r], memory.kernel_values + r * job.model->n_padded, worker);
        forget(memory.folded[first + r]);
    }
}

// Row i, scaled first where the model says so; false where it is not finite.
template <class T>
bool fold_row(const Job& job, const Memory<T>& memory, int64_t i, Folded<T>& folded) {
    const Rows& given = *job.rows;
    if (job.model->offset.size() == 0) return fold(*job.model, given, i, folded);
    const Rows scaled = {memory.scaled, nullptr, nullptr, true, 0, 1, given.n_features, nullptr, 0};
    return scale(*job.model, given, i, memory.scaled) && fold(*job.model, scaled, 0, folded);
}

template <class T>
void score_rows(const Job& job, int64_t lo, int64_t hi, int64_t worker) {
    const Model& model = *job.model;
    Room room{job.workspaces + worker * job.n_workspace};
    Memory<T> memory(model, room);
    int64_t n_waiting = 0;
    for (int64_t r = 0; r < (model.storage == Storage::PANELS ? ROWS : 1); ++r)
        memset(memory.folded[r].row, 0, size_t(model.n_used) * sizeof(T));
    for (int64_t i = lo; i < hi && job.faults[worker] == Fault::NONE; ++i) {
        Folded<T>& folded = memory.folded[n_waiting];
        folded.index = i;
        if (!fold_row(job, memory, i, folded)) {
            job.faults[worker] = Fault::ROW;
            job.fault_rows[worker] = i;
            return;
        }
        const bool of_terms = model.terms.size() > 0;
        const bool is_far = !of_terms && model.step == predict::Step::SQUARED && folded.norm > FAR_ROW<T>;
        if (model.storage == Storage::WEIGHTS) {
            finish(job, memory, folded, folded.row, worker);
            forget(folded);
        } else if (model.storage == Storage::SPARSE ||
                   (folded.has_list && !of_terms && !is_far && 2 * folded.n < model.n_used)) {
            kernel_values_alone(model, folded, memory.kernel_values);
            finish(job, memory, folded, memory.kernel_values, worker);
            forget(folded);
        } else if (is_far) {
            finish_tile(job, memory, n_waiting, 1, true, worker);
        } else if (++n_waiting == ROWS) {
            finish_tile(job, memory, 0, n_waiting, false, worker);
            n_waiting = 0;
        }
    }
    finish_tile(job, memory, 0, n_waiting, false, worker);
}

int64_t workspace(const Model& model) {
    Room room;
    if (model.is_single)
        Memory<float> counted(model, room);
    else
        Memory<double> counted(model, room);
    return room.bytes;
}

void score(const Job& job, int64_t lo, int64_t hi, int64_t worker) {
    if (job.model->is_single)
        score_rows<float>(job, lo, hi, worker);
    else
        score_rows<double>(job, lo, hi, worker);
}

// ---------------------------------------------------------------- sequences

int64_t path_workspace(const Model& model, int64_t longest) {
    Room room;
    room.take<uint8_t>(Chain::bytes(model.n_labels));
    room.take<uint8_t>(ChainScratch::bytes(model.n_labels, longest));
    room.take<int64_t>(longest);
    return room.bytes;
}

SLIMSVM_SMALL void best_paths(const Model& model, const Rows& rows, const double* scores, uint8_t* memory,
                              int64_t longest, double* labels) {
    Room room{memory};
    const int64_t k = model.n_labels;
    const Chain chain = Chain::from(model.plain.data(), k, room.take<uint8_t>(Chain::bytes(k)));
    const ChainScratch scratch = ChainScratch::at(room.take<uint8_t>(ChainScratch::bytes(k, longest)), k, longest);
    int64_t* path = room.take<int64_t>(longest);
    for (int64_t e = 0; e < rows.n_sequences; ++e) {
        const int64_t begin = rows.offsets[e], length = rows.offsets[e + 1] - begin;
        if (length == 0) continue;
        scratch.copy_scores(scores + begin * k, length, chain);
        viterbi(chain, scratch, length, path);
        for (int64_t t = 0; t < length; ++t) labels[begin + t] = double(path[t]);
    }
}

}  // namespace

extern const predict::Functions predict_functions;
const predict::Functions predict_functions = {PANEL<float>, PANEL<double>,  workspace,
                                              score,        path_workspace, best_paths};

}  // namespace slimsvm::SLIMSVM_ISA
