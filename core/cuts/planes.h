// The planes of examples in memory: a dual ascent's constraints, each found by an oracle for one example.
//
// Plane k of example e is a constant and g = sum of coefficients at (row of e, output) and over the plain parameters:
// the entries where[k], ..., where[k + 1] - 1, each with a row (counted from the example's first one; below 0: plain),
// a column and a value. The planes of an example are a linked list. What compiled code finds there is checked on the
// way: Python may have changed the arrays.
#pragma once

#include "support/call.h"

namespace slimsvm::SLIMSVM_ISA {

class Planes {
   public:
    explicit Planes(const struct slimsvm_planes& store) : store(store) {}
    const struct slimsvm_planes& store;

    int64_t n_planes() const { return store.n[0]; }
    int64_t n_entries() const { return store.n[1]; }
    bool is_sound() const {
        return n_planes() >= 0 && n_planes() < store.room && n_entries() >= 0 && n_entries() <= store.entry_room;
    }
    bool is_plane(int64_t k) const {
        return k < n_planes() && store.where[k] >= 0 && store.where[k] <= store.where[k + 1] &&
               store.where[k + 1] <= n_entries();
    }

    // Calls visit(k) for the planes of an example, the newest first. Whether all are planes and the list has an end.
    template <class F>
    bool each(int64_t e, const F& visit) const {
        int64_t t = 0;
        for (int64_t k = store.first[e]; k >= 0; k = store.following[k], ++t) {
            if (t == n_planes() || !is_plane(k)) return false;
            visit(k);
        }
        return true;
    }

    // Whether the entries of plane k lie on `length` rows, m outputs and n_plain plain parameters.
    bool fits(int64_t k, int64_t length, int64_t m, int64_t n_plain) const {
        for (int64_t q = store.where[k]; q < store.where[k + 1]; ++q) {
            const int64_t row = store.row[q], column = store.column[q];
            if (row >= length || column < 0 || column >= (row < 0 ? n_plain : m)) return false;
        }
        return true;
    }
};

}  // namespace slimsvm::SLIMSVM_ISA
