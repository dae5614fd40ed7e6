#define _GNU_SOURCE
#include "runtime/network/proxy_thread.h"
#include "runtime/base/thread_signals.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/base/descriptor.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"
#include "runtime/base/system.h"

/* A proxy that waits for the network alone still checks other PEs that often. */
enum { SLEEP_NS = 500 * 1000 * 1000 };

/* When a thread that waits last made progress, as far as the proxy can know; now: the clock. */
static uint64_t last_driven(struct proxy *p, uint64_t now)
{
    uint64_t drives = atomic_load(&p->drives); /* seq_cst: pairs with proxy_stand_aside */

    if (drives != p->drives_seen)
        p->driven = now;
    p->drives_seen = drives;
    return p->driven;
}

/* Counts the time until now, by what it was spent on. */
static void count_time(struct proxy *p, uint64_t now)
{
    if (p->counts && p->counted)
        stats_add(p->counts, p->spent, now - p->counted);
    p->counted = now;
}

static void sleep_until_woken(struct proxy *p)
{
    uint64_t now = clock_ns();
    struct pollfd wake[2] = {{.fd = p->work->wait_fd(p->network), .events = POLLIN},
                             {.fd = p->wake_fd, .events = POLLIN}};
    const int64_t most = p->pace.bounded ? (int64_t)p->pace.sleep_ns : SLEEP_NS;
    uint64_t count;

    count_time(p, now);
    p->spent = STATS_PROXY_ASLEEP_NS;
    if (p->counts)
        stats_add(p->counts, STATS_PROXY_SLEEPS, 1);
    atomic_store(&p->watching, true); /* seq_cst: pairs with proxy_stand_aside */
    /* A thread that writes a command then tests whether the proxy sleeps (fence_all_threads). */
    if (p->work->fall_asleep(p->network) && !pace_driven(now, last_driven(p, now))) {
        if (system_poll(wake, 2, most) < 0 && errno != EINTR) {
            log_error("proxy: poll: %s", strerror(errno));
            clock_sleep(PACE_ASIDE_NS);
        }
        if (wake[1].revents && read(p->wake_fd, &count, sizeof count) < 0 && errno != EAGAIN)
            log_error("proxy: eventfd: %s", strerror(errno));
    }
    atomic_store(&p->watching, false);
    p->work->wake_up(p->network);
}

/* A network without kernels signals arrivals; then there is nothing to spin or to poll for. */
static void choose_pace(struct proxy *p)
{
    p->pace.idle_ns = (uint64_t)settings_number(SETTING_PROXY_IDLE_US) * 1000;
    p->pace.bounded = true;
    p->pace.oversubscribed = p->work->shares_cpu(p->network);
}

static bool proxy_round(struct proxy *p)
{
    const bool worked = p->work->round(p->network);

    p->spent = worked ? STATS_PROXY_BUSY_NS : STATS_PROXY_IDLE_NS;
    if (p->counts) {
        stats_add(p->counts, STATS_PROXY_ROUNDS, 1);
        stats_add(p->counts, STATS_PROXY_WORKED, worked);
    }
    return worked;
}

static void step(struct proxy *p)
{
    /* acquire: pairs with the release in proxy_serve_kernels */
    bool kernels = atomic_load_explicit(&p->kernels, memory_order_acquire);
    uint64_t now = clock_ns();
    enum pace_step next =
        pace_before(&p->pace, now, last_driven(p, now));

    count_time(p, now);
    if (kernels && !p->pace.bounded)
        choose_pace(p);
    if (next == PACE_DRIVE) {
        atomic_store_explicit(&p->drove, now, memory_order_relaxed);
        next = pace_after(&p->pace, now, proxy_round(p));
    }
    switch (next) {
    case PACE_STAND_ASIDE:
        p->spent = STATS_PROXY_ASIDE_NS;
        p->work->ask(p->network); /* a thread that is within a put has left it to the proxy */
        clock_sleep(p->pace.aside_ns);
        break;
    case PACE_YIELD:
        clock_yield();
        break;
    case PACE_SLEEP:
        sleep_until_woken(p);
        break;
    default:
        clock_pause();
    }
    if (kernels)
        p->work->raise(p->network);
    if (pace_look(&p->pace, now)) {
        if (p->number == 0)
            left_alone_look(&p->left_alone, now);
        p->work->look_around(p->network);
        if (kernels) {
            p->pace.oversubscribed = p->work->shares_cpu(p->network); /* more lanes may be used */
            p->work->look_after(p->network);
        }
    }
}

static void *proxy_main(void *argument)
{
    struct proxy *p = argument;

    while (!atomic_load_explicit(&p->stopping, memory_order_relaxed))
        step(p);
    return NULL;
}

/* ---- Life ---- */

static void proxy_pin(pthread_t thread, int number)
{
    int64_t cpu = settings_number(SETTING_PROXY_CPU);
    cpu_set_t set;
    int error;

    if (cpu < 0)
        return;
    cpu += number;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if ((error = pthread_setaffinity_np(thread, sizeof set, &set)))
        log_warn("GSHMEM_PROXY_CPU=%lld: proxy %d cannot run on CPU %lld: %s",
                 (long long)(cpu - number), number, (long long)cpu, strerror(error));
}

gshmem_status_t proxy_start(struct proxy *p, struct network *n, const struct proxy_work *work)
{
    sigset_t all, before;

    if (atomic_load_explicit(&p->runs, memory_order_relaxed))
        return GSHMEM_OK;
    p->network = n;
    p->work = work;
    p->pace = (struct pace){.bounded = false};
    p->left_alone = (struct left_alone){.exits = false};
    p->wake_fd = descriptor_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (p->wake_fd < 0)
        return fail(GSHMEM_ERR_SYSTEM, "start-up: eventfd: %s", log_errno(errno));
    /* Signals are the program's, and are delivered to its threads. */
    thread_signals_blocked(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&p->thread, NULL, proxy_main, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        close(p->wake_fd);
        return fail(GSHMEM_ERR_SYSTEM, "start-up: the proxy thread: %s", strerror(error));
    }
    pthread_setname_np(p->thread, "gshmem-proxy");
    proxy_pin(p->thread, p->number);
    /* release: pairs with the acquire of threads that ask whether there is a proxy */
    atomic_store_explicit(&p->runs, true, memory_order_release);
    return GSHMEM_OK;
}

void proxy_serve_kernels(struct proxy *p)
{
    atomic_store_explicit(&p->kernels, true, memory_order_release);
    proxy_wake(p);
}

void proxy_wake(struct proxy *p)
{
    const uint64_t one = 1;

    if (p->wake_fd < 0) /* it has ended */
        return;
    if (write(p->wake_fd, &one, sizeof one) != sizeof one && errno != EAGAIN)
        log_error("proxy: it cannot be woken: %s", strerror(errno));
}

void proxy_end_thread(struct proxy *p)
{
    atomic_store_explicit(&p->stopping, true, memory_order_relaxed);
    proxy_wake(p);
    pthread_join(p->thread, NULL);
}

void proxy_stop(struct proxy *p)
{
    if (!atomic_load_explicit(&p->runs, memory_order_relaxed))
        return;
    proxy_end_thread(p);
    close(p->wake_fd);
    p->wake_fd = -1;
    atomic_store_explicit(&p->runs, false, memory_order_relaxed);
}
