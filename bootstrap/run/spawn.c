#define _GNU_SOURCE
#include "bootstrap/run/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/nearest.h"
#include "bootstrap/run/say.h"

extern char **environ;

enum {
    STACK_BYTES = 256 * 1024,
    FIRST_NUMBER = 100, /* shells and their scripts use the low ones as they like */
    SPARE_FILES = 24,   /* gshmemrun's own, and what it was started with */
};

/* ---- the program ---- */

static bool can_execute(const char *path, int *error)
{
    struct stat st;

    *error = 0;
    if (stat(path, &st) != 0)
        *error = errno;
    else if (S_ISDIR(st.st_mode))
        *error = EISDIR;
    else if (access(path, X_OK) != 0)
        *error = errno;
    return *error == 0;
}

static bool refuse_program(const char *program, int error, int *status)
{
    bool missing = error == ENOENT || error == ENOTDIR;

    say("%s: %s%s", program, missing ? "program not found" : "cannot be executed: ",
        missing ? (strchr(program, '/') ? "" : " in PATH") : strerror(error));
    *status = missing ? 127 : 126;
    return false;
}

bool spawn_find(const char *program, char path[PATH_MAX], int *status)
{
    int error = ENOENT, kept = ENOENT;

    if (strlen(program) >= PATH_MAX)
        return refuse_program(program, ENAMETOOLONG, status);
    if (strchr(program, '/')) {
        strcpy(path, program);
        return can_execute(path, &error) || refuse_program(program, error, status);
    }
    const char *at = getenv("PATH");
    for (at = at ? at : "/usr/local/bin:/usr/bin:/bin"; *program; at++) {
        size_t n = strcspn(at, ":");
        if (snprintf(path, PATH_MAX, "%.*s%s%s", (int)n, at, n ? "/" : "", program) < PATH_MAX) {
            if (can_execute(path, &error))
                return true;
            if (error == EACCES)
                kept = error; /* there it is: a better answer than "not found" */
        }
        at += n;
        if (!*at)
            break;
    }
    return refuse_program(program, kept, status);
}

bool spawn_raise_limit(const struct options *o, struct rlimit *before)
{
    /* A PE's wire and a watch on it; four ends of two pipes while they are handed out. */
    rlim_t need = FIRST_NUMBER + SPARE_FILES + (rlim_t)o->n_pes * (2 + (o->tag_output ? 4 : 0));
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, before);
    limit = *before;
    limit.rlim_cur = limit.rlim_max;
    if (limit.rlim_max != before->rlim_cur && setrlimit(RLIMIT_NOFILE, &limit) != 0)
        limit.rlim_cur = before->rlim_cur;
    if (limit.rlim_cur >= need)
        return true;
    say("-n %d%s needs %llu open files, the limit is %llu: raise it with ulimit -Hn", o->n_pes,
        o->tag_output ? " --tag-output" : "", (unsigned long long)need,
        (unsigned long long)limit.rlim_cur);
    return false;
}

/* ---- the environment ---- */

static bool replaced(const struct spawner *s, const char *entry)
{
    if (strncmp(entry, "GSHMEM_RUN_", 11) == 0)
        return true;
    for (size_t i = 0; i < s->options->n_set; i++) {
        size_t n = strcspn(s->options->set[i], "=") + 1;
        if (strncmp(entry, s->options->set[i], n) == 0)
            return true;
    }
    return false;
}

/* The texts of a PE's own are in the spawner, and written anew for each PE. */
static bool make_environment(struct spawner *s)
{
    const struct options *o = s->options;
    size_t n = 0, used = 0;

    while (environ && environ[n])
        n++;
    s->environment = calloc(n + o->n_set + 7, sizeof *s->environment);
    if (!s->environment)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!replaced(s, environ[i]))
            s->environment[used++] = environ[i];
    }
    for (size_t i = 0; i < o->n_set; i++)
        s->environment[used++] = o->set[i];
    snprintf(s->within_text, sizeof s->within_text, NEAREST_VARIABLE "=%" PRIx64,
             nearest_digest(s->environment));
    s->environment[used++] = s->within_text;
    s->environment[used++] = s->pe_text;
    s->environment[used++] = s->n_pes_text;
    s->environment[used++] = s->wire_text;
    s->environment[used++] = s->lifeline_text;
    s->environment[used++] = s->log_text;
    return true;
}

/* As client.c reads it: the inode tells the descriptor from another with the same number. */
static void name_descriptor(char *text, size_t size, const char *variable, int number, int fd)
{
    struct stat st = {.st_ino = 0};

    fstat(fd, &st);
    snprintf(text, size, "%s=%d:%llu", variable, number, (unsigned long long)st.st_ino);
}

/* As alike.c reads it: with the inode of the standard error that the PE is given. */
static void name_log(struct spawner *s, int error)
{
    struct stat st = {.st_ino = 0};

    name_descriptor(s->log_text, sizeof s->log_text, "GSHMEM_RUN_LOG", s->log, s->log);
    size_t used = strlen(s->log_text);
    fstat(error, &st);
    snprintf(s->log_text + used, sizeof s->log_text - used, ":%llu", (unsigned long long)st.st_ino);
}

