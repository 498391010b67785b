// Pieces of a workspace.
#pragma once

#include "simd/vector.h"

namespace slimsvm::SLIMSVM_ISA {

// Hands out arrays one after another, each at a multiple of ALIGNMENT; without memory it only counts `bytes`. Whoever
// takes the same arrays from both has a workspace of the right size.
struct Room {
    uint8_t* memory = nullptr;
    int64_t bytes = 0;

    template <class T>
    T* take(int64_t n) {
        T* place = memory ? reinterpret_cast<T*>(memory + bytes) : nullptr;
        bytes += divide_up(n * int64_t(sizeof(T)), ALIGNMENT) * ALIGNMENT;
        return place;
    }
};

}  // namespace slimsvm::SLIMSVM_ISA
