// Rows whose gradients in the scores are small take part by chance, in proportion to these, and count the more: the
// expected gradient is that of all rows.
//
// Chances add up along the tile, and a row takes part where their sum passes a whole number (systematic sampling), so
// that as many take part as are expected.
#pragma once

#include "gradients/tile.h"

namespace slimsvm::SLIMSVM_ISA {

// The greatest gradient of a row in a score, without its sign.
template <class T>
inline double largest_slope(const T* r, int64_t m) {
    double largest = 0.0;
    for (int64_t c = 0; c < m; ++c) largest = most(largest, fabs(double(r[c])));
    return largest;
}

// Leaves the rows among the n active ones of a tile that take part, and returns their number. Those whose gradient is
// at least `share` times the mean all do.
template <class T>
inline int64_t thin_out(double share, int64_t n, int64_t m, uint64_t number, const Tile<T>& tile) {
    double usual = 0.0;
    for (int64_t a = 0; a < n; ++a) usual += largest_slope(tile.r + tile.active[a] * m, m);
    usual *= share / double(most(n, int64_t(1)));
    double passed = double(hashed(number) >> 40) / 16777216.0;
    int64_t count = 0;
    for (int64_t a = 0; a < n; ++a) {
        const int64_t i = tile.active[a];
        T* r = tile.r + i * m;
        const double size = largest_slope(r, m), chance = size < usual ? size / usual : 1.0;
        passed += chance;
        if (passed < 1.0) continue;
        passed -= 1.0;
        for (int64_t c = 0; c < m; ++c) r[c] = T(double(r[c]) / chance);
        tile.active[count++] = i;
    }
    return count;
}

}  // namespace slimsvm::SLIMSVM_ISA
