#define _GNU_SOURCE
#include "bootstrap/run/descendants.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct process {
    pid_t pid;
    pid_t parent;
    bool zombie;
    enum { UNKNOWN, OURS, OTHERS } whose;
};

struct census {
    struct process *process; /* ascending by pid */
    size_t n;
    size_t capacity;
};

bool descendants_adopt(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
}

/* pid (name) state parent …; the name may hold anything, so its end is the last parenthesis. */
static bool read_process(const char *pid, struct process *p)
{
    char path[40], text[512];

    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false; /* it has gone since */
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = 0;
    char *rest = strrchr(text, ')');
    char state;
    int parent;
    if (!rest || sscanf(rest + 1, " %c %d", &state, &parent) != 2)
        return false;
    *p = (struct process){(pid_t)atoi(pid), parent, state == 'Z' || state == 'X', UNKNOWN};
    return true;
}

static bool census_add(struct census *c, const struct process *p)
{
    if (c->n == c->capacity) {
        size_t capacity = c->capacity ? 2 * c->capacity : 256;
        struct process *grown = realloc(c->process, capacity * sizeof *grown);
        if (!grown)
            return false;
        c->process = grown;
        c->capacity = capacity;
    }
    c->process[c->n++] = *p;
    return true;
}

static int by_pid(const void *a, const void *b)
{
    const struct process *left = a, *right = b;

    return left->pid < right->pid ? -1 : left->pid > right->pid;
}

static void take_census(struct census *c)
{
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    struct process p;

    *c = (struct census){NULL, 0, 0};
    if (!proc)
        return;
    while ((entry = readdir(proc))) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        if (read_process(entry->d_name, &p) && !census_add(c, &p))
            break;
    }
    closedir(proc);
    qsort(c->process, c->n, sizeof p, by_pid);
}

size_t descendants_children(pid_t **list)
{
    struct census c;
    siginfo_t child;
    size_t n = 0;

    *list = NULL;
    if (waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) != 0)
        return 0; /* the rule, found out without reading all of /proc */
    take_census(&c);
    *list = calloc(c.n + 1, sizeof **list);
    for (size_t i = 0; *list && i < c.n; i++) {
        if (c.process[i].parent == getpid())
            (*list)[n++] = c.process[i].pid;
    }
    free(c.process);
    return n;
}

static bool contains(const pid_t *list, size_t n, pid_t pid)
{
    for (size_t i = 0; i < n; i++) {
        if (list[i] == pid)
            return true;
    }
    return false;
}

/* Follows a process's parents up to this process, one spared, or one already known, and then marks
 * all that were met. The count of steps guards against a table that changed while it was read. */
static int whose(struct census *c, struct process *p, const pid_t *spare, size_t n_spare)
{
    struct process *at = p;
    int answer = OTHERS;

    for (size_t steps = 0; at && steps <= c->n; steps++) {
        if (at->whose != UNKNOWN || contains(spare, n_spare, at->pid)) {
            answer = at->whose == OURS ? OURS : OTHERS;
            break;
        }
        if (at->parent == getpid()) {
            answer = OURS;
            break;
        }
        struct process key = {.pid = at->parent};
        at = c->n ? bsearch(&key, c->process, c->n, sizeof key, by_pid) : NULL;
    }
    for (struct process *met = p; met && met->whose == UNKNOWN;) {
        met->whose = answer;
        if (met == at)
            break;
        struct process key = {.pid = met->parent};
        met = bsearch(&key, c->process, c->n, sizeof key, by_pid);
    }
    return answer;
}

size_t descendants_signal(int signal, const pid_t *spare, size_t n_spare, pid_t but)
{
    struct census c;
    size_t found = 0;

    take_census(&c);
    for (size_t i = 0; i < c.n; i++) {
        struct process *p = &c.process[i];
        if (!p->zombie && whose(&c, p, spare, n_spare) == OURS &&
            (!but || getpgid(p->pid) != but) && kill(p->pid, signal) == 0)
            found++;
    }
    free(c.process);
    return found;
}

/* ---- Processes that take their time to end ---- */

enum thread_state { THREAD_LIVES, THREAD_ENDS, THREAD_HAS_ENDED };

static enum thread_state thread_state(const char *pid, const char *tid)
{
    enum { PF_EXITING = 0x4, PF_POSTCOREDUMP = 0x8, PF_DUMPCORE = 0x200 }; /* of the kernel */
    char path[80], text[512];
    unsigned flags;
    char state;

    snprintf(path, sizeof path, "/proc/%.20s/task/%.20s/stat", pid, tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n < 0 ? 0 : n] = 0;
    char *rest = strrchr(text, ')'); /* as in read_process */
    if (!rest || sscanf(rest + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2 ||
        state == 'Z' || state == 'X')
        return THREAD_HAS_ENDED;
    return flags & (PF_EXITING | PF_POSTCOREDUMP | PF_DUMPCORE) ? THREAD_ENDS : THREAD_LIVES;
}

/* The first thread alone may have ended, while the others go on. */
static bool process_ends(pid_t pid)
{
    char name[20], path[40];
    struct dirent *entry;
    bool ends = false, lives = false;

    snprintf(name, sizeof name, "%d", (int)pid);
    snprintf(path, sizeof path, "/proc/%s/task", name);
    DIR *tasks = opendir(path);
    while (tasks && (entry = readdir(tasks))) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        const enum thread_state state = thread_state(name, entry->d_name);
        ends |= state == THREAD_ENDS;
        lives |= state == THREAD_LIVES;
    }
    if (tasks)
        closedir(tasks);
    return ends && !lives;
}

/* The count of steps guards against a table that changed while it was read. */
static bool is_below(const struct census *c, const struct process *p, pid_t root)
{
    for (size_t steps = 0; p && steps <= c->n; steps++) {
        if (p->pid == root)
            return true;
        const struct process key = {.pid = p->parent};
        p = bsearch(&key, c->process, c->n, sizeof key, by_pid);
    }
    return false;
}

bool descendants_any_ends(pid_t root)
{
    struct census c;
    bool any = false;

    take_census(&c);
    for (size_t i = 0; i < c.n && !any; i++)
        any = is_below(&c, &c.process[i], root) && process_ends(c.process[i].pid);
    free(c.process);
    return any;
}

/* Reaps what can be reaped of what is not spared. False: no child is left. */
static bool descendants_reap(const pid_t *spare, size_t n_spare)
{
    siginfo_t child;

    for (;;) {
        child.si_pid = 0;
        /* A look first: a spared child's status is for another to take. */
        if (waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) != 0)
            return errno != ECHILD;
        if (child.si_pid == 0 || contains(spare, n_spare, child.si_pid))
            return true;
        waitid(P_PID, (id_t)child.si_pid, &child, WEXITED | WNOHANG);
    }
}

void descendants_end(const pid_t *spare, size_t n_spare)
{
    const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
    sigset_t child;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    /* Twice nothing: a census may miss a process that changes its parent while it is taken. */
    for (int rounds = 0, empty = 0; rounds < 300 && empty < 2; rounds++) {
        if (!descendants_reap(spare, n_spare))
            return;
        empty = descendants_signal(SIGKILL, spare, n_spare, 0) ? 0 : empty + 1;
        sigtimedwait(&child, NULL, &pause);
    }
    descendants_reap(spare, n_spare);
}
