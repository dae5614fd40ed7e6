#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/where/where.h"

enum { PES_MOST = 1 << 17 }; /* so that no answer makes this process take all memory */

/* ---- What the PEs tell ---- */

static bool is_sane(const struct where_answer *a)
{
    return a->pe >= 0 && a->pe < a->n_pes && a->n_pes <= PES_MOST;
}

bool where_same_job(const struct asked *a, const struct asked *b)
{
    return a->has_answered && b->has_answered && a->answer.number == b->answer.number &&
           a->answer.n_pes == b->answer.n_pes && strcmp(a->answer.job, b->answer.job) == 0;
}

static bool collect_begin(const struct asked *found, size_t n, const struct asked *one,
                          struct where_job *job)
{
    const struct where_answer *first = &one->answer;

    memset(job, 0, sizeof *job);
    if (!is_sane(first) || !(job->pe = calloc((size_t)first->n_pes, sizeof *job->pe)))
        return false;
    job->n_pes = first->n_pes;
    job->nodes = first->nodes;
    snprintf(job->name, sizeof job->name, "%s", first->job);
    snprintf(job->program, sizeof job->program, "%s", first->program);
    for (int pe = 0; pe < job->n_pes; pe++)
        job->pe[pe] = (struct where_pe){.pe = pe, .node = -1, .state = STATE_SILENT};
    for (size_t i = 0; i < n; i++) {
        const struct where_answer *a = &found[i].answer;
        if (!where_same_job(&found[i], one) || !is_sane(a))
            continue;
        struct where_pe *p = &job->pe[a->pe];
        p->asked = &found[i];
        p->pid = found[i].pid;
        p->node = a->node;
        job->n_answers++;
        job->lasted = a->lasted > job->lasted ? a->lasted : job->lasted;
    }
    return job->n_answers > 0;
}

/* Whether the process numbers in pages of that node are those of this machine, and of the name
 * space of this process: as a PE says its own, so the socket has it. */
static bool has_our_numbers(const struct where_job *job, int node)
{
    for (int pe = 0; pe < job->n_pes; pe++) {
        const struct asked *a = job->pe[pe].asked;
        if (a && job->pe[pe].node == node && a->pid == a->answer.pid)
            return true;
    }
    return false;
}

static const enum where_state state_of_life[] = {
    [WHERE_ABSENT] = STATE_ABSENT, [WHERE_LIVES] = STATE_OUTSIDE,     [WHERE_HAS_LEFT] = STATE_LEFT,
    [WHERE_HAS_DIED] = STATE_DIED, [WHERE_HAS_FAILED] = STATE_FAILED, [WHERE_SILENT] = STATE_SILENT,
};

static void collect_take_members(struct where_job *job, const struct asking *a)
{
    const struct where_member *m = a->rest;

    for (uint32_t i = 0; a->complete && i < a->answer.members; i++) {
        if (m[i].pe < 0 || m[i].pe >= job->n_pes || (uint32_t)m[i].life > WHERE_SILENT)
            continue;
        struct where_pe *p = &job->pe[m[i].pe];
        if (p->page || p->state != STATE_SILENT)
            continue; /* known from its own node */
        p->state = state_of_life[m[i].life];
        p->node = m[i].node;
        if (!m[i].has_page || !(p->page = malloc(sizeof *p->page)))
            continue;
        memcpy(p->page, &m[i].page, sizeof *p->page);
        for (int module = 0; module < WHERE_MODULES; module++)
            p->page->module[module].path[WHERE_PATH - 1] = 0;
        p->now = m[i].now ? m[i].now : p->page->now;
        if (!p->pid && has_our_numbers(job, p->node))
            p->pid = p->page->pid;
    }
}

/* Asks one PE of each node; `round` counts the PEs of a node that have been asked in vain. */
static void ask_nodes(struct where_job *job, int round, int ms)
{
    struct asking *all = calloc((unsigned)job->n_pes, sizeof *all);
    size_t n = 0;

    if (!all)
        return;
    for (int pe = 0; pe < job->n_pes; pe++) {
        int before = 0;
        if (!job->pe[pe].asked || job->pe[pe].state != STATE_SILENT)
            continue;
        for (int other = 0; other < pe; other++)
            before += job->pe[other].asked && job->pe[other].node == job->pe[pe].node;
        if (before == round)
            all[n++] = (struct asking){.to = job->pe[pe].asked, .question = WHERE_NODE, .fd = -1};
    }
    ask_all(all, n, ms);
    for (size_t i = 0; i < n; i++) {
        collect_take_members(job, &all[i]);
        free(all[i].rest);
    }
    free(all);
}

