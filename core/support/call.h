// What the functions of the interface have in common.
#pragma once

#include "simd/vector.h"
#include "slimsvm.h"

namespace slimsvm::SLIMSVM_ISA {

// Tells the caller how many bytes of workspace the call needs; Python makes them and calls again.
template <class Call>
SLIMSVM_INLINE int32_t needs_workspace(Call& call, int64_t bytes) {
    call.n_workspace = bytes;
    return SLIMSVM_NEEDS_WORKSPACE;
}

// Whether `room` numbers are enough for rows times columns of them.
SLIMSVM_INLINE bool holds(int64_t room, int64_t rows, int64_t columns) {
    return rows >= 0 && columns >= 0 && (columns == 0 || rows <= room / columns);
}

// Where memory for vectors begins in a workspace that has ALIGNMENT bytes more than it needs.
template <class T>
SLIMSVM_INLINE T* aligned(uint8_t* workspace) {
    return reinterpret_cast<T*>(workspace + (ALIGNMENT - int64_t(uintptr_t(workspace) % ALIGNMENT)) % ALIGNMENT);
}

}  // namespace slimsvm::SLIMSVM_ISA
