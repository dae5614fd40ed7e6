/* gshmem-where: which PE of a running job waits for which, where, and which PE blocks the job. */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/printed.h"
#include "runtime/where/where.h"

enum { FIND_MS = 600, REPORT_MS = 5000 };

static const char usage[] = "usage: gshmem-where [--user ID] [JOB]\n"
                            "  Says where each PE of a running job is, what it waits for, and who "
                            "keeps the job from going\n"
                            "  on. JOB: its name, or the process number of gshmemrun or of any of "
                            "its PEs; may be left out\n"
                            "  where only one job of yours runs on this machine.\n"
                            "  --user ID    jobs of that user, by number: for root\n";

/* Jobs by their first PE that answers. */
static bool is_first_of_job(const struct asked *found, size_t i)
{
    for (size_t other = 0; other < i; other++) {
        if (where_same_job(&found[other], &found[i]))
            return false;
    }
    return found[i].has_answered;
}

static bool is_meant(const struct asked *a, const char *wanted)
{
    char *end;
    long number = strtol(wanted, &end, 10);
    const char *dash = strrchr(a->answer.job, '-');

    if (strcmp(a->answer.job, wanted) == 0)
        return true;
    if (*end || number <= 0)
        return false;
    return a->pid == number || a->answer.pid == number || a->answer.parent == number ||
           (strncmp(a->answer.job, "gshmemrun-", 10) == 0 && strcmp(dash + 1, wanted) == 0);
}

/* A PE of the job that is meant; NULL: there is none, or several, which was said. */
static const struct asked *choose(const struct asked *found, size_t n, const char *wanted)
{
    const struct asked *one = NULL;
    int jobs = 0;

    for (size_t i = 0; i < n; i++) {
        if (wanted ? found[i].has_answered && is_meant(&found[i], wanted)
                   : is_first_of_job(found, i)) {
            jobs += !one || !where_same_job(one, &found[i]);
            one = &found[i];
        }
    }
    if (jobs == 1)
        return one;
    if (jobs == 0 && n)
        fprintf(stderr,
                "gshmem-where: %s%s; %zu PEs listen, and none of those that answer is of it\n",
                wanted ? "no job " : "no job answers", wanted ? wanted : "", n);
    else if (jobs == 0)
        fprintf(stderr, "gshmem-where: no job of this user runs on this machine\n");
    else
        fprintf(stderr, "gshmem-where: several jobs run here; give the name of one, or the process "
                        "number where names are the same:\n");
    for (size_t i = 0; jobs && i < n; i++) {
        if (is_first_of_job(found, i))
            fprintf(stderr, "  %s: %s, %d PEs, PE %d is process %d\n", found[i].answer.job,
                    found[i].answer.program, found[i].answer.n_pes, found[i].answer.pe,
                    (int)found[i].pid);
    }
    return NULL;
}

static int report(uint32_t user, const char *wanted)
{
    struct asked *found;
    size_t n = ask_find(user, FIND_MS, &found);
    const struct asked *chosen = choose(found, n, wanted);
    const uint64_t until = clock_ns() + REPORT_MS * (uint64_t)CLOCK_MS;
    const bool reported = chosen && where_report(found, n, chosen, false, until, "", stdout);

    if (chosen && !reported)
        fprintf(stderr, "gshmem-where: there is no memory for the report of job %s, %d PEs\n",
                chosen->answer.job, chosen->answer.n_pes);
    free(found);
    return reported ? 0 : 1;
}

/* From here on this process may do what that user may: files that a PE of that user names are
 * opened, and read by addr2line. */
static bool become(uint32_t user)
{
    const struct passwd *entry = getpwuid(user);
    const gid_t group = entry ? entry->pw_gid : (gid_t)user;

    return setgroups(0, NULL) == 0 && setresgid(group, group, group) == 0 &&
           setresuid(user, user, user) == 0;
}

int main(int argc, char **argv)
{
    uint32_t user = (uint32_t)geteuid();
    int at = 1;

    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(usage, stdout);
        return printed("gshmem-where", 0);
    }
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts("gshmem-where " GSHMEM_VERSION_TEXT);
        return printed("gshmem-where", 0);
    }
    if (argc > 2 && strcmp(argv[1], "--user") == 0) {
        char *end;
        errno = 0;
        unsigned long number = strtoul(argv[2], &end, 10);
        if (errno || *end || number > UINT32_MAX) {
            fprintf(stderr, "gshmem-where: --user %s: a number is needed\n", argv[2]);
            return 2;
        }
        user = (uint32_t)number;
        at = 3;
        if (geteuid() == 0 && user != 0 && !become(user)) {
            fprintf(stderr, "gshmem-where: --user %lu: cannot become that user: %s\n", number,
                    strerror(errno));
            return 1;
        }
    }
    if (argc > at + 1 || (at < argc && argv[at][0] == '-')) {
        fprintf(stderr, "gshmem-where: unknown argument %s\n%s", argv[argc > at + 1 ? at + 1 : at],
                usage);
        return 2;
    }
    return printed("gshmem-where", report(user, at < argc ? argv[at] : NULL));
}
