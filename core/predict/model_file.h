// The bytes of a .slim file as a header and named arrays; src/slimsvm/modelfile.py has the layout.
#pragma once

#include <stddef.h>

#include "predict/array.h"
#include "predict/json.h"

namespace slimsvm::predict {

// An array of a file, where it lies: little-endian, perhaps not aligned, all of it within the file.
struct FileArray {
    const uint8_t* bytes = nullptr;  // null: there is no such array
    char type = 0;                   // b, i, u, f or U as NumPy has it
    int64_t item_size = 0;
    int64_t n_axes = 0, shape[2] = {0, 0};
    int64_t n_items = 0;

    explicit operator bool() const { return bytes != nullptr; }
    bool is_numbers() const { return bytes && type != 'U'; }
    bool is_reals() const { return bytes && type == 'f'; }
    double number(int64_t i) const;
    int64_t whole(int64_t i) const;  // of types b, i and u
    // All numbers to `numbers`; false where there is no memory.
    bool copy_to(Array<double>& numbers) const;
};

// A file's header, and its arrays by name. The bytes stay where they are. The header is copied, so that what was
// checked of it stays true where the bytes are those of a file that someone writes to meanwhile.
struct ModelFile {
    Array<char> text;
    Json header, entries;
    const uint8_t* bytes = nullptr;
    int64_t n_bytes = 0;

    // False, with a message, where the bytes are no model file.
    bool read(const uint8_t* file, size_t size);
    // The array of that name, or none where the file has none; false, with a message, where its entry is not right.
    bool find(const char* name, FileArray& array) const;
};

}  // namespace slimsvm::predict
