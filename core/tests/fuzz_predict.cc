// Throws altered model files at the runtime: `fuzz_predict FIRST COUNT raw|mended FILE...`
//
// Numbers FIRST, ..., FIRST + COUNT - 1 each name an altered copy of one of the files. With `mended` the copy's size
// and checksum are right again, so that what reads the header and the arrays is reached. What is loaded is asked for
// scores. Ends with 0 if every file was loaded or refused with a message, nothing was left allocated, and memory stayed
// in proportion to the file. `make fuzz-runtime` builds it with sanitizers, which stop at the first bad access.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "predict/sha256.h"
#include "predict/slimsvm_predict.h"

namespace {

// Bytes that reading a file may take for each of its own, and beside them.
constexpr size_t MOST_TIMES = 1200, MOST_BESIDE = 1 << 20;
constexpr size_t MOST_BYTES = 1 << 16;
constexpr int64_t MOST_FEATURES = 4096, MOST_SCORES = 1 << 16, MOST_ROWS = 7;
constexpr size_t BEFORE_HASHED = 44, HEADER_SIZE = 52, PREFIX = 60;

// ---------------------------------------------------------------- memory

size_t allocated, most_allocated;

}  // namespace

extern "C" {
size_t __sanitizer_get_allocated_size(const volatile void* place);
int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, size_t), void (*)(const volatile void*));
void __sanitizer_set_death_callback(void (*)(void));
}

