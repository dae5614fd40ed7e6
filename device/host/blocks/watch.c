/* Lets other threads run when one waits without saying so: while (*(volatile int *)flag == 0);
 *
 * A thread of its own looks at the workers every few milliseconds while kernels run. A worker whose
 * fiber has not changed since gets a signal, and its handler yields in the fiber's name: on the
 * fiber's own stack, so that returning to it later is returning from the handler.
 *
 * That is safe only where the interrupted code holds no lock that another fiber of the same OS
 * thread may want. So the handler acts in the code of the program itself, in the executables and
 * libraries that kernels were compiled into, and never inside the C library or this one. */
#define _GNU_SOURCE
#include "device/host/blocks/watch.h"

#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/host/fibers/sanitizer.h"
#include "device/host/forks.h"
#include "runtime/base/log.h"
#include "runtime/base/program_counter.h"

enum {
    WATCH_SIGNAL = SIGURG, /* ignored by default, and hardly used */
    TICK_NS = 2000000,
    SHORT_TICK_NS = 200000, /* while there is one that does not yield */
    RANGES_MAX = 64,
};

/* --- Code that may be interrupted --- */

struct range {
    uintptr_t from, to;
};

/* One for the process, as signal handlers have no argument. Entries never move: signals come at any
 * time. One without kernels is empty, and used again. */
static struct {
    pthread_mutex_t lock;
    struct {
        atomic_uintptr_t from, to; /* to: 0 while it is empty or being filled */
        unsigned kernels;          /* registered in it */
    } list[RANGES_MAX];
    atomic_uint count; /* released after the entry it counts */
} ranges = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The number of the range; RANGES_MAX: none. */
static unsigned find_range(uintptr_t at)
{
    /* Acquire: with the release in add_range(). */
    unsigned n = atomic_load_explicit(&ranges.count, memory_order_acquire);

    for (unsigned i = 0; i < n; i++) {
        /* Acquire: `from` is what `to` was stored after, or newer and then `to` has changed. */
        uintptr_t to = atomic_load_explicit(&ranges.list[i].to, memory_order_acquire);
        uintptr_t from = atomic_load_explicit(&ranges.list[i].from, memory_order_acquire);

        if (at >= from && at < to &&
            to == atomic_load_explicit(&ranges.list[i].to, memory_order_relaxed))
            return i;
    }
    return RANGES_MAX;
}

static bool known(uintptr_t at)
{
    return find_range(at) < RANGES_MAX;
}

static bool watch_range_of(const struct dl_phdr_info *module, uintptr_t at, struct range *found)
{
    for (int i = 0; i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &module->dlpi_phdr[i];
        uintptr_t from = module->dlpi_addr + segment->p_vaddr, to = from + segment->p_memsz;

        if (segment->p_type == PT_LOAD && segment->p_flags & PF_X && at >= from && at < to) {
            *found = (struct range){from, to};
            return true;
        }
    }
    return false;
}

static int add_range(struct dl_phdr_info *module, size_t size, void *function)
{
    struct range range;
    unsigned n = atomic_load_explicit(&ranges.count, memory_order_relaxed), i = 0;

    (void)size;
    if (!watch_range_of(module, (uintptr_t)function, &range))
        return 0;
    while (i < n && ranges.list[i].kernels)
        i++;
    /* An allocator in the same piece may hold its lock where it is interrupted. */
    uintptr_t allocator = (uintptr_t)malloc;
    if (i < RANGES_MAX && !(allocator >= range.from && allocator < range.to)) {
        ranges.list[i].kernels = 1;
        atomic_store_explicit(&ranges.list[i].from, range.from, memory_order_release);
        /* Release: with the acquire in find_range(). */
        atomic_store_explicit(&ranges.list[i].to, range.to, memory_order_release);
        if (i == n)
            atomic_store_explicit(&ranges.count, n + 1, memory_order_release);
    }
    return 1;
}

void watch_code(const void *function)
{
    pthread_mutex_lock(&ranges.lock);
    unsigned i = find_range((uintptr_t)function);
    if (i < RANGES_MAX)
        ranges.list[i].kernels++;
    else
        dl_iterate_phdr(add_range, (void *)(uintptr_t)function);
    pthread_mutex_unlock(&ranges.lock);
}

void watch_forget(const void *function)
{
    pthread_mutex_lock(&ranges.lock);
    unsigned i = find_range((uintptr_t)function);
    if (i < RANGES_MAX && --ranges.list[i].kernels == 0)
        atomic_store_explicit(&ranges.list[i].to, 0, memory_order_release);
    pthread_mutex_unlock(&ranges.lock);
}

