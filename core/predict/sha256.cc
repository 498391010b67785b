#include "predict/sha256.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

#include "simd/processor.h"
#elif defined(__aarch64__) && (!defined(__clang__) || __clang_major__ >= 16 || defined(__ARM_FEATURE_SHA2))
#define SLIMSVM_ARM_SHA256
#include <arm_neon.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif
#endif

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

void add_blocks_plainly(const uint8_t* blocks, size_t n, uint32_t (&state)[8]) {
    for (; n > 0; --n, blocks += 64) add_block(blocks, state);
}

#if defined(__x86_64__)

// The same by the processor's own instructions, four times as fast: four rounds at a time on the words a, b, e, f and
// c, d, g, h.
__attribute__((target("sha,sse4.1"))) void add_blocks_at_once(const uint8_t* blocks, size_t n, uint32_t (&state)[8]) {
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    const __m128i* constants = reinterpret_cast<const __m128i*>(ROUNDS);
    const __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(state)), 0xb1);
    const __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(state + 4)), 0x1b);
    __m128i feba = _mm_alignr_epi8(badc, hgfe, 8), hgdc = _mm_blend_epi16(hgfe, badc, 0xf0);
    for (; n > 0; --n, blocks += 64) {
        const __m128i feba_before = feba, hgdc_before = hgdc;
        __m128i words[4];  // the last sixteen words
        for (int i = 0; i < 16; ++i) {
            __m128i& now = words[i % 4];
            const __m128i last = words[(i + 3) % 4];
            if (i < 4)
                now = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(blocks) + i), big_endian);
            else
                now = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(now, words[(i + 1) % 4]),
                                                         _mm_alignr_epi8(last, words[(i + 2) % 4], 4)),
                                           last);
            const __m128i sums = _mm_add_epi32(now, _mm_loadu_si128(constants + i));
            hgdc = _mm_sha256rnds2_epu32(hgdc, feba, sums);
            feba = _mm_sha256rnds2_epu32(feba, hgdc, _mm_shuffle_epi32(sums, 0x0e));
        }
        feba = _mm_add_epi32(feba, feba_before);
        hgdc = _mm_add_epi32(hgdc, hgdc_before);
    }
    const __m128i abef = _mm_shuffle_epi32(feba, 0x1b), dchg = _mm_shuffle_epi32(hgdc, 0xb1);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(state), _mm_blend_epi16(abef, dchg, 0xf0));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(state + 4), _mm_alignr_epi8(dchg, abef, 8));
}

bool has_instructions() {
    unsigned a, b, c, d;
    if (chosen_isa() == Isa::BASELINE) return false;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSE4_1) || !(c & bit_SSSE3)) return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}

void add_blocks(const uint8_t* blocks, size_t n, uint32_t (&state)[8]) {
    (has_instructions() ? add_blocks_at_once : add_blocks_plainly)(blocks, n, state);
}

#elif defined(SLIMSVM_ARM_SHA256)

#if defined(__clang__)
#define SLIMSVM_SHA256_TARGET __attribute__((target("sha2")))
#else
#define SLIMSVM_SHA256_TARGET __attribute__((target("+crypto")))
#endif

// The same by the processor's own instructions: four rounds at a time.
SLIMSVM_SHA256_TARGET void add_blocks_at_once(const uint8_t* blocks, size_t n, uint32_t (&state)[8]) {
    uint32x4_t abcd = vld1q_u32(state), efgh = vld1q_u32(state + 4);
    for (; n > 0; --n, blocks += 64) {
        const uint32x4_t abcd_before = abcd, efgh_before = efgh;
        uint32x4_t words[4];  // the last sixteen words
        for (int i = 0; i < 16; ++i) {
            uint32x4_t& now = words[i % 4];
            if (i < 4)
                now = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(blocks + 16 * i)));
            else
                now = vsha256su1q_u32(vsha256su0q_u32(now, words[(i + 1) % 4]), words[(i + 2) % 4], words[(i + 3) % 4]);
            const uint32x4_t sums = vaddq_u32(now, vld1q_u32(ROUNDS + 4 * i)), abcd_last = abcd;
            abcd = vsha256hq_u32(abcd, efgh, sums);
            efgh = vsha256h2q_u32(efgh, abcd_last, sums);
        }
        abcd = vaddq_u32(abcd, abcd_before);
        efgh = vaddq_u32(efgh, efgh_before);
    }
    vst1q_u32(state, abcd);
    vst1q_u32(state + 4, efgh);
}

bool has_instructions() {
#if defined(__ARM_FEATURE_SHA2)
    return true;
#elif defined(__linux__)
    constexpr unsigned long sha2 = 1 << 6;
    return getauxval(AT_HWCAP) & sha2;
#else
    return false;
#endif
}

void add_blocks(const uint8_t* blocks, size_t n, uint32_t (&state)[8]) {
    (has_instructions() ? add_blocks_at_once : add_blocks_plainly)(blocks, n, state);
}

#else

void add_blocks(const uint8_t* blocks, size_t n, uint32_t (&state)[8]) { add_blocks_plainly(blocks, n, state); }

#endif

}  // namespace

void sha256(const uint8_t* bytes, size_t n, uint8_t (&digest)[32]) {
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const size_t at = n / 64 * 64;
    add_blocks(bytes, n / 64, state);
    uint8_t last[128] = {};
    if (n > at) memcpy(last, bytes + at, n - at);
    last[n - at] = 0x80;
    const size_t n_last = n - at < 56 ? 64 : 128;
    for (int i = 0; i < 8; ++i) last[n_last - 1 - size_t(i)] = uint8_t(uint64_t(n) << 3 >> 8 * i);
    add_blocks(last, n_last / 64, state);
    for (int i = 0; i < 32; ++i) digest[i] = uint8_t(state[i / 4] >> (24 - 8 * (i % 4)));
}

}  // namespace slimsvm::predict
