// The pool: crews of helpers that wait for work, asleep or (for a moment) awake. See pool.h.
//
// A crew belongs to one Team at a time. Its tasks have numbers that only grow, over all work it ever does:
//     next     number of the next task to be taken
//     limit    tasks below it may be taken
//     done     tasks done
// A helper that takes a task reads what the task is before it takes its number: that is right if the number was still
// the next one when it was taken, since no other work begins before all tasks up to the limit are done.

#include "threads/pool.h"

#include <atomic>

#include "slimsvm.h"

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <pthread.h>
#include <sched.h>
#include <time.h>
#endif

namespace slimsvm {

namespace {

constexpr int MAX_CREWS = 64, MAX_HELPERS = int(MOST_THREADS) - 1;
// Tasks for each thread, so that one slow core does not hold the others up, nor tasks of one tile more than others.
constexpr int64_t TASKS_PER_THREAD = 8;
// Microseconds of one thread from which work is shared with helpers who are awake, and from which others are woken.
std::atomic<double> worth_sharing{10.0}, worth_waking{1000.0};
std::atomic<int64_t> times_shared{0}, times_woken{0};
// Looks at the counters between two offers of the core to other processes, and offers before a helper goes to sleep,
// and before a leader who waits for helpers sleeps for PAUSE_MICROSECONDS after each: some 0.1 ms where nobody wants
// the core.
constexpr int LOOKS = 200, OFFERS = 40;
constexpr int PAUSE_MICROSECONDS = 20;

inline void relax() {
#if defined(__x86_64__) || defined(_M_X64)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

#if defined(_WIN32)

struct Bell {  // what a helper sleeps on
    HANDLE event;
    void make() { event = CreateEventA(nullptr, FALSE, FALSE, nullptr); }
    void wait() { WaitForSingleObject(event, INFINITE); }
    void ring() { SetEvent(event); }
};
struct Lock {
    SRWLOCK lock = SRWLOCK_INIT;
    void enter() { AcquireSRWLockExclusive(&lock); }
    void leave() { ReleaseSRWLockExclusive(&lock); }
};
// Let another process have the core, and say whether one took it.
inline bool offer_core() { return SwitchToThread(); }
inline void pause_microseconds(int) { Sleep(0); }

#else

struct Bell {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    bool rung;
    void make() {
        pthread_mutex_init(&mutex, nullptr);
        pthread_cond_init(&condition, nullptr);
        rung = false;
    }
    void wait() {
        pthread_mutex_lock(&mutex);
        while (!rung) pthread_cond_wait(&condition, &mutex);
        rung = false;
        pthread_mutex_unlock(&mutex);
    }
    void ring() {
        pthread_mutex_lock(&mutex);
        rung = true;
        pthread_cond_signal(&condition);
        pthread_mutex_unlock(&mutex);
    }
};
struct Lock {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    void enter() { pthread_mutex_lock(&mutex); }
    void leave() { pthread_mutex_unlock(&mutex); }
};
inline int64_t nanoseconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t(now.tv_sec) * 1000000000 + now.tv_nsec;
}
// An offer that takes longer was taken: somebody wants the core. With nobody there it takes half a microsecond.
constexpr int64_t TAKEN_NANOSECONDS = 50000;
// Let another process have the core, and say whether one took it.
inline bool offer_core() {
    const int64_t begun = nanoseconds();
    sched_yield();
    return nanoseconds() - begun > TAKEN_NANOSECONDS;
}
inline void pause_microseconds(int microseconds) {
    const timespec length = {0, long(microseconds) * 1000};
    nanosleep(&length, nullptr);
}

#endif

struct Helper {
    Crew* crew;
    int64_t number;  // in its team; the leader is 0
    Bell bell;
    std::atomic<bool> is_awake;
};

}  // namespace

struct alignas(64) Crew {
    alignas(64) std::atomic<int64_t> next;
    alignas(64) std::atomic<int64_t> limit;
    alignas(64) std::atomic<int64_t> done;
    // The work of the tasks up to the limit.
    alignas(64) std::atomic<TileTask> task;
    std::atomic<const void*> context;
    std::atomic<int64_t> first, n_tiles;
    // Threads of that work: helpers who are still awake from the work of a larger team leave it alone.
    std::atomic<int64_t> n_workers;
    bool is_taken;
    int n_helpers;
    Helper helpers[MAX_HELPERS];

    // Do a task if there is one, and say whether.
    bool do_one(int64_t worker) {
        int64_t number = next.load(std::memory_order_acquire);
        const int64_t end = limit.load(std::memory_order_acquire);
        if (number >= end || worker >= n_workers.load(std::memory_order_relaxed)) return false;
        const TileTask function = task.load(std::memory_order_relaxed);
        const void* what = context.load(std::memory_order_relaxed);
        const int64_t from = first.load(std::memory_order_relaxed), tiles = n_tiles.load(std::memory_order_relaxed);
        if (next.compare_exchange_strong(number, number + 1, std::memory_order_acq_rel)) {
            const int64_t n_tasks = end - from, i = number - from;
            function(what, tiles * i / n_tasks, tiles * (i + 1) / n_tasks, worker);
            done.fetch_add(1, std::memory_order_acq_rel);
        }
        return true;
    }

