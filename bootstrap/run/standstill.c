#define _GNU_SOURCE
#include "bootstrap/run/standstill.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "bootstrap/run/say.h"
#include "where/where.h"

static const char *standstill_state_of(pid_t pid)
{
    char path[64], line[256] = "";

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    if (f) {
        line[fread(line, 1, sizeof line - 1, f)] = 0;
        fclose(f);
    }
    const char *end = strrchr(line, ')');
    const char state = end && end[1] ? end[2] : 0;
    return state == 'T' || state == 't' ? "is stopped, by a signal or a debugger"
           : state == 'R'               ? "runs"
           : state                      ? "sleeps"
                                        : "lives";
}

/* Nothing is known but the processes: they do not use GSHMEM, are not so far, or are all stopped. */
static void standstill_say_processes(const pid_t *pid, int n_pes)
{
    enum { SHOWN = 64 };
    int shown = 0;

    say("no PE says where it is: it has not called gshmem_init, has finalized, or is stopped");
    for (int pe = 0; pe < n_pes && shown < SHOWN; pe++) {
        if (!pid[pe])
            continue;
        say("  PE %d (process %d) %s", pe, (int)pid[pe], standstill_state_of(pid[pe]));
        shown++;
    }
}

/* PEs of which nobody can know that Ctrl-C has come, but that they have left it to gshmemrun. */
static void end_interrupted(const struct asked *found, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (found[i].has_answered && found[i].answer.interrupted && found[i].pid > 0 &&
            strcmp(found[i].answer.job, name) == 0)
            kill(found[i].pid, SIGINT);
    }
}

static void standstill_run(uint32_t job, const pid_t *pid, int n_pes, bool interrupted)
{
    struct asked *found;
    char name[64], *text = NULL;
    size_t bytes = 0;
    FILE *report = open_memstream(&text, &bytes);

    snprintf(name, sizeof name, "gshmemrun-%u", job);
    bool known = report && where_report((uint32_t)geteuid(), name, "gshmemrun: ", report);
    if (report)
        fclose(report);
    if (known && write(STDERR_FILENO, text, bytes) < 0)
        return;
    if (!known && !interrupted)
        standstill_say_processes(pid, n_pes);
    if (!interrupted)
        return;
    size_t n = ask_find((uint32_t)geteuid(), 500, &found);
    end_interrupted(found, n, name);
}

pid_t standstill_start(uint32_t job, const pid_t *pid, int n_pes, bool interrupted)
{
    pid_t child = fork();

    if (child < 0)
        return 0;
    if (child > 0)
        return child;
    prctl(PR_SET_NAME, "gshmem-report", 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    standstill_run(job, pid, n_pes, interrupted);
    _exit(0);
}
