/* Runs the scenarios, each in a process of its own, and says which a transport fails. */
#define _GNU_SOURCE
#include "conform.h"

#include <sys/wait.h>

#include "runtime/base/clock.h"
#include "runtime/base/settings.h"

enum { SECONDS = 200 /* under sanitizers, on a oversubscribed machine */ };

static void check_ops(const struct transport_ops *ops)
{
    if (ops->size != sizeof *ops || ops->version != TRANSPORT_VERSION)
        CHECK_FAIL("its ops are of interface %u with %zu bytes, expected %d with %zu", ops->version,
                   ops->size, TRANSPORT_VERSION, sizeof *ops);
    if (!transport_is_complete(ops))
        CHECK_FAIL("it has no %s, which has no default", !ops->name    ? "name"
                                                         : !ops->open  ? "open"
                                                         : !ops->begin ? "begin"
                                                         : !ops->post  ? "post"
                                                         : ops->close  ? "progress"
                                                                       : "close");
    char other[40];
    if (ops->settings && settings_find_other(ops->settings, other, sizeof other))
        CHECK_FAIL("it was compiled with another setting GSHMEM_%s", other);
}

/* Why a scenario cannot be tried on the subject; NULL: it can. */
static const char *what_lacks(const struct scenario *s)
{
    if (s->needs & NEEDS_PROCESSES && subject.in_one_process)
        return "its hardware is simulated, in one process";
    if (s->needs & NEEDS_TELL && !subject.ops->tell)
        return "it has no `tell`";
    if (s->needs & NEEDS_LOSE && !subject.ops->lose)
        return "it has no `lose`";
    return s->needs & NEEDS_BATCHES && !subject.ops->batches ? "it takes no batches" : NULL;
}

/* Whether it has been passed. */
static bool run(const struct scenario *s)
{
    const uint64_t begin = clock_ns();
    int status;

    fflush(NULL);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(SECONDS);
        if (subject.begin)
            subject.begin();
        s->run();
        if (subject.end)
            subject.end();
        exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    printf("%-16s %s", s->name, status == 0 ? "passed" : "FAILED");
    if (WIFSIGNALED(status))
        printf(" by signal %d%s", WTERMSIG(status),
               WTERMSIG(status) == SIGALRM ? ": it took too long" : "");
    printf(" (%d ms)\n", (int)((clock_ns() - begin) / 1000000));
    return status == 0;
}

/* All scenarios, or those that the command line names. */
int conform(const struct subject *what, int argc, char **argv)
{
    const struct scenario *const lists[] = {data_scenarios, flow_scenarios, end_scenarios};
    const char *lacks;
    int tried = 0, failures = 0;

    setenv("GSHMEM_INIT_TIMEOUT", "2", 0); /* of PEs that are not there */
    CHECK_EQ(settings_load(), GSHMEM_OK);
    subject = *what;
    check_ops(subject.ops);
    for (size_t l = 0; l < sizeof lists / sizeof lists[0]; l++) {
        for (const struct scenario *s = lists[l]; s->name; s++) {
            bool wanted = argc == 0;
            for (int i = 0; i < argc; i++)
                wanted |= strcmp(argv[i], s->name) == 0;
            if (!wanted)
                continue;
            if ((lacks = what_lacks(s))) {
                printf("%-16s left out: %s\n", s->name, lacks);
                continue;
            }
            tried++;
            failures += !run(s);
        }
    }
    printf("transport %s: %d of %d scenarios passed\n", subject.ops->name, tried - failures, tried);
    return tried == 0 || failures > 0;
}
