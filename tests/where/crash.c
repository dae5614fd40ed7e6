/* PE 1 crashes, in each of several ways; what it says of it is expected by meson.build. A program's
 * own handler is kept.
 *
 *     crash segv|abort|deep|own|two|sent|jump|jump_near|trap */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gshmem.h"

static volatile int *volatile nowhere;

__attribute__((noinline)) static void write_nowhere(void)
{
    *nowhere = 1;
}

__attribute__((noinline)) static int go_deep(int n)
{
    volatile char large[10000];

    large[0] = (char)n;
    return n ? go_deep(n + 1) + large[0] : 0;
}

static void (*volatile no_function)(void);

/* Nearly 0: a member of a table of functions that is not there. */
static void set_no_function(void)
{
    no_function = (void (*)(void))(uintptr_t)8;
}

__attribute__((noinline)) static int jump_nowhere(void)
{
    no_function();
    return *nowhere;
}

/* An instruction that goes on where nobody handles its signal. */
__attribute__((noinline)) static int run_into_trap(void)
{
#if defined(__x86_64__)
    __asm__ volatile("int3");
#else
    raise(SIGTRAP);
#endif
    return 0;
}

static void own_handler(int number)
{
    static const char line[] = "own handler\n";

    (void)number;
    _exit(write(STDERR_FILENO, line, sizeof line - 1) > 0 ? 3 : 4);
}

static pthread_barrier_t together;

static int crash_together(const void *a, const void *b)
{
    (void)a;
    (void)b;
    pthread_barrier_wait(&together);
    write_nowhere();
    return 0;
}

/* A stack that goes through another file and back, so that its lines are found in several steps. */
__attribute__((noinline)) static void *sort_and_crash(void *unused)
{
    char two[2] = {2, 1};

    qsort(two, sizeof two, 1, crash_together);
    return unused;
}

static void crash_twice(void)
{
    pthread_t thread;

    pthread_barrier_init(&together, NULL, 2);
    pthread_create(&thread, NULL, sort_and_crash, NULL);
    sort_and_crash(NULL);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";

    if (strcmp(way, "own") == 0)
        signal(SIGSEGV, own_handler);
    gshmem_init();
    if (gshmem_my_pe() == 1) {
        if (strcmp(way, "abort") == 0)
            abort();
        if (strcmp(way, "deep") == 0)
            return go_deep(1);
        if (strcmp(way, "two") == 0)
            crash_twice();
        if (strcmp(way, "sent") == 0) {
            kill(getpid(), SIGSEGV);
            pause();
        }
        if (strcmp(way, "jump") == 0 || strcmp(way, "jump_near") == 0) {
            if (strcmp(way, "jump_near") == 0)
                set_no_function();
            return jump_nowhere();
        }
        if (strcmp(way, "trap") == 0)
            return run_into_trap();
        write_nowhere();
    }
    gshmem_barrier_all();
    gshmem_finalize();
    return 0;
}