static bool any_is_silent(const struct where_job *job)
{
    for (int pe = 0; pe < job->n_pes; pe++) {
        if (job->pe[pe].state == STATE_SILENT)
            return true;
    }
    return false;
}

/* PEs of nodes that cannot be asked from here: by one that can. */
static void collect_others(struct where_job *job, int ms)
{
    for (int pe = 0; pe < job->n_pes; pe++) {
        if (!job->pe[pe].asked)
            continue;
        struct asking a = {.to = job->pe[pe].asked, .question = WHERE_OTHERS, .fd = -1};
        ask_all(&a, 1, ms);
        collect_take_members(job, &a);
        free(a.rest);
        if (a.complete)
            return;
    }
}

/* ---- PEs that listen and do not answer ---- */

/* Their numbers are in their environment, whoever started them; -1: not known. Started by the same
 * process as a PE of the job: then they are of it, too. */
static int number_in_environment(const char *text, size_t bytes)
{
    static const char *const names[] = {
        "GSHMEM_RUN_PE=", "PMIX_RANK=", "PMI_RANK=", "SLURM_PROCID="};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        for (const char *at = text; at < text + bytes; at += strlen(at) + 1) {
            if (strncmp(at, names[i], strlen(names[i])) == 0)
                return atoi(at + strlen(names[i]));
        }
    }
    return -1;
}

/* A file of /proc; the caller frees it. NULL: it cannot be read. */
static char *collect_read(pid_t pid, const char *name, size_t *bytes)
{
    enum { MOST = 1 << 20 };
    char path[64], *text = malloc(MOST + 1);
    ssize_t n;

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int fd = pid > 0 && text ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    *bytes = 0;
    while (fd >= 0 && *bytes < MOST && (n = read(fd, text + *bytes, MOST - *bytes)) > 0)
        *bytes += (size_t)n;
    if (fd >= 0)
        close(fd);
    if (text)
        text[*bytes] = 0;
    if (fd >= 0 && *bytes)
        return text;
    free(text);
    return NULL;
}

/* As /proc has it after the process's name: its state, its parent; 0: not known. */
static char collect_state_of(pid_t pid, pid_t *parent)
{
    size_t bytes;
    char *text = collect_read(pid, "stat", &bytes), state = 0;
    const char *end = text ? strrchr(text, ')') : NULL;
    int number = 0;

    if (end && sscanf(end, ") %c %d", &state, &number) < 1)
        state = 0;
    if (parent)
        *parent = number;
    free(text);
    return state;
}

static bool is_parent_of_job(const struct where_job *job, pid_t parent)
{
    for (int pe = 0; pe < job->n_pes; pe++) {
        if (job->pe[pe].asked && job->pe[pe].asked->answer.parent == parent)
            return true;
    }
    return false;
}

static void identify_silent(struct where_job *job, const struct asked *found, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        pid_t parent = 0;
        size_t bytes;
        if (found[i].has_answered || !collect_state_of(found[i].pid, &parent) ||
            !is_parent_of_job(job, parent))
            continue;
        char *text = collect_read(found[i].pid, "environ", &bytes);
        int pe = text ? number_in_environment(text, bytes) : -1;
        free(text);
        if (pe >= 0 && pe < job->n_pes && !job->pe[pe].asked && !job->pe[pe].pid)
            job->pe[pe].pid = found[i].pid;
    }
}

/* ---- What follows from it ---- */

/* The program's own waits first, of its main thread, its kernels and streams; the oldest first. */
static int by_importance(const void *a, const void *b, void *page)
{
    const struct where_wait *x = a, *y = b;
    const int32_t main = ((const struct where_page *)page)->pid;
    const int own = (y->tid == main || y->tid <= 0) - (x->tid == main || x->tid <= 0);

    return own ? own : x->since < y->since ? -1 : x->since > y->since;
}

/* Time stands still in a process that is stopped: the last time at which it was seen to wait, or
 * at which its page tells the time. */
static uint64_t last_seen(const struct where_page *page)
{
    uint64_t newest = page->now;

    for (int i = 0; i < WHERE_WAITS; i++) {
        if (page->claimed >> i & 1 && page->wait[i].seen > newest)
            newest = page->wait[i].seen;
    }
    return newest;
}

/* A kernel's wait does not say when it is over, nor does a thread's that does not come back. */
static bool is_over(const struct where_wait *w, uint64_t now)
{
    return w->seen + (w->tid == 0 ? WHERE_KERNEL_NS : WHERE_WAIT_NS) < now;
}

