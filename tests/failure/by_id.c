/* Every PE of a job puts to every other, and they meet: little is said but by who begins it.
 *
 *     by_id N     N PEs begun with a unique id, each on a host of its own as far as names tell: they share
 *                 no memory
 *     by_id       a PE that a launcher has begun */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gshmem.h"

#include "check.h"

enum { PES_MOST = 64 };

static long from[PES_MOST];

static void move_to_host(int number)
{
    char name[32];

    snprintf(name, sizeof name, "by-id-%d", number);
    if (unshare(CLONE_NEWUTS) != 0 || sethostname(name, strlen(name)) != 0) {
        printf("SKIP: another host name needs root\n");
        exit(77);
    }
}

static void meet_all(void)
{
    int pe = gshmem_my_pe(), n = gshmem_n_pes();

    CHECK(n <= PES_MOST);
    CHECK(!gshmem_ptr(from, (pe + 1) % n));
    for (int i = 0; i < n; i++)
        gshmem_long_p(&from[pe], pe + 1, i);
    CHECK_OK(gshmem_barrier_all());
    for (int i = 0; i < n; i++)
        CHECK_EQ(from[i], i + 1);
    CHECK_OK(gshmem_finalize());
}

static void be_pe(int pe, int n, int ids[2])
{
    gshmem_uniqueid_t id;

    if (pe == 0) {
        CHECK_OK(gshmem_get_uniqueid(&id));
        for (int i = 1; i < n; i++)
            CHECK_EQ(write(ids[1], &id, sizeof id), (ssize_t)sizeof id);
    } else {
        CHECK_EQ(read(ids[0], &id, sizeof id), (ssize_t)sizeof id);
    }
    move_to_host(pe);
    gshmem_init_attr_t attr = {.thread_level = GSHMEM_THREAD_SINGLE, .uid = &id, .pe = pe, .n_pes = n};
    CHECK_OK(gshmem_init_attr(&attr));
    meet_all();
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 2, ids[2], worst = 0, status;

    if (argc == 1) {
        CHECK_OK(gshmem_init());
        meet_all();
        return 0;
    }

    CHECK(n >= 2 && n <= PES_MOST);
    CHECK_EQ(pipe(ids), 0);
    for (int pe = 0; pe < n; pe++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            alarm(60);
            be_pe(pe, n, ids);
            exit(0);
        }
    }
    for (int pe = 0; pe < n; pe++) {
        CHECK(wait(&status) > 0);
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : 100;
        worst = code > worst ? code : worst;
    }
    return worst;
}
