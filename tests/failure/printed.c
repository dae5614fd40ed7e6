/* What a program has printed is not lost when a failure ends its job, and a thread that holds on to
 * its standard output meanwhile does not keep it from ending. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gshmem.h"
#include "../check.h"

static uint64_t never;

static void *print_for_ever(void *argument)
{
    flockfile(stdout);
    CHECK_EQ(write(*(int *)argument, "", 1), 1);
    for (;;)
        pause();
    return NULL;
}

/* A job of its own, which ends itself. */
static void fail_after_printing(bool held)
{
    pthread_t thread;
    int begun[2];
    char byte;

    CHECK_OK(gshmem_init());
    setvbuf(stdout, NULL, _IOFBF, 4096);
    printf("as far as here");
    if (held) {
        CHECK_EQ(pipe(begun), 0);
        CHECK_EQ(pthread_create(&thread, NULL, print_for_ever, &begun[1]), 0);
        CHECK_EQ(read(begun[0], &byte, 1), 1);
    }
    gshmem_signal_wait_until(&never, 99, 1); /* no such comparison: the job is ended */
    CHECK_FAIL("the job goes on");
}

static void run(bool held, const char *wanted)
{
    char said[100] = "";
    int out[2], status;
    ssize_t bytes = 0, more;

    CHECK_EQ(pipe(out), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dup2(out[1], STDOUT_FILENO);
        close(out[0]);
        close(out[1]);
        fail_after_printing(held);
    }
    close(out[1]);
    while ((more = read(out[0], said + bytes, sizeof said - 1 - (size_t)bytes)) > 0)
        bytes += more;
    close(out[0]);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    CHECK_EQ(strcmp(said, wanted), 0);
}

int main(void)
{
    setenv("GSHMEM_LOG", "none", 0);
    run(false, "as far as here");
    run(true, "");
    return 0;
}
