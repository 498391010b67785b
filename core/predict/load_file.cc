// A model from a file: the one function that needs files.
#include <stdio.h>

#include "predict/array.h"
#include "predict/message.h"
#include "predict/slimsvm_predict.h"

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#include <sys/stat.h>
#endif

namespace slimsvm::predict {

namespace {

bool fails(const char* text) { return error() << text, false; }

// All bytes of a file.
bool read_file(FILE* file, Array<uint8_t>& bytes, size_t& n_bytes) {
    if (fseek(file, 0, SEEK_END) != 0) return fails("the model file cannot be read");
    const long end = ftell(file);
    if (end < 0 || fseek(file, 0, SEEK_SET) != 0) return fails("the model file cannot be read");
    n_bytes = size_t(end);
    if (!bytes.make(int64_t(end))) return fails("there is no memory for the model file");
    return fread(bytes.data(), 1, n_bytes, file) == n_bytes || fails("the model file cannot be read");
}

slimsvm_model* load_copy(FILE* file) {
    Array<uint8_t> bytes;
    size_t n_bytes = 0;
    return read_file(file, bytes, n_bytes) ? slimsvm_load_memory(bytes.data(), n_bytes) : nullptr;
}

#if defined(__unix__) || defined(__APPLE__)

// Smaller files are copied sooner than pages are mapped.
constexpr long LEAST_MAPPED = 1 << 18;

// The file's pages as they lie in the system's cache: of megabytes, a copy takes more time than all that is done with
// it.
slimsvm_model* load_mapped(FILE* file) {
    struct stat status;
    if (fstat(fileno(file), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size < LEAST_MAPPED ||
        uint64_t(status.st_size) > SIZE_MAX)
        return load_copy(file);
#if defined(MAP_POPULATE)
    constexpr int flags = MAP_PRIVATE | MAP_POPULATE;
#else
    constexpr int flags = MAP_PRIVATE;
#endif
    const size_t n_bytes = size_t(status.st_size);
    void* bytes = mmap(nullptr, n_bytes, PROT_READ, flags, fileno(file), 0);
    if (bytes == MAP_FAILED) return load_copy(file);
    slimsvm_model* model = slimsvm_load_memory(bytes, n_bytes);
    munmap(bytes, n_bytes);
    return model;
}

#else

slimsvm_model* load_mapped(FILE* file) { return load_copy(file); }

#endif

}  // namespace

}  // namespace slimsvm::predict

extern "C" slimsvm_model* slimsvm_load(const char* path) {
    FILE* file = path ? fopen(path, "rb") : nullptr;
    if (!file) {
        slimsvm::predict::error() << "there is no file " << (path ? path : "NULL") << " that can be read";
        return nullptr;
    }
    slimsvm_model* model = slimsvm::predict::load_mapped(file);
    fclose(file);
    return model;
}
