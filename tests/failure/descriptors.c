/* A PE that lives is not taken for dead, whatever it closes: a duplicate of a descriptor of the library's, what
 * it opened by /proc/self/fd, or all that there are; nor when the thread that began the job has ended. One that
 * was killed is, although a child of its fork lives on; also where it has a host of its own, as far as names tell.
 *
 *     descriptors dup|proc|range|thread|fork|fork-far */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gshmem.h"

#include "check.h"

enum { PES = 3, DIFFERENT = 1 };

static uint64_t signal_word;
static int met[2];     /* a pipe with a byte of each other PE that has left the barrier */
static int through[2]; /* a pipe that those who wait hold open */

static void each_descriptor(void (*use)(int fd))
{
    for (int fd = 3; fd < 256; fd++) {
        struct stat s;
        if (fstat(fd, &s) == 0 && S_ISREG(s.st_mode)) /* as the heap's file is */
            use(fd);
    }
}

static void close_a_duplicate(int fd)
{
    close(dup(fd));
}

static void open_by_proc(int fd)
{
    char path[40];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(again >= 0);
    close(again);
}

static void close_all_but(int kept)
{
    CHECK_EQ(close_range(3, (unsigned)kept - 1, 0), 0);
    CHECK_EQ(close_range((unsigned)kept + 1, ~0u, 0), 0);
}

static void leave_a_child(void)
{
    int ready[2];
    char byte;

    CHECK_EQ(pipe(ready), 0);
    pid_t parent = getpid(), child = fork();
    CHECK(child >= 0);
    if (child == 0) { /* outlives its parent, and holds all that it was given until the others are through */
        close(through[1]);
        CHECK(write(ready[1], "x", 1) == 1);
        CHECK_EQ(read(through[0], &byte, 1), 0);
        _exit(0);
    }
    CHECK(read(ready[0], &byte, 1) == 1);
    kill(parent, SIGKILL);
}

static gshmem_uniqueid_t uid;
static const char *how;

static bool is_killed(void)
{
    return strncmp(how, "fork", 4) == 0;
}

static bool is_far(void)
{
    return strcmp(how, "fork-far") == 0;
}

static void move_to_host(int number)
{
    char name[32];

    snprintf(name, sizeof name, "descriptors-%d", number);
    CHECK_EQ(sethostname(name, strlen(name)), 0);
}

static void *begin_job(void *pe)
{
    gshmem_init_attr_t attr = {.uid = &uid, .pe = (int)(intptr_t)pe, .n_pes = PES};

    CHECK_OK(gshmem_init_attr(&attr));
    return NULL;
}

static void be_waited_for(void)
{
    char byte;

    /* What it has to say in the barrier may not have left its process before. */
    for (int others = 0; others < PES - 1; others++)
        CHECK_EQ(read(met[0], &byte, 1), 1);
    if (strcmp(how, "dup") == 0)
        each_descriptor(close_a_duplicate);
    else if (strcmp(how, "proc") == 0)
        each_descriptor(open_by_proc);
    else if (strcmp(how, "range") == 0)
        close_all_but(through[0]);
    else if (is_killed())
        leave_a_child();
    usleep(500 * 1000); /* while the others wait, and look whether it lives */
    CHECK_OK(gshmem_uint64_p(&signal_word, 1, 0));
    CHECK_OK(gshmem_uint64_p(&signal_word, 1, 2));
    close(through[1]);
    CHECK_EQ(read(through[0], &byte, 1), 0); /* it has not left when they see that */
}

static void be_pe(int pe)
{
    pthread_t thread;

    if (is_far()) {
        CHECK_EQ(unshare(CLONE_NEWUTS), 0);
        move_to_host(pe);
    }
    if (strcmp(how, "thread") == 0) {
        CHECK_EQ(pthread_create(&thread, NULL, begin_job, (void *)(intptr_t)pe), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    } else {
        begin_job((void *)(intptr_t)pe);
    }
    CHECK_OK(gshmem_barrier_all());
    if (pe == DIFFERENT) {
        be_waited_for();
        return;
    }
    CHECK_EQ(write(met[1], "", 1), 1);
    /* A wait for the child of who died, which ends after this PE, would not end. */
    const gshmem_status_t status = gshmem_uint64_wait_until(&signal_word, GSHMEM_CMP_EQ, 1);
    CHECK_EQ(status, is_killed() ? GSHMEM_ERR_PEER_DEAD : GSHMEM_OK);
    close(through[1]);
}

int main(int argc, char **argv)
{
    pid_t pe[PES];

    how = argc == 2 ? argv[1] : "";
    if (is_far() && geteuid() != 0)
        SKIP("another host name needs root");
    setenv("GSHMEM_PEER_TIMEOUT", "1000", 1); /* a death is to be seen, not to be guessed from silence */
    CHECK_EQ(pipe(met), 0);
    CHECK_EQ(pipe(through), 0);
    CHECK_OK(gshmem_get_uniqueid(&uid));
    for (int i = 1; i < PES; i++) {
        CHECK((pe[i] = fork()) >= 0);
        if (pe[i] == 0) {
            be_pe(i);
            _exit(0);
        }
    }
    be_pe(0);
    for (int i = 1; i < PES; i++) {
        int status;
        CHECK_EQ(waitpid(pe[i], &status, 0), pe[i]);
        if (i == DIFFERENT && is_killed())
            CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        else
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    _exit(0);
}
