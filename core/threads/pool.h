// One pool of threads. Work is a range of tiles, cut into tasks; which thread does which leaves no trace in the result.
//
// Whoever calls is a thread of the team too, and never waits for a helper that has not begun. Between two calls of
// `share` within one Team the helpers stay awake; a Team lives as long as one call across the border.
#pragma once

#include <stdint.h>

namespace slimsvm {

// Does the tiles lo, ..., hi - 1 of the work that `context` describes. `worker` is the number of the thread in its
// team, from 0 to n_threads - 1: workspaces are one for each.
typedef void (*TileTask)(const void* context, int64_t lo, int64_t hi, int64_t worker);

// Threads that one Team has at most.
constexpr int64_t MOST_THREADS = 256;

struct Crew;

class Team {
   public:
    // n_threads: threads, the calling one included. microseconds: what one thread would take for everything, about;
    // little work is not shared, and helpers who sleep are not woken for work that is over before they are awake.
    Team(int64_t n_threads, double microseconds);
    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    // task(context, lo, hi, worker) for ranges that cover the tiles 0, ..., n_tiles - 1; returns when all are done.
    void share(int64_t n_tiles, TileTask task, const void* context);
    // The threads that may be at work: 1 where nothing is shared.
    int64_t n_threads() const { return n_threads_; }

   private:
    Crew* crew_;
    int64_t n_threads_;
    bool wakes_;
};

}  // namespace slimsvm