    void serve(Helper& helper) {
        for (;;) {
            helper.bell.wait();
            for (int offers = 0; offers < OFFERS; ++offers) {
                for (int looks = 0; looks < LOOKS; ++looks) {
                    if (do_one(helper.number))
                        offers = looks = 0;
                    else
                        relax();
                }
                if (offer_core()) break;
            }
            helper.is_awake.store(false, std::memory_order_release);
        }
    }
};

namespace {

Crew crews[MAX_CREWS];
Lock crews_lock;

#if defined(_WIN32)
DWORD WINAPI helper_main(void* argument) {
#else
void* helper_main(void* argument) {
#endif
    Helper* helper = static_cast<Helper*>(argument);
    helper->crew->serve(*helper);
    return 0;
}

bool start(Helper& helper) {
#if defined(_WIN32)
    HANDLE thread = CreateThread(nullptr, 0, helper_main, &helper, 0, nullptr);
    if (!thread) return false;
    CloseHandle(thread);
    return true;
#else
    pthread_t thread;
    if (pthread_create(&thread, nullptr, helper_main, &helper) != 0) return false;
    pthread_detach(thread);
    return true;
#endif
}

#if !defined(_WIN32)
// Threads do not survive a fork: the child starts afresh.
void forget_crews() {
    crews_lock.mutex = PTHREAD_MUTEX_INITIALIZER;
    for (Crew& crew : crews) {
        crew.is_taken = false;
        crew.n_helpers = 0;
        crew.next.store(0);
        crew.limit.store(0);
        crew.done.store(0);
    }
}
bool watches_forks = false;
#endif

// A crew without work, with up to n_helpers helpers; none if all crews are at work.
Crew* take_crew(int n_helpers) {
    crews_lock.enter();
#if !defined(_WIN32)
    if (!watches_forks) {
        pthread_atfork(nullptr, nullptr, forget_crews);
        watches_forks = true;
    }
#endif
    Crew* found = nullptr;
    // The one with the fewest helpers that are enough, else the one with most: threads are started once.
    for (Crew& crew : crews) {
        if (crew.is_taken) continue;
        if (!found) {
            found = &crew;
            continue;
        }
        const bool enough = crew.n_helpers >= n_helpers, had_enough = found->n_helpers >= n_helpers;
        if (enough != had_enough ? enough : enough == (crew.n_helpers < found->n_helpers)) found = &crew;
    }
    if (found) found->is_taken = true;
    crews_lock.leave();
    if (!found) return nullptr;
    while (found->n_helpers < n_helpers) {
        Helper& helper = found->helpers[found->n_helpers];
        helper.crew = found;
        helper.number = found->n_helpers + 1;
        helper.bell.make();
        helper.is_awake.store(false);
        if (!start(helper)) break;  // the system's limit of threads: fewer help
        ++found->n_helpers;
    }
    return found;
}

}  // namespace

Team::Team(int64_t n_threads, double microseconds) : crew_(nullptr), n_threads_(1), wakes_(false) {
    if (n_threads <= 1 || microseconds < worth_sharing.load(std::memory_order_relaxed)) return;
    const int n_helpers = int(n_threads - 1 < MAX_HELPERS ? n_threads - 1 : MAX_HELPERS);
    crew_ = take_crew(n_helpers);
    if (!crew_) return;
    n_threads_ = n_helpers + 1;
    wakes_ = microseconds >= worth_waking.load(std::memory_order_relaxed);
}

Team::~Team() {
    if (!crew_) return;
    crews_lock.enter();
    crew_->is_taken = false;
    crews_lock.leave();
}

void Team::share(int64_t n_tiles, TileTask task, const void* context) {
    if (n_tiles <= 0) return;
    if (!crew_ || n_tiles == 1) return task(context, 0, n_tiles, 0);
    const int64_t most = TASKS_PER_THREAD * n_threads_, n_tasks = n_tiles < most ? n_tiles : most;
    const int64_t from = crew_->limit.load(std::memory_order_relaxed), end = from + n_tasks;
    times_shared.fetch_add(1, std::memory_order_relaxed);
    crew_->task.store(task, std::memory_order_relaxed);
    crew_->context.store(context, std::memory_order_relaxed);
    crew_->first.store(from, std::memory_order_relaxed);
    crew_->n_tiles.store(n_tiles, std::memory_order_relaxed);
    crew_->n_workers.store(n_threads_, std::memory_order_relaxed);
    crew_->limit.store(end, std::memory_order_release);
    for (int i = 0; wakes_ && i < crew_->n_helpers && i + 1 < n_threads_; ++i) {
        Helper& helper = crew_->helpers[i];
        // One who falls asleep just now is missed, which only costs its help.
        if (helper.is_awake.load(std::memory_order_relaxed) || helper.is_awake.exchange(true)) continue;
        times_woken.fetch_add(1, std::memory_order_relaxed);
        helper.bell.ring();
    }
    while (crew_->do_one(0)) {
    }
    bool is_wanted = false;  // the core, by others, or for long enough by nobody
    for (int offers = 0; crew_->done.load(std::memory_order_acquire) < end; ++offers) {
        if (is_wanted || offers >= OFFERS) pause_microseconds(PAUSE_MICROSECONDS);
        for (int looks = 0; looks < LOOKS && crew_->done.load(std::memory_order_acquire) < end; ++looks) relax();
        is_wanted |= offer_core();
    }
}

}  // namespace slimsvm

extern "C" {

void slimsvm_share_from(double sharing, double waking) {
    slimsvm::worth_sharing.store(sharing);
    slimsvm::worth_waking.store(waking);
}

int64_t slimsvm_times_shared(void) { return slimsvm::times_shared.load(); }
int64_t slimsvm_times_woken(void) { return slimsvm::times_woken.load(); }
}
