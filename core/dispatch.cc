// The instruction set is chosen once, when the library is loaded: the best that the processor has, or the lower one
// that the environment variable SLIMSVM_ISA names.
#include "simd/processor.h"
#include "slimsvm.h"
#include "threads/pool.h"

#define SLIMSVM_DECLARE(name) int32_t name(struct slimsvm_##name##_call* call);
namespace slimsvm::baseline {
SLIMSVM_FUNCTIONS(SLIMSVM_DECLARE)
int64_t vector_bytes(void);
int64_t panel_bytes(void);
}  // namespace slimsvm::baseline
#if defined(SLIMSVM_HAS_AVX2)
namespace slimsvm::avx2 {
SLIMSVM_FUNCTIONS(SLIMSVM_DECLARE)
int64_t vector_bytes(void);
int64_t panel_bytes(void);
}  // namespace slimsvm::avx2
#endif
#if defined(SLIMSVM_HAS_AVX512)
namespace slimsvm::avx512 {
SLIMSVM_FUNCTIONS(SLIMSVM_DECLARE)
int64_t vector_bytes(void);
int64_t panel_bytes(void);
}  // namespace slimsvm::avx512
#endif
#undef SLIMSVM_DECLARE

namespace {

#define SLIMSVM_MEMBER(name) int32_t (*name)(struct slimsvm_##name##_call*);
struct Functions {
    const char* isa;
    int64_t (*vector_bytes)(void);
    int64_t (*panel_bytes)(void);
    SLIMSVM_FUNCTIONS(SLIMSVM_MEMBER)
};
#undef SLIMSVM_MEMBER

#define SLIMSVM_BASELINE(name) slimsvm::baseline::name,
constexpr Functions baseline = {"baseline", slimsvm::baseline::vector_bytes, slimsvm::baseline::panel_bytes,
                                SLIMSVM_FUNCTIONS(SLIMSVM_BASELINE)};
#if defined(SLIMSVM_HAS_AVX2)
#define SLIMSVM_AVX2(name) slimsvm::avx2::name,
constexpr Functions avx2 = {"avx2", slimsvm::avx2::vector_bytes, slimsvm::avx2::panel_bytes,
                            SLIMSVM_FUNCTIONS(SLIMSVM_AVX2)};
#endif
#if defined(SLIMSVM_HAS_AVX512)
#define SLIMSVM_AVX512(name) slimsvm::avx512::name,
constexpr Functions avx512 = {"avx512", slimsvm::avx512::vector_bytes, slimsvm::avx512::panel_bytes,
                              SLIMSVM_FUNCTIONS(SLIMSVM_AVX512)};
#endif

const Functions* functions_of([[maybe_unused]] slimsvm::Isa isa) {  // unused where there is but one
#if defined(SLIMSVM_HAS_AVX512)
    if (isa == slimsvm::Isa::AVX512) return &avx512;
#endif
#if defined(SLIMSVM_HAS_AVX2)
    if (isa == slimsvm::Isa::AVX2) return &avx2;
#endif
    return &baseline;
}

const Functions* functions = &baseline;

__attribute__((constructor)) void choose() { functions = functions_of(slimsvm::chosen_isa()); }

// What every function may rely on, where its call has these fields: at least one thread, no more than the pool has, and
// no bytes of workspace where there is none.
template <class Call>
auto limit_threads(Call& call, int) -> decltype(call.n_threads, bool()) {
    if (call.n_threads > slimsvm::MOST_THREADS) call.n_threads = slimsvm::MOST_THREADS;
    return call.n_threads >= 1;
}
template <class Call>
bool limit_threads(Call&, ...) {
    return true;
}
template <class Call>
auto limit_workspace(Call& call, int) -> decltype(call.workspace, void()) {
    if (!call.workspace) call.n_workspace = 0;
}
template <class Call>
void limit_workspace(Call&, ...) {}

template <class Call>
int32_t run(int32_t (*function)(Call*), Call* call) {
    if (!limit_threads(*call, 0)) return SLIMSVM_BAD_ARGUMENT;
    limit_workspace(*call, 0);
    return function(call);
}

template <class Whole>
int64_t outside(const Whole* numbers, int64_t n, int64_t lo, int64_t hi) {
    // Whole blocks first, without an exit that would keep the compiler from vector code.
    constexpr int64_t block = 256;
    int64_t start = 0;
    for (; start + block <= n; start += block) {
        bool is_out = false;
        for (int64_t i = start; i < start + block; ++i)
            is_out |= (int64_t(numbers[i]) < lo) | (int64_t(numbers[i]) >= hi);
        if (is_out) break;
    }
    for (int64_t i = start; i < n; ++i)
        if (int64_t(numbers[i]) < lo || int64_t(numbers[i]) >= hi) return i;
    return -1;
}

template <class Whole>
int64_t fall(const Whole* numbers, int64_t n, int64_t last) {
    int64_t before = 0;
    for (int64_t i = 0; i < n; ++i) {
        if (int64_t(numbers[i]) < before) return i;
        before = int64_t(numbers[i]);
    }
    return n > 0 && before > last ? n - 1 : -1;
}

}  // namespace

extern "C" {

const char* slimsvm_abi(void) { return SLIMSVM_ABI; }
const char* slimsvm_isa(void) { return functions->isa; }
const char* slimsvm_best_isa(void) { return functions_of(slimsvm::best_isa())->isa; }
int64_t slimsvm_vector_bytes(void) { return functions->vector_bytes(); }
int64_t slimsvm_panel_bytes(void) { return functions->panel_bytes(); }

const char* slimsvm_status_text(int32_t status) {
    switch (status) {
        case SLIMSVM_OK:
            return "done";
        case SLIMSVM_BAD_ARGUMENT:
            return "an argument has a value or a shape that does not fit the others";
        case SLIMSVM_NEEDS_WORKSPACE:
            return "the workspace is too small: n_workspace says how many bytes are needed";
        default:
            return "unknown status";
    }
}

int64_t slimsvm_find_outside(const void* numbers, int64_t size, int64_t n, int64_t lo, int64_t hi) {
    return size == 4 ? outside(static_cast<const int32_t*>(numbers), n, lo, hi)
                     : outside(static_cast<const int64_t*>(numbers), n, lo, hi);
}

int64_t slimsvm_find_fall(const void* numbers, int64_t size, int64_t n, int64_t last) {
    return size == 4 ? fall(static_cast<const int32_t*>(numbers), n, last)
                     : fall(static_cast<const int64_t*>(numbers), n, last);
}

#define SLIMSVM_FORWARD(name) \
    int32_t slimsvm_##name(struct slimsvm_##name##_call* call) { return run(functions->name, call); }
SLIMSVM_FUNCTIONS(SLIMSVM_FORWARD)
}
