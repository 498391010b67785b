// A model from a file: the one function that needs files.
#include <stdio.h>

#include "predict/array.h"
#include "predict/message.h"
#include "predict/slimsvm_predict.h"

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

}  // namespace

}  // namespace slimsvm::predict

extern "C" slimsvm_model* slimsvm_load(const char* path) {
    FILE* file = path ? fopen(path, "rb") : nullptr;
    if (!file) {
        slimsvm::predict::error() << "there is no file " << (path ? path : "NULL") << " that can be read";
        return nullptr;
    }
    slimsvm::predict::Array<uint8_t> bytes;
    size_t n_bytes = 0;
    const bool is_read = slimsvm::predict::read_file(file, bytes, n_bytes);
    fclose(file);
    return is_read ? slimsvm_load_memory(bytes.data(), n_bytes) : nullptr;
}
