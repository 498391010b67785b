// What Python asks about the instruction set in use.
#include "simd/vector.h"

namespace slimsvm::SLIMSVM_ISA {

int64_t vector_bytes(void) { return VECTOR_BYTES; }
int64_t panel_bytes(void) { return VECTOR_BYTES * VECTORS; }

}  // namespace slimsvm::SLIMSVM_ISA
