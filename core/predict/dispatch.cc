// The functions of each instruction set, of which every model takes one at its loading.
#include "predict/model.h"
#include "simd/processor.h"

namespace slimsvm {

namespace baseline {
extern const predict::Functions predict_functions;
}
#if defined(SLIMSVM_HAS_AVX2)
namespace avx2 {
extern const predict::Functions predict_functions;
}
#endif
#if defined(SLIMSVM_HAS_AVX512)
namespace avx512 {
extern const predict::Functions predict_functions;
}
#endif

namespace predict {

const Functions* choose_functions() {
#if defined(SLIMSVM_HAS_AVX2)
    const Isa isa = chosen_isa();
#if defined(SLIMSVM_HAS_AVX512)
    if (isa == Isa::AVX512) return &avx512::predict_functions;
#endif
    if (isa == Isa::AVX2) return &avx2::predict_functions;
#endif
    return &baseline::predict_functions;
}

}  // namespace predict

}  // namespace slimsvm
