/* PE 0 exits with 0 while one of its threads is in a call that waits.
 *
 *     exit-inside handler CALL    that thread itself does, in a signal's handler
 *     exit-inside thread CALL     another one does
 *
 * In a collective no good end is left: the others wait for PE 0 there, and it may not take part in another one
 * before that is over. The job ends with a line. A wait for memory is nobody else's, and the job ends well. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include "pe.h"

enum { PAUSE_US = 300 * 1000, TIMES = 4 };

static uint64_t never;
static int64_t process; /* of this PE; a variable of the program */
static int64_t other;   /* the process of PE 1 */
static _Atomic bool about_to_call, other_leaves;

static void note(int number)
{
    (void)number;
    other_leaves = true;
}

static void tell_and_leave(void)
{
    kill((pid_t)other, SIGUSR1);
    exit(0);
}

/* Whether the report says that PE 0 is in a collective. */
static bool is_in_collective(void)
{
    char command[512], line[1024];
    bool is = false;

    snprintf(command, sizeof command, "%s/runtime/where/gshmem-where %d 2>&1",
             getenv("GSHMEM_TEST_BUILD"), (int)getpid());
    FILE *from = popen(command, "r");
    CHECK(from);
    while (fgets(line, sizeof line, from))
        is |= strstr(line, "PE 0: in gshmem_barrier_all") || strstr(line, "PE 0: in gshmem_team_sync");
    pclose(from);
    return is;
}

static void *leave(void *is_collective)
{
    while (!about_to_call)
        usleep(1000);
    usleep(PAUSE_US); /* so that a wait for memory waits by then */
    while (is_collective && !is_in_collective())
        usleep(PAUSE_US);
    tell_and_leave();
    return NULL;
}

/* The last time, so that the call waits by then: the main thread has gone on meanwhile. */
static void leave_by_signal(int number)
{
    static int times;

    (void)number;
    if (about_to_call && ++times == TIMES)
        tell_and_leave();
}

/* Comes back at most because the job has been ended. */
static void wait_in(const char *call, gshmem_team_t pair)
{
    gshmem_status_t status = GSHMEM_ERR_ABORTED;

    about_to_call = true;
    if (strcmp(call, "barrier") == 0)
        status = gshmem_barrier_all();
    else if (strcmp(call, "team") == 0)
        status = gshmem_team_sync(pair);
    else
        gshmem_signal_wait_until(&never, GSHMEM_CMP_EQ, 1);
    CHECK_EQ(status, GSHMEM_ERR_ABORTED);
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    gshmem_init_attr_t attr = {.thread_level = GSHMEM_THREAD_MULTIPLE};
    gshmem_team_t pair;
    pthread_t thread;

    CHECK(argc == 3);
    CHECK_OK(gshmem_init_attr(&attr));
    me = gshmem_my_pe();
    process = getpid();
    signal(SIGUSR1, note);
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &pair));
    barrier();
    if (me == 0) {
        CHECK_OK(gshmem_getmem(&other, &process, sizeof other, 1));
        if (strcmp(argv[1], "thread") == 0) {
            CHECK_EQ(pthread_create(&thread, NULL, leave, strcmp(argv[2], "wait") ? &other : NULL), 0);
        } else {
            signal(SIGALRM, leave_by_signal);
            ualarm(PAUSE_US, PAUSE_US);
        }
        wait_in(argv[2], pair);
    }
    while (strcmp(argv[2], "wait") != 0)
        pause(); /* the job is ended */
    while (!other_leaves)
        usleep(1000);
    usleep(3 * PAUSE_US); /* it has told this before it leaves */
    return 0;
}
