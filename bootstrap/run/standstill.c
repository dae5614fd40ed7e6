#define _GNU_SOURCE
#include "bootstrap/run/standstill.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "bootstrap/run/say.h"
#include "bootstrap/run/server.h"
#include "runtime/base/clock.h"
#include "runtime/where/where.h"

enum {
    FIND_MS = 600, /* for PEs to say who they are, */
    FIND_AGAIN_MS = 1000, /* and where none does on a machine that is busy */
    FIND_BRIEF_MS = 150,
    PRINT_MS = 400, /* what is kept of the time of a report, to print what is known */
    PRINT_BRIEF_MS = 100,
};

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

/* Where a PE's start-up is, as its messages say. One that has met the others may be anywhere since
 * then. */
static const char *standstill_start_of(const struct server_pe *p, uint32_t released)
{
    if (p->open && !p->fenced && p->round && p->round == released)
        return ", and has met the others in gshmem_init";
    return p->fenced             ? ", and waits in gshmem_init for the others"
           : p->open             ? ", and is in gshmem_init"
           : p->gone || p->round ? ", and has finalized"
                                 : ", and has not called gshmem_init";
}

/* Nothing is known but the processes: they do not use GSHMEM, have not begun, or do not answer. */
static void standstill_say_processes(const pid_t *pid, const struct server *server, bool listen)
{
    enum { SHOWN = 64 };
    int shown = 0, late = -1, n_late = 0, fenced = 0;

    say(listen ? "no PE says where it is: they are stopped, have no descriptor free, or this "
                 "machine is too busy"
               : "no PE says where it is: none has come through gshmem_init");
    for (int pe = 0; pe < server->n_pes; pe++) {
        const struct server_pe *p = &server->pe[pe];
        fenced += p->fenced;
        n_late += !p->fenced;
        late = late < 0 && !p->fenced ? pe : late;
        if (pid[pe] && shown++ < SHOWN)
            say("  PE %d (process %d) %s%s", pe, (int)pid[pe], standstill_state_of(pid[pe]),
                standstill_start_of(p, server->released));
    }
    if (fenced && late >= 0 && n_late == 1)
        say("the others wait for PE %d, which has not come to gshmem_init", late);
    else if (fenced && late >= 0)
        say("the others wait for PE %d and %d more, which have not come to gshmem_init", late,
            n_late - 1);
}

static bool has_process(const pid_t *pid, int n_pes, pid_t wanted)
{
    for (int pe = 0; wanted > 0 && pe < n_pes; pe++) {
        if (pid[pe] == wanted)
            return true;
    }
    return false;
}

/* A PE of this job: one that gshmemrun has started itself rather than one that a wrapper has, since
 * gshmemrun of another name space of processes may have the same number. NULL: none answers. */
static const struct asked *find_own(const struct asked *found, size_t n, uint32_t job,
                                    const pid_t *pid, int n_pes)
{
    const struct asked *one = NULL;
    char name[64];

    snprintf(name, sizeof name, "gshmemrun-%u", job);
    for (size_t i = 0; i < n; i++) {
        if (!found[i].has_answered || strcmp(found[i].answer.job, name) != 0)
            continue;
        if (has_process(pid, n_pes, found[i].pid))
            return &found[i];
        one = one ? one : &found[i];
    }
    return one;
}

static bool any_listens(const struct asked *found, size_t n, const pid_t *pid, int n_pes)
{
    size_t i = 0;

    while (i < n && !has_process(pid, n_pes, found[i].pid))
        i++;
    return i < n;
}

/* PEs of which nobody can know that Ctrl-C has come, but that they have left it to gshmemrun. */
static void end_interrupted(const struct asked *found, size_t n, const struct asked *one)
{
    for (size_t i = 0; one && i < n; i++) {
        if (where_same_job(&found[i], one) && found[i].answer.interrupted && found[i].pid > 0)
            kill(found[i].pid, SIGINT);
    }
}

static void standstill_run(uint32_t job, const pid_t *pid, const struct server *server,
                           enum standstill what)
{
    const bool brief = what == STANDSTILL_BRIEF;
    const int ms = brief ? STANDSTILL_BRIEF_MS - PRINT_BRIEF_MS : STANDSTILL_MS - PRINT_MS;
    const uint64_t until = clock_ns() + (uint64_t)ms * CLOCK_MS;
    struct asked *found;
    char *text = NULL;
    size_t bytes = 0, n = ask_find((uint32_t)geteuid(), brief ? FIND_BRIEF_MS : FIND_MS, &found);
    const struct asked *one = find_own(found, n, job, pid, server->n_pes);
    if (!one && !brief && any_listens(found, n, pid, server->n_pes)) {
        free(found);
        n = ask_find((uint32_t)geteuid(), FIND_AGAIN_MS, &found);
        one = find_own(found, n, job, pid, server->n_pes);
    }

    if (what == STANDSTILL_END_INTERRUPTED) {
        end_interrupted(found, n, one);
        return;
    }
    FILE *report = open_memstream(&text, &bytes);
    bool known = one && report && where_report(found, n, one, brief, until, "gshmemrun: ", report);
    if (report)
        fclose(report);
    if (known && write(STDERR_FILENO, text, bytes) < 0)
        return;
    if (!known && what == STANDSTILL_WHOLE)
        standstill_say_processes(pid, server, any_listens(found, n, pid, server->n_pes));
}

pid_t standstill_start(uint32_t job, const pid_t *pid, const struct server *server,
                       enum standstill what)
{
    pid_t child = fork();

    if (child < 0)
        return 0;
    if (child > 0)
        return child;
    prctl(PR_SET_NAME, "gshmem-report", 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    standstill_run(job, pid, server, what);
    _exit(0);
}

void standstill_say_cut(uint32_t job, bool late)
{
    if (!late)
        return;
    say("the report of where the job stands took more than %d ms, and was left out; gshmem-where "
        "gshmemrun-%u waits longer",
        STANDSTILL_MS, job);
}