/* --- The signal --- */

/* The signal is blocked in here, until other fibers are to run: signals that came faster than a
 * slow machine handles them would lie on each other until the fiber's stack is full. Those that
 * come after that find no code of the program, so there are never more than two. */
static void watch_interrupt(int signal, siginfo_t *info, void *context)
{
    int saved = errno;
    sigset_t again;

    (void)info;
    if (thread_self() && known(program_counter(context))) {
        sigemptyset(&again);
        sigaddset(&again, signal);
        pthread_sigmask(SIG_UNBLOCK, &again, NULL);
        gshmem_host_yield();
    }
    errno = saved;
}

/* --- The watch --- */

/* One for the process: it watches the one pool of workers. */
static struct {
    pthread_t id;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    atomic_bool asleep;
    bool stop, runs;
    struct worker *workers;
    uint64_t *seen; /* switches of each worker at the tick before */
    unsigned count;
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static void watch_leave_parent(void)
{
    watch.lock = ranges.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    watch.wake = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}

__attribute__((constructor)) static void watch_watch_forks(void)
{
    static struct fork_part part = {.leave_parent =
                                        watch_leave_parent}; /* an entry of the list in forks.c */

    forks_add(&part);
}

/* Interrupts the workers that have not changed fibers; true if there were any. *busy: kernels run.
 */
static bool watch_look(bool *busy)
{
    bool stuck = false;

    *busy = false;
    for (unsigned i = 0; i < watch.count; i++) {
        struct worker *w = &watch.workers[i];
        uint64_t now = atomic_load_explicit(&w->switches, memory_order_relaxed);

        if (!atomic_load_explicit(&w->busy, memory_order_relaxed))
            continue;
        *busy = true;
        if (now == watch.seen[i]) {
            pthread_kill(w->id, WATCH_SIGNAL);
            stuck = true;
        }
        watch.seen[i] = now;
    }
    return stuck;
}

static void *watch_main(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "gshmem-watch");
    pthread_mutex_lock(&watch.lock);
    while (!watch.stop) {
        bool busy, stuck = watch_look(&busy);

        if (!busy) {
            /* Order: a worker sets busy before it looks at asleep, we look at busy after. */
            atomic_store(&watch.asleep, true);
            watch_look(&busy);
            while (!busy && atomic_load(&watch.asleep) && !watch.stop)
                pthread_cond_wait(&watch.wake, &watch.lock);
            atomic_store(&watch.asleep, false);
        }
        pthread_mutex_unlock(&watch.lock);
        nanosleep(&(struct timespec){.tv_nsec = stuck ? SHORT_TICK_NS : TICK_NS}, NULL);
        pthread_mutex_lock(&watch.lock);
    }
    pthread_mutex_unlock(&watch.lock);
    return NULL;
}

void watch_kernels(void)
{
    if (!atomic_load(&watch.asleep))
        return;
    pthread_mutex_lock(&watch.lock);
    atomic_store(&watch.asleep, false);
    pthread_cond_signal(&watch.wake);
    pthread_mutex_unlock(&watch.lock);
}

void watch_start(struct worker *workers, unsigned count)
{
    struct sigaction before,
        ours = {.sa_sigaction = watch_interrupt, .sa_flags = SA_SIGINFO | SA_RESTART};

    /* ThreadSanitizer delays signals; and the program may use this one. */
    if (under_tsan() || sigaction(WATCH_SIGNAL, NULL, &before) != 0 ||
        before.sa_flags & SA_SIGINFO ||
        (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN))
        return;
    watch.seen = calloc(count, sizeof *watch.seen);
    watch.workers = workers;
    watch.count = count;
    sigemptyset(&ours.sa_mask);
    if (!watch.seen || sigaction(WATCH_SIGNAL, &ours, NULL) != 0)
        return;
    watch.runs = pthread_create(&watch.id, NULL, watch_main, NULL) == 0;
    if (!watch.runs)
        log_warn("the host device cannot start its watch: kernels that wait by plain loops over "
                 "volatile variables may hang");
}

void watch_stop(void)
{
    if (!watch.runs)
        return;
    pthread_mutex_lock(&watch.lock);
    watch.stop = true;
    pthread_cond_signal(&watch.wake);
    pthread_mutex_unlock(&watch.lock);
    pthread_join(watch.id, NULL);
    free(watch.seen);
}