static void collect_waits(struct where_pe *p)
{
    const uint32_t claimed = p->page ? p->page->claimed : 0;

    if (!claimed || !(p->waits = calloc(WHERE_WAITS, sizeof *p->waits)))
        return;
    const uint64_t now = p->state == STATE_STOPPED || !p->now ? last_seen(p->page) : p->now;
    for (int i = 0; i < WHERE_WAITS; i++) {
        struct where_wait *w = &p->waits[p->n_waits];
        if (!(claimed >> i & 1) || is_over(&p->page->wait[i], now))
            continue;
        *w = p->page->wait[i];
        w->call[WHERE_NAME - 1] = w->text[WHERE_TEXT - 1] = 0;
        w->frames = w->frames < WHERE_FRAMES ? w->frames : WHERE_FRAMES;
        w->peers = w->peers < 0 ? 0 : w->peers;
        p->n_waits++;
    }
    qsort_r(p->waits, (size_t)p->n_waits, sizeof *p->waits, by_importance, p->page);
}

/* Whether the PE's program is in a wait: its main thread, or a kernel or stream for which that
 * waits. */
static bool is_waiting(const struct where_pe *p)
{
    for (int i = 0; i < p->n_waits; i++) {
        if (p->waits[i].tid == p->page->pid || p->waits[i].tid <= 0)
            return true;
    }
    return false;
}

/* What the system says of its process comes first: the age of its waits depends on it. */
static void decide_state(struct where_pe *p)
{
    const bool lives = p->state == STATE_OUTSIDE || p->state == STATE_SILENT;
    const char state = lives ? collect_state_of(p->pid, NULL) : 0;

    if (state == 'T' || state == 't')
        p->state = STATE_STOPPED;
    collect_waits(p);
    if (p->state == STATE_OUTSIDE && is_waiting(p))
        p->state = STATE_WAITS;
}

/* Whether it helps to know where its threads are: it does not wait, or for a variable alone, which
 * another of its threads may have to change. */
static bool needs_stacks(const struct where_pe *p)
{
    if (p->state == STATE_OUTSIDE)
        return true;
    for (int i = 0; p->state == STATE_WAITS && i < p->n_waits; i++) {
        if (p->waits[i].kind == WHERE_VARIABLE)
            return true;
    }
    return false;
}

/* wanted: by PE. */
static void ask_stacks(struct where_job *job, const bool *wanted, int ms)
{
    struct asking *all = calloc((unsigned)job->n_pes, sizeof *all);
    size_t n = 0;

    if (!all)
        return;
    for (int pe = 0; pe < job->n_pes; pe++) {
        if (job->pe[pe].asked && wanted[pe] && !job->pe[pe].stacks)
            all[n++] = (struct asking){.to = job->pe[pe].asked, .question = WHERE_STACKS, .fd = -1};
    }
    ask_all(all, n, ms);
    for (size_t i = 0; i < n; i++) {
        struct where_pe *p = &job->pe[all[i].to->answer.pe];
        if (all[i].complete && ((struct where_stacks *)all[i].rest)->threads <= WHERE_THREADS)
            p->stacks = all[i].rest;
        else
            free(all[i].rest);
    }
    free(all);
}

void where_collect_stacks(struct where_job *job, const int *pe, int n, int ms)
{
    bool *wanted = calloc((unsigned)job->n_pes, sizeof *wanted);

    for (int i = 0; wanted && i < n; i++)
        wanted[pe[i]] = true;
    if (wanted)
        ask_stacks(job, wanted, ms);
    free(wanted);
}

/* Of PEs of which it is known already that stacks help. */
static void collect_first_stacks(struct where_job *job, int ms)
{
    bool *wanted = calloc((unsigned)job->n_pes, sizeof *wanted);

    for (int pe = 0; wanted && pe < job->n_pes; pe++)
        wanted[pe] = needs_stacks(&job->pe[pe]);
    if (wanted)
        ask_stacks(job, wanted, ms);
    free(wanted);
}

bool where_collect(const struct asked *found, size_t n, const struct asked *one, int ms,
                   struct where_job *job)
{
    if (!collect_begin(found, n, one, job)) {
        where_free(job);
        return false;
    }
    for (int round = 0; round < 3 && any_is_silent(job); round++)
        ask_nodes(job, round, ms / 4);
    if (any_is_silent(job) && job->nodes > 1)
        collect_others(job, ms / 2 + 1000);
    identify_silent(job, found, n);
    for (int pe = 0; pe < job->n_pes; pe++)
        decide_state(&job->pe[pe]);
    collect_first_stacks(job, ms / 2);
    return true;
}

void where_free(struct where_job *job)
{
    for (int pe = 0; job->pe && pe < job->n_pes; pe++) {
        free(job->pe[pe].stacks);
        free(job->pe[pe].waits);
        free(job->pe[pe].page);
    }
    free(job->pe);
    job->pe = NULL;
}
