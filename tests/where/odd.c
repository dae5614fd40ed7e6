/* Less usual ways to hang, or to end: PE 1 is the culprit, unless the way says otherwise (hangs.py and
 * meson.build have what is to be said of each).
 *
 *     odd WAY [DIRECTORY] */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gshmem.h"

#include "found.h"

static int me, n;
static long lock, word, words[64];
static uint64_t flag, other_flag;
static volatile int go_on = 1;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) static void loop_for_ever(void)
{
    while (go_on)
        ;
}

/* PE 1 waits at a copy of the flag, which nobody can update, and the others for PE 1. */
static void way_wrong_address(void)
{
    uint64_t copy = flag;

    gshmem_barrier_all();
    if (me == 1)
        gshmem_signal_wait_until(&copy, GSHMEM_CMP_EQ, 1);
    if (me == 0)
        gshmem_signal_set(&flag, 1, 1);
    gshmem_barrier_all();
}

/* PE 0 sets one flag, PE 1 waits for another. */
static void way_wrong_flag(void)
{
    if (me == 0)
        gshmem_signal_set(&flag, 1, 1);
    if (me == 1)
        gshmem_signal_wait_until(&other_flag, GSHMEM_CMP_EQ, 1);
    gshmem_barrier_all();
}

/* PE 1 does collectives of two teams in another order. */
static void way_order_of_teams(void)
{
    gshmem_team_t a, b;

    gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &a);
    gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &b);
    gshmem_long_sum_reduce(me == 1 ? b : a, words, &word, 1);
    gshmem_long_sum_reduce(me == 1 ? a : b, words, &word, 1);
}

static void *hold_mutex_and_meet(void *unused)
{
    pthread_mutex_lock(&mutex);
    flag = 1;
    gshmem_barrier_all();
    pthread_mutex_unlock(&mutex);
    return unused;
}

__attribute__((noinline)) static void take_mutex(void)
{
    pthread_mutex_lock(&mutex);
}

/* A thread of PE 1 waits in a barrier with the mutex that the main thread needs to come to its own
 * barrier; PE 0 waits for a signal that the main thread would have sent. */
static void way_mutex(void)
{
    pthread_t thread;

    if (me == 1) {
        pthread_create(&thread, NULL, hold_mutex_and_meet, NULL);
        gshmem_signal_wait_until(&flag, GSHMEM_CMP_EQ, 1);
        take_mutex();
        gshmem_signal_set(&flag, 1, 0);
    }
    if (me == 0)
        gshmem_signal_wait_until(&flag, GSHMEM_CMP_EQ, 1);
    gshmem_barrier_all();
}

static void *meet(void *unused)
{
    flag = 1;
    gshmem_barrier_all();
    return unused;
}

/* PE 1 cancels a thread that waits in a barrier for the others, which are still to come. */
static void way_cancelled(void)
{
    pthread_t thread;

    if (me == 1) {
        pthread_create(&thread, NULL, meet, NULL);
        gshmem_signal_wait_until(&flag, GSHMEM_CMP_EQ, 1);
        usleep(200000); /* so that it mostly waits by then; it passes either way */
        pthread_cancel(thread);
        pthread_join(thread, NULL);
        loop_for_ever();
    }
    if (me == 0)
        loop_for_ever();
    gshmem_barrier_all();
}

/* PE 1 prints, and nobody reads. */
__attribute__((noinline)) static void print_for_ever(void)
{
    char line[4096];
    int ends[2];

    memset(line, 'x', sizeof line);
    if (pipe(ends) == 0)
        dup2(ends[1], STDOUT_FILENO);
    while (write(STDOUT_FILENO, line, sizeof line) > 0)
        ;
}

static void way_stdout_full(void)
{
    if (me == 1)
        print_for_ever();
    gshmem_barrier_all();
}

/* PE 1 waits for its child, which calls a barrier: it is no PE, and its call is refused. */
static void way_child(void)
{
    if (me == 1) {
        const pid_t child = fork();
        if (child == 0) {
            gshmem_barrier_all();
            pause();
        }
        waitpid(child, NULL, 0);
    }
    gshmem_barrier_all();
}

/* The error handler of PE 1 does not return. */
static void handle_for_ever(gshmem_status_t status, const char *text, void *context)
{
    (void)status;
    (void)text;
    (void)context;
    loop_for_ever();
}

static void way_handler(void)
{
    gshmem_set_error_handler(handle_for_ever, NULL);
    if (me == 1)
        gshmem_long_g(&word, n + 5);
    gshmem_barrier_all();
}

/* A signal handler of PE 1 interrupts its wait, in one of the barriers or between two, and does not
 * return. The others wait for PE 1 in the next. */
static void interrupt_for_ever(int number)
{
    (void)number;
    loop_for_ever();
}

static void way_signal_handler(void)
{
    signal(SIGALRM, interrupt_for_ever);
    if (me == 1)
        alarm(1);
    if (me == 0)
        sleep(2); /* so that it is mostly in the first */
    for (;;)
        gshmem_barrier_all();
}

/* PE 1 becomes another program. */
static void way_exec(void)
{
    if (me == 1)
        execlp("sleep", "sleep", "1000", (char *)NULL);
    gshmem_barrier_all();
}

/* PE 1 leaves main through exit, with a handler that never ends. */
static void way_atexit(void)
{
    if (me == 1) {
        atexit(loop_for_ever);
        exit(0);
    }
    gshmem_barrier_all();
}

/* The main thread of PE 1 has ended; a thread that is not in a call goes on. */
static void *compute(void *unused)
{
    loop_for_ever();
    return unused;
}

