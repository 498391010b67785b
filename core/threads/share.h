// `Team::share` for a function object, f(lo, hi, worker).
#pragma once

#include "simd/vector.h"
#include "threads/pool.h"

namespace slimsvm::SLIMSVM_ISA {

template <class F>
inline void run_range(const void* context, int64_t lo, int64_t hi, int64_t worker) {
    (*static_cast<const F*>(context))(lo, hi, worker);
}

template <class F>
inline void share(Team& team, int64_t n_tiles, const F& f) {
    team.share(n_tiles, &run_range<F>, &f);
}

}  // namespace slimsvm::SLIMSVM_ISA