namespace {

void count_malloc(const volatile void*, size_t size) {
    allocated += size;
    if (allocated > most_allocated) most_allocated = allocated;
}
void count_free(const volatile void* place) {
    if (place) allocated -= __sanitizer_get_allocated_size(place);
}

long long current;
void say_where() { fprintf(stderr, "at number %lld\n", current); }

void check(bool is_right, const char* what) {
    if (is_right) return;
    fprintf(stderr, "%s\n", what);
    say_where();
    exit(1);
}

// ---------------------------------------------------------------- alterations

uint64_t state;
uint64_t draw(uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
}

struct Bytes {
    uint8_t data[MOST_BYTES];
    size_t size;
};

const char* const WORDS[] = {"0",
                             "-1",
                             "1",
                             "2",
                             "9223372036854775807",
                             "9223372036854775808",
                             "4294967296",
                             "1000000000000",
                             "1e308",
                             "1e999",
                             "-0.5",
                             "null",
                             "true",
                             "false",
                             "[]",
                             "{}",
                             "\"\"",
                             "[[",
                             "{\"a\":",
                             "\"<f8\"",
                             "\"<U1\"",
                             "\"<U999999999\"",
                             "\"|b1\"",
                             "\"<i8\"",
                             "\"<f2\"",
                             "\"basis\"",
                             "\"coef\"",
                             "\"classes\"",
                             "\"features\"",
                             "\"weights\": [1, 5], ",
                             "\"poly\"",
                             "\"precomputed\"",
                             "\"matern32\"",
                             "\"rational_quadratic\"",
                             "\"additive\", \"family\": \"matern32\"",
                             "\"SequenceSVM\"",
                             "\"SVC\"",
                             "\"OrdinalSVC\"",
                             "\"window\": 3, ",
                             "\"window\": 1048576, ",
                             "[[[[[[[[[[[[[[[[",
                             "\\u12",
                             "\\"};
const double NUMBERS[] = {0.0, -0.0, 1.0, -1.0, 1e308, -1e308, 1e-308, 1e30, 65536.0, 0.5};

// Puts `n_new` bytes in the place of `n_old`.
void replace(Bytes& bytes, size_t at, size_t n_old, const void* put, size_t n_new) {
    if (at + n_old > bytes.size || bytes.size - n_old + n_new > MOST_BYTES) return;
    memmove(bytes.data + at + n_new, bytes.data + at + n_old, bytes.size - at - n_old);
    memcpy(bytes.data + at, put, n_new);
    bytes.size += n_new - n_old;
}

// The header's length as the file has it, as far as there is such a header.
size_t header_end(const Bytes& bytes) {
    uint64_t n = 0;
    if (bytes.size < PREFIX) return bytes.size;
    memcpy(&n, bytes.data + HEADER_SIZE, sizeof n);
    return n < bytes.size - PREFIX ? PREFIX + size_t(n) : bytes.size;
}

// A number, a word or a sign of the header becomes another. Its length is kept where spaces at its end allow it.
void alter_header(Bytes& bytes) {
    const size_t end = header_end(bytes);
    if (end <= PREFIX) return;
    size_t at = PREFIX + draw(end - PREFIX);
    const char* stops = "\",:[]{} ";
    while (at > PREFIX && !strchr(stops, bytes.data[at - 1])) --at;
    size_t n_old = 0;
    while (at + n_old < end && !strchr(stops, bytes.data[at + n_old])) ++n_old;
    const char* word = WORDS[draw(sizeof WORDS / sizeof *WORDS)];
    char digits[24];
    if (draw(2)) {
        snprintf(digits, sizeof digits, "%llu", static_cast<unsigned long long>(draw(draw(2) ? 12 : 5000)));
        word = digits;
    }
    const size_t n_new = strlen(word);
    replace(bytes, at, n_old, word, n_new);
    uint64_t n;
    if (bytes.size < PREFIX) return;
    memcpy(&n, bytes.data + HEADER_SIZE, sizeof n);
    if (draw(8)) n += n_new - n_old;
    memcpy(bytes.data + HEADER_SIZE, &n, sizeof n);
    // Arrays stay where their offsets say: the padding before them shrinks or grows.
    const size_t now = PREFIX + size_t(n) < bytes.size ? PREFIX + size_t(n) : bytes.size;
    if (draw(8) == 0) return;
    if (n_new < n_old) {
        const char spaces[64] = {};
        replace(bytes, now, 0, spaces, n_old - n_new < 64 ? n_old - n_new : 64);
    } else {
        size_t n_more = n_new - n_old;
        while (n_more && now < bytes.size && bytes.data[now] == 0) {
            replace(bytes, now, 1, "", 0);
            --n_more;
        }
    }
}

void alter(Bytes& bytes) {
    const size_t at = bytes.size ? draw(bytes.size) : 0, end = header_end(bytes);
    switch (draw(8)) {
        case 0:
            if (bytes.size) bytes.data[at] = uint8_t(draw(256));
            break;
        case 1:
            if (bytes.size) bytes.data[at] ^= uint8_t(1u << draw(8));
            break;
        case 2:
            if (draw(4) == 0) bytes.size = at;
            break;
        case 3:  // a number of an array
            if (bytes.size > end + 8) {
                const double number = NUMBERS[draw(sizeof NUMBERS / sizeof *NUMBERS)];
                const int64_t whole = int64_t(draw(40)) - 2;
                const size_t place = end + draw((bytes.size - end) / 8) * 8;
                memcpy(bytes.data + place, draw(2) ? static_cast<const void*>(&number) : &whole, 8);
            }
            break;
        case 4:  // a part twice
            if (bytes.size) {
                uint8_t part[64];
                const size_t n = draw(64) < bytes.size - at ? draw(64) % (bytes.size - at + 1) : 0;
                memcpy(part, bytes.data + at, n);
                replace(bytes, bytes.size ? draw(bytes.size) : 0, draw(2) ? n : 0, part, n);
            }
            break;
        default:
            alter_header(bytes);
    }
}

void mend(Bytes& bytes) {
    if (bytes.size < PREFIX) return;
    const uint64_t size = bytes.size;
    const uint32_t version = 1;
    uint8_t digest[32];
    memcpy(bytes.data, "slimsvm\n", 8);
    memcpy(bytes.data + 8, &version, sizeof version);
    memcpy(bytes.data + BEFORE_HASHED, &size, sizeof size);
    slimsvm::predict::sha256(bytes.data + BEFORE_HASHED, bytes.size - BEFORE_HASHED, digest);
    memcpy(bytes.data + 12, digest, sizeof digest);
}

// ---------------------------------------------------------------- what is asked of a model

double random_value() { return draw(3) ? (double(draw(2001)) - 1000.0) / 250.0 : 0.0; }

int ask_rows(const slimsvm_model* model, const slimsvm_rows& rows, double* out) {
    return slimsvm_scores(model, &rows, 1, out) + slimsvm_predict(model, &rows, 1, out) +
           slimsvm_probabilities(model, &rows, 1, out);
}

void ask(const slimsvm_model* model) {
    const int64_t d = slimsvm_n_features(model), m = slimsvm_n_scores(model), n = 1 + int64_t(draw(MOST_ROWS));
    const int64_t n_predictions = slimsvm_n_predictions(model), n_probabilities = slimsvm_n_probabilities(model);
    for (int64_t i = 0; i < slimsvm_n_labels(model) && i < 100; ++i) {
        const char* text = slimsvm_label_text(model, i);
        if (text) check(strlen(text) < MOST_BYTES, "a label without an end");
        slimsvm_label_number(model, i);
    }
    if (m > MOST_SCORES || m < 0) return;
    int64_t most = m > n_predictions ? m : n_predictions;
    if (n_probabilities > most) most = n_probabilities;
    double* out = static_cast<double*>(malloc(size_t(n * most) * sizeof(double)));
    slimsvm_rows rows = {};
    rows.n_rows = n;
    rows.n_features = d;
    const int64_t lengths[2] = {n / 2, n - n / 2};
    if (draw(2)) {
        rows.lengths = lengths;
        rows.n_sequences = 2;
    }
    int failed = 0;
    if (d <= MOST_FEATURES && draw(2)) {
        double* values = static_cast<double*>(malloc(size_t(n * d + 1) * sizeof(double)));
        rows.type = int32_t(draw(2));
        for (int64_t i = 0; i < n * d; ++i) {
            if (rows.type == SLIMSVM_FLOAT64)
                values[i] = random_value();
            else
                reinterpret_cast<float*>(values)[i] = float(random_value());
        }
        rows.values = values;
        failed = ask_rows(model, rows, out);
        free(values);
    } else {  // of each row some features that rise
        float values[4 * MOST_ROWS];
        int64_t columns[4 * MOST_ROWS], starts[MOST_ROWS + 1] = {};
        for (int64_t i = 0; i < n; ++i) {
            starts[i + 1] = starts[i];
            for (int64_t c = int64_t(draw(3)); c < d && starts[i + 1] < starts[i] + 4; c += 1 + int64_t(draw(4))) {
                values[starts[i + 1]] = float(random_value());
                columns[starts[i + 1]++] = c;
            }
        }
        rows.values = values;
        rows.columns = columns;
        rows.starts = starts;
        rows.form = SLIMSVM_CSR64;
        failed = ask_rows(model, rows, out);
    }
    check(!failed || *slimsvm_last_error(), "no scores, and no message");
    free(out);
}

bool read_whole(const char* path, Bytes& bytes) {
    FILE* file = fopen(path, "rb");
    if (!file) return false;
    bytes.size = fread(bytes.data, 1, MOST_BYTES, file);
    fclose(file);
    return bytes.size > 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 5) return fprintf(stderr, "fuzz_predict FIRST COUNT raw|mended FILE...\n"), 2;
    const long long first = atoll(argv[1]), count = atoll(argv[2]);
    const bool mends = strcmp(argv[3], "mended") == 0;
    const int n_files = argc - 4;
    Bytes* files = static_cast<Bytes*>(malloc(size_t(n_files) * sizeof(Bytes)));
    for (int i = 0; i < n_files; ++i)
        if (!read_whole(argv[4 + i], files[i])) return fprintf(stderr, "%s cannot be read\n", argv[4 + i]), 2;
    __sanitizer_set_death_callback(say_where);
    __sanitizer_install_malloc_and_free_hooks(count_malloc, count_free);
    long long n_loaded = 0;
    size_t greatest = 0;
    static Bytes bytes;
    for (current = first; current < first + count; ++current) {
        state = uint64_t(current) * 2862933555777941757u + 3037000493u;
        draw(2);
        const Bytes& file = files[draw(uint64_t(n_files))];
        bytes.size = file.size;
        memcpy(bytes.data, file.data, file.size);
        for (uint64_t n = 1 + draw(draw(4) ? 2 : 6); n > 0; --n) alter(bytes);
        if (mends) mend(bytes);
        // A copy of the file's own size: a look beyond its end is seen.
        uint8_t* copy = static_cast<uint8_t*>(malloc(bytes.size + !bytes.size));
        memcpy(copy, bytes.data, bytes.size);
        allocated = most_allocated = 0;
        slimsvm_model* model = slimsvm_load_memory(copy, bytes.size);
        check(most_allocated <= MOST_TIMES * bytes.size + MOST_BESIDE, "memory out of proportion to the file");
        if (most_allocated > greatest) greatest = most_allocated;
        memset(copy, 0xff, bytes.size);  // a model keeps nothing of it
        if (model) {
            ++n_loaded;
            ask(model);
        } else {
            check(*slimsvm_last_error() != 0, "no model, and no message");
        }
        slimsvm_free(model);
        check(allocated == 0, "memory that was not freed");
        free(copy);
    }
    printf("%lld files, %lld of them loaded and asked for scores; at most %zu bytes allocated at a time\n", count,
           n_loaded, greatest);
    free(files);
    return 0;
}
