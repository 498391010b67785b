// What a kernel is a map of; see kernels/maps.h.
#pragma once

#include <stdint.h>

namespace slimsvm {

// What z is a sum of over the features, with the number that leaves the map without a parameter.
enum class Step : int32_t {
    SQUARED,   // -unit gamma_f (x_f - z_f)^2
    ABSOLUTE,  // -unit gamma_f |x_f - z_f|
    INNER      // gamma x_f z_f, and coef0 beside
};

}  // namespace slimsvm
