/* Processes that start themselves: forked by the test, with a unique id passed through a pipe.
 *
 *     own N rounds|abort|leave|absent [NUMBER]
 *
 * Exits with the worst status of the PEs; 100 + signal when one was killed. */
#define _GNU_SOURCE
#include "gshmem.h"

#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "drive.h"
#include "runtime/base/settings.h"

static int run_pe(int pe, int n_pes, const gshmem_uniqueid_t *uid, int argc, char **argv)
{
    struct bootstrap_request request = drive_request();
    struct bootstrap *b;

    request.uid = uid;
    request.pe = pe;
    request.n_pes = n_pes;
    if (bootstrap_open(&request, &b) != GSHMEM_OK)
        return 3;
    CHECK_STR(b->ops->name, "uid");
    return drive(b, argc, argv);
}

/* PE 0 makes the id and writes one copy for each of the others. */
static int run_first(int n_pes, int to_others, int argc, char **argv)
{
    gshmem_uniqueid_t uid;

    CHECK_EQ(gshmem_get_uniqueid(&uid), GSHMEM_OK);
    for (int pe = 1; pe < n_pes; pe++)
        CHECK_EQ(write(to_others, &uid, sizeof uid), (ssize_t)sizeof uid);
    return run_pe(0, n_pes, &uid, argc, argv);
}

static int run_other(int pe, int n_pes, int from_first, int argc, char **argv)
{
    gshmem_uniqueid_t uid;

    CHECK_EQ(read(from_first, &uid, sizeof uid), (ssize_t)sizeof uid);
    return run_pe(pe, n_pes, &uid, argc, argv);
}

static int wait_for_all(int n)
{
    int worst = 0;

    for (int i = 0; i < n; i++) {
        int status;
        CHECK(wait(&status) > 0);
        int code = WIFSIGNALED(status) ? 100 + WTERMSIG(status) : WEXITSTATUS(status);
        worst = code > worst ? code : worst;
    }
    return worst;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 1, ends[2];

    CHECK(n >= 1 && n <= 256);
    CHECK_EQ(pipe(ends), 0);
    for (int pe = 0; pe < n; pe++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0)
            exit(pe == 0 ? run_first(n, ends[1], argc - 2, argv + 2)
                         : run_other(pe, n, ends[0], argc - 2, argv + 2));
    }
    return wait_for_all(n);
}