static void way_main_ended(void)
{
    pthread_t thread;

    if (me == 1) {
        pthread_create(&thread, NULL, compute, NULL);
        pthread_exit(NULL);
    }
    gshmem_barrier_all();
}

/* PE 1 waits for what its other thread would do, and computes instead. */
static void way_worker(void)
{
    pthread_t thread;

    if (me == 1) {
        pthread_create(&thread, NULL, compute, NULL);
        gshmem_signal_wait_until(&flag, GSHMEM_CMP_EQ, 1);
    }
    gshmem_barrier_all();
}

/* Everybody waits for a mutex of its own. */
static void way_nobody_waits(void)
{
    pthread_mutex_lock(&mutex);
    take_mutex();
}

static void *sleep_for_ever(void *unused)
{
    while (go_on)
        sleep(1000);
    return unused;
}

/* One thread computes, behind more threads that sleep than a report has room for. The main thread
 * has an address on its stack that is behind a call, if one looks at the bytes alone: it is data. */
static void way_computes(void)
{
    enum { SLEEPERS = 14 };
    static const unsigned char like_a_call[16] = {[3] = 0xe8};
    const unsigned char *volatile behind_it[2] = {like_a_call + 8, like_a_call + 8};
    pthread_t thread;

    for (int i = 0; i < SLEEPERS; i++)
        pthread_create(&thread, NULL, sleep_for_ever, NULL);
    pthread_create(&thread, NULL, compute, NULL);
    pthread_join(thread, NULL);
    words[0] = behind_it[0] - behind_it[1];
}

/* More threads of PE 0 wait than there are records, and its main thread comes last. */
static void *wait_for_flag(void *unused)
{
    gshmem_signal_wait_until(&flag, GSHMEM_CMP_EQ, 1);
    return unused;
}

static void way_many(void)
{
    enum { WAITERS = 34 };
    pthread_t thread;

    for (int i = 0; me == 0 && i < WAITERS; i++)
        pthread_create(&thread, NULL, wait_for_flag, NULL);
    usleep(300000); /* so that they mostly wait by then; it passes either way */
    if (me == 1)
        loop_for_ever();
    gshmem_barrier_all();
}

/* The threads that call are not the main ones. */
static void *loop_or_meet(void *unused)
{
    if (me == 1)
        loop_for_ever();
    gshmem_barrier_all();
    return unused;
}

static void way_joined(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, loop_or_meet, NULL);
    pthread_join(thread, NULL);
}

/* ---- Ends ---- */

static void abort_at_exit(void)
{
    abort();
}

static void end_atexit_abort(void)
{
    if (me == 1)
        atexit(abort_at_exit);
}

static void end_nested_lock(void)
{
    gshmem_set_lock(&lock);
    gshmem_set_lock(&lock);
    gshmem_clear_lock(&lock);
}

/* PE 1 reduces more than the others. */
static void end_other_size(void)
{
    gshmem_long_sum_reduce(GSHMEM_TEAM_WORLD, words, words + 32, me == 1 ? 5 : 4);
}

static void end_other_root(void)
{
    gshmem_long_broadcast(GSHMEM_TEAM_WORLD, words, words + 32, 4, me == 1);
}

static void end_other_call(void)
{
    if (me == 1)
        gshmem_barrier_all();
    else
        gshmem_long_broadcast(GSHMEM_TEAM_WORLD, words, words + 32, 4, 0);
}

/* A thread of PE 1 crashes while another one is in a call. */
static void *crash(void *unused)
{
    *(volatile int *)unused = 1;
    return unused;
}

static void end_thread_crash(void)
{
    pthread_t thread;

    if (me == 1)
        pthread_create(&thread, NULL, crash, NULL);
    if (me == 0)
        loop_for_ever();
    gshmem_barrier_all();
}

/* The child crashes, which is nobody's affair; its parent goes on. */
static void end_child_crash(void)
{
    if (me == 1) {
        const pid_t child = fork();
        if (child == 0)
            crash(NULL);
        waitpid(child, NULL, 0);
    }
    gshmem_barrier_all();
}

static void end_quick_exit(void)
{
    if (me == 1)
        _exit(0);
    gshmem_barrier_all();
}

/* Nobody looks at a failure, and standard error is closed. */
static void end_closed(void)
{
    close(STDERR_FILENO);
    close(STDOUT_FILENO);
    if (me == 1)
        gshmem_long_put(words, words, 1, n + 1);
}

static const struct {
    const char *name;
    void (*way)(void);
} ways[] = {
#define WAY(name) {#name, way_##name}
#define END(name) {#name, end_##name}
    WAY(wrong_address), WAY(wrong_flag),     WAY(order_of_teams), WAY(mutex),
    WAY(cancelled),     WAY(stdout_full),    WAY(child),          WAY(handler),
    WAY(signal_handler), WAY(exec),          WAY(atexit),         WAY(main_ended),
    WAY(worker),        WAY(nobody_waits),   WAY(computes),       WAY(many),
    WAY(joined),        END(atexit_abort),   END(nested_lock),    END(other_size),
    END(other_root),    END(other_call),     END(thread_crash),   END(child_crash),
    END(quick_exit),    END(closed),
};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    int provided;

    if (gshmem_init_thread(GSHMEM_THREAD_MULTIPLE, &provided))
        return 1;
    me = gshmem_my_pe();
    n = gshmem_n_pes();
    if (argc > 2)
        be_found(argv[2], me);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        if (strcmp(ways[i].name, name) == 0)
            ways[i].way();
    }
    gshmem_finalize();
    return 0;
}