/* ---- the descriptors ---- */

/* Moves fd to a number that is out of the way. */
static int spawn_move_up(int fd)
{
    int up = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_NUMBER);

    if (up >= 0)
        close(fd);
    return up;
}

static bool make_descriptors(struct spawner *s)
{
    if (pipe2(s->lifeline, O_CLOEXEC) != 0)
        return false;
    s->lifeline[0] = spawn_move_up(s->lifeline[0]);
    /* Open in gshmemrun only so that the number stays free for the PEs' wires. */
    s->wire_number = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, FIRST_NUMBER);
    s->log = fcntl(s->log, F_DUPFD_CLOEXEC, FIRST_NUMBER);
    if (s->lifeline[0] < 0 || s->wire_number < 0 || s->log < 0)
        return false;
    name_descriptor(s->lifeline_text, sizeof s->lifeline_text, "GSHMEM_RUN_LIFELINE",
                    s->lifeline[0], s->lifeline[0]);
    return true;
}

bool spawner_prepare(struct spawner *s)
{
    s->stack = malloc(STACK_BYTES);
    snprintf(s->n_pes_text, sizeof s->n_pes_text, "GSHMEM_RUN_NPES=%d", s->options->n_pes);
    if (!s->stack || !make_environment(s)) {
        say("out of memory");
        return false;
    }
    if (!make_descriptors(s)) {
        say("preparing the PEs' descriptors: %s", strerror(errno));
        return false;
    }
    if (s->options->bind_core)
        s->cores = bind_cores(&s->n_cores);
    return !s->options->bind_core || s->cores;
}

void spawner_free(struct spawner *s)
{
    free(s->cores);
    free(s->environment);
    free(s->stack);
}

/* ---- a process ---- */

struct birth {
    const struct spawner *s;
    int pe;
    int wire;
    const int *stdio;
    pid_t parent;
    const char *failed; /* what went wrong, set by the child in the memory it shares */
    int error;
};

static int stop_birth(struct birth *b, const char *what)
{
    b->failed = what;
    b->error = errno;
    return 127;
}

/* The child, until it is the program. It has the parent's memory, which waits meanwhile. */
static int be_born(void *argument)
{
    struct birth *b = argument;
    const struct spawner *s = b->s;

    /* What is killed by SIGKILL cannot clean up, so the kernel does. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
        return stop_birth(b, "asking to die with gshmemrun");
    if (getppid() != b->parent)
        return 127;
    for (int i = 0; i < 3; i++) {
        if (b->stdio[i] != i && dup2(b->stdio[i], i) < 0)
            return stop_birth(b, "its standard input and output");
    }
    if (dup2(b->wire, s->wire_number) < 0 || fcntl(s->lifeline[0], F_SETFD, 0) != 0 ||
        fcntl(s->log, F_SETFD, 0) != 0)
        return stop_birth(b, "its wire");
    if (s->cores) {
        const struct bind_core *core = &s->cores[b->pe % s->n_cores];
        if (sched_setaffinity(0, sizeof core->cpus, core->cpus) != 0)
            return stop_birth(b, "binding it to a core");
    }
    if (setrlimit(RLIMIT_NOFILE, &s->nofile) != 0)
        return stop_birth(b, "restoring the limit of open files");
    sigprocmask(SIG_SETMASK, &s->mask, NULL);
    execve(s->path, s->options->program, s->environment);
    return stop_birth(b, NULL);
}

/* Says why there is no PE, and what to exit with. */
static int spawn_explain(const struct birth *b)
{
    const char *program = b->s->options->program[0];

    if (b->failed)
        say("starting PE %d: %s: %s", b->pe, b->failed, strerror(b->error));
    else if (b->error == ENOENT)
        say("%s: its interpreter (after #! or of the dynamic linker) is not found", program);
    else if (b->error == ENOEXEC)
        say("%s: neither a program for this machine nor a script that begins with #!", program);
    else
        say("starting PE %d: %s: %s", b->pe, program, strerror(b->error));
    if (b->failed)
        return 1;
    return b->error == ENOENT ? 127 : 126;
}

pid_t spawner_start(struct spawner *s, int pe, int wire, const int stdio[3], int *status)
{
    struct birth b = {.s = s, .pe = pe, .wire = wire, .stdio = stdio, .parent = getpid()};

    snprintf(s->pe_text, sizeof s->pe_text, "GSHMEM_RUN_PE=%d", pe);
    name_descriptor(s->wire_text, sizeof s->wire_text, "GSHMEM_RUN_WIRE", s->wire_number, wire);
    name_log(s, stdio[STDERR_FILENO]);
    /* Without a copy of our memory, as posix_spawn does it, which knows no death signal. */
    uintptr_t top = ((uintptr_t)s->stack + STACK_BYTES) & ~(uintptr_t)63;
    pid_t pid = clone(be_born, (void *)top, CLONE_VM | CLONE_VFORK | SIGCHLD, &b);
    if (pid > 0 && b.error == 0)
        return pid;
    if (pid < 0) {
        b.failed = "a new process";
        b.error = errno;
    }
    *status = spawn_explain(&b);
    return 0;
}
