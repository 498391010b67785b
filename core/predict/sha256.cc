#include "predict/sha256.h"

#include <string.h>

namespace slimsvm::predict {

namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr uint32_t ROUNDS[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

inline uint32_t turned(uint32_t word, int bits) { return word >> bits | word << (32 - bits); }
inline uint32_t big_endian(const uint8_t* b) {
    return uint32_t(b[0]) << 24 | uint32_t(b[1]) << 16 | uint32_t(b[2]) << 8 | uint32_t(b[3]);
}

void add_block(const uint8_t* block, uint32_t (&state)[8]) {
    uint32_t words[64];
    for (int i = 0; i < 16; ++i) words[i] = big_endian(block + 4 * i);
    for (int i = 16; i < 64; ++i) {
        const uint32_t early = words[i - 15], late = words[i - 2];
        words[i] = words[i - 16] + words[i - 7] + (turned(early, 7) ^ turned(early, 18) ^ early >> 3) +
                   (turned(late, 17) ^ turned(late, 19) ^ late >> 10);
    }
    uint32_t s[8];
    memcpy(s, state, sizeof s);
    // The eight words move on by one place in each round: eight rounds name them afresh, none is moved.
    for (int i = 0; i < 64; i += 8) {
#pragma GCC unroll 8
        for (int j = 0; j < 8; ++j) {
            const uint32_t a = s[(8 - j) % 8], b = s[(9 - j) % 8], c = s[(10 - j) % 8], e = s[(12 - j) % 8],
                           f = s[(13 - j) % 8], g = s[(14 - j) % 8];
            uint32_t &d = s[(11 - j) % 8], &h = s[(15 - j) % 8];
            h += (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + ROUNDS[i + j] + words[i + j];
            d += h;
            h += (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        }
    }
    for (int i = 0; i < 8; ++i) state[i] += s[i];
}

}  // namespace

void sha256(const uint8_t* bytes, size_t n, uint8_t (&digest)[32]) {
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    size_t at = 0;
    for (; at + 64 <= n; at += 64) add_block(bytes + at, state);
    uint8_t last[128] = {};
    if (n > at) memcpy(last, bytes + at, n - at);
    last[n - at] = 0x80;
    const size_t n_last = n - at < 56 ? 64 : 128;
    for (int i = 0; i < 8; ++i) last[n_last - 1 - size_t(i)] = uint8_t(uint64_t(n) << 3 >> 8 * i);
    for (size_t i = 0; i < n_last; i += 64) add_block(last + i, state);
    for (int i = 0; i < 32; ++i) digest[i] = uint8_t(state[i / 4] >> (24 - 8 * (i % 4)));
}

}  // namespace slimsvm::predict
