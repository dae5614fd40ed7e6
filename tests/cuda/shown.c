/* What gshmem-where says of a PE whose GPU runs a kernel that waits in a collective: for which team,
 * and who is to blame. Starts its own PEs, by fork and a unique id. PE 1 waits in a round, is
 * stopped right after it, and has a record of that wait for as long as it is stopped. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gshmem.h"
#include "gpu.h"

enum { PES = 2, SECONDS = 30 };

static const char waits[] = "in a collective in a kernel on team 0, round ";
static char report[8192];

static void ask(void)
{
    char command[512];

    snprintf(command, sizeof command, "%s/runtime/where/gshmem-where %d 2>&1",
             getenv("GSHMEM_TEST_BUILD"), (int)getpid());
    FILE *from = popen(command, "r");
    CHECK(from);
    report[fread(report, 1, sizeof report - 1, from)] = 0;
    pclose(from);
}

/* Each part may come a look later than the others. */
static bool is_whole(void)
{
    return strstr(report, waits) && strstr(report, "of team 0, for PE 1") &&
           strstr(report, "PE 1, which is stopped");
}

int main(void)
{
    gshmem_uniqueid_t uid;
    int status, tries = 0;

    CHECK_OK(gshmem_get_uniqueid(&uid));
    pid_t child = fork();
    CHECK(child >= 0);
    gshmem_init_attr_t attr = {.uid = &uid, .pe = child == 0, .n_pes = PES};
    CHECK_OK(gshmem_init_attr(&attr));
    long *words = gshmem_calloc(8, sizeof *words);
    CHECK(words);
    open_gpu();
    gshmem_stream_t s = new_stream();
    while (child && tries++ < SECONDS && !strstr(report, waits)) {
        sleep(1);
        ask();
    }
    tries = 0;
    if (child)
        CHECK_HAS(report, waits);
    CHECK_OK(gshmem_long_sum_reduce(GSHMEM_TEAM_WORLD, words, words, 1));
    if (child == 0)
        raise(SIGSTOP);
    CHECK_OK(gshmem_barrier_all_on_stream(s));
    while (child && tries++ < SECONDS && !is_whole()) {
        sleep(1);
        ask();
    }
    if (child) {
        kill(child, SIGCONT);
        CHECK_HAS(report, "PE 0: in a collective in a kernel on team 0, round ");
        CHECK_HAS(report, "of team 0, for PE 1");
        CHECK_HAS(report, "the job cannot go on because of PE 1, which is stopped");
    }
    end_stream(s);
    close_gpu();
    CHECK_OK(gshmem_finalize());
    CHECK(!child || (waitpid(child, &status, 0) == child && status == 0));
    return 0;
}
