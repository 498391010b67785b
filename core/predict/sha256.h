// SHA-256 (FIPS 180-4), the checksum of model files.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace slimsvm::predict {

void sha256(const uint8_t* bytes, size_t n, uint8_t (&digest)[32]);

}  // namespace slimsvm::predict
