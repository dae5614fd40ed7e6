#define _GNU_SOURCE
#include <stdlib.h>

#include "runtime/where/lines.h"
#include "runtime/where/stack_text.h"
#include "runtime/where/where.h"

enum {
    WAITS_SHOWN = 3,  /* of a PE */
    COLLECT_MS = 1600,
};

/* "PE 3", "PEs 0-2,4-7". */
static void add_pes(struct text *t, const int *pe, int n)
{
    text_add(t, n == 1 ? "PE " : "PEs ");
    for (int i = 0; i < n;) {
        int last = i;
        while (last + 1 < n && pe[last + 1] == pe[last] + 1)
            last++;
        text_add(t,
                   last == i       ? "%s%d"
                   : last == i + 1 ? "%s%d,%d"
                                   : "%s%d-%d",
                   i ? "," : "", pe[i], pe[last]);
        i = last + 1;
        if (t->used > TEXT_BYTES * 3 / 4 && i < n) {
            text_add(t, " and %d more", n - i);
            return;
        }
    }
}

/* How long a PE has waited, in ns of its own clock. */
static uint64_t report_age(const struct where_pe *p)
{
    return p->n_waits && p->waits[0].since < p->now ? p->now - p->waits[0].since : 0;
}

static void enter_frames(struct lines *l, const struct where_job *job)
{
    for (int pe = 0; pe < job->n_pes; pe++) {
        const struct where_pe *p = &job->pe[pe];
        for (int i = 0; i < p->n_waits; i++) {
            for (uint32_t f = 0; f < p->waits[i].frames; f++)
                lines_add(l, p->page, p->waits[i].frame[f]);
        }
        for (uint32_t i = 0; p->stacks && i < p->stacks->threads; i++) {
            const struct where_thread *t = &p->stacks->thread[i];
            for (uint32_t f = 0; f < t->frames && f < WHERE_FRAMES; f++)
                lines_add(l, p->page, t->frame[f]);
        }
    }
}

/* ---- One PE ---- */

static void report_object(struct text *t, const struct where_pe *p, const struct where_wait *w)
{
    char name[160];

    if (!w->at)
        return;
    const char *what = w->kind == WHERE_LOCK || w->kind == WHERE_THREAD ? "lock" : "variable";
    if (lines_variable(p->page, w->at, name, sizeof name))
        text_add(t, ", the %s %s", what, name);
    else if (w->segment >= 0)
        text_add(t, ", the %s at 0x%llx (%llu bytes into %s)", what, (unsigned long long)w->at,
                   (unsigned long long)w->offset,
                   w->segment == WHERE_SEGMENT_HEAP ? "the heap" : "symmetric memory");
    else
        text_add(t, ", the %s at 0x%llx (not symmetric: no other PE reaches it)", what,
                   (unsigned long long)w->at);
}

static void add_wait(struct text *t, const struct where_pe *p, const struct where_wait *w,
                     const struct lines *lines)
{
    if (w->tid == WHERE_STREAM)
        text_add(t, "on a stream: ");
    else if (w->tid && w->tid != p->page->pid)
        text_add(t, "another thread: ");
    text_add(t, "in %s", w->call);
    if (w->kind == WHERE_COLLECTIVE)
        text_add(t, " on team %d", w->team);
    report_object(t, p, w);
    if (w->text[0])
        text_add(t, ", %s", w->text);
    if (w->peers) {
        text_add(t, ", for ");
        add_pes(t, w->peer, w->peers < WHERE_PEERS ? w->peers : WHERE_PEERS);
        if (w->peers > WHERE_PEERS)
            text_add(t, " and %d more", w->peers - WHERE_PEERS);
    }
    size_t before = t->used;
    text_add(t, "; called by ");
    if (!text_add_stack(t, lines, p->page, w->frame, w->frames))
        t->at[t->used = before] = 0;
}

/* Where a PE is that does not wait: "sleeps in compute (a.c:7) < main (a.c:12)". */
static void add_outside(struct text *t, const struct where_pe *p, const struct lines *lines)
{
    const struct where_thread *thread = stack_of_main(p);

    text_add(t, "outside of calls that wait");
    if (!thread)
        return;
    text_add(t, thread->state == 'R'   ? ", running"
                  : thread->state == 'D' ? ", waiting for the system"
                  : thread->state        ? ", sleeping"
                                         : "");
    size_t before = t->used;
    text_add(t, " in ");
    if (!text_add_stack(t, lines, p->page, thread->frame, thread->frames))
        t->at[t->used = before] = 0;
    before = t->used;
    text_add(t, "; ");
    if (thread->state == 'R' || !text_add_running(t, p, lines))
        t->at[t->used = before] = 0;
}

static const char *const state_text[] = {
    [STATE_DIED] = "has died",
    [STATE_FAILED] = "has failed in gshmem_init or gshmem_finalize",
    [STATE_STOPPED] = "is stopped, by a signal or a debugger",
    [STATE_SILENT] = "does not answer, nor does any other PE of its node for it",
    [STATE_LEFT] = "has left the job",
    [STATE_ABSENT] = "has not come to gshmem_init",
    [STATE_OUTSIDE] = "is outside of calls that wait",
    [STATE_WAITS] = "waits",
};

static const char *const state_many[] = {
    [STATE_DIED] = "have died",
    [STATE_FAILED] = "have failed in gshmem_init or gshmem_finalize",
    [STATE_STOPPED] = "are stopped, by a signal or a debugger",
    [STATE_SILENT] = "do not answer, nor does any other PE of their nodes for them",
    [STATE_LEFT] = "have left the job",
    [STATE_ABSENT] = "have not come to gshmem_init",
    [STATE_OUTSIDE] = "are outside of calls that wait",
    [STATE_WAITS] = "wait",
};

static void describe_pe(struct text *t, const struct where_pe *p, const struct lines *lines)
{
    t->used = 0;
    t->at[0] = 0;
    if (p->state == STATE_OUTSIDE)
        add_outside(t, p, lines);
    else if (p->state != STATE_WAITS)
        text_add(t, "%s", state_text[p->state]);
    for (int i = 0; i < p->n_waits && i < WAITS_SHOWN; i++) {
        text_add(t, i || p->state != STATE_WAITS ? "; " : "");
        add_wait(t, p, &p->waits[i], lines);
    }
    if (p->n_waits > WAITS_SHOWN)
        text_add(t, "; and %d waits more", p->n_waits - WAITS_SHOWN);
}

/* ---- The whole ---- */

/* PEs whose lines are alike are one line. */
static void print_pes(const struct where_job *job, const struct lines *lines, const char *prefix,
                      FILE *to)
{
    struct text(*text) = calloc((size_t)job->n_pes, sizeof *text);
    bool *done = calloc((size_t)job->n_pes, sizeof *done);
    int *alike = calloc((size_t)job->n_pes, sizeof *alike);

    for (int pe = 0; text && done && alike && pe < job->n_pes; pe++)
        describe_pe(&text[pe], &job->pe[pe], lines);
    for (int pe = 0; text && done && alike && pe < job->n_pes; pe++) {
        uint64_t longest = 0;
        struct text who = {.used = 0};
        int n = 0;
        if (done[pe])
            continue;
        for (int other = pe; other < job->n_pes; other++) {
            if (done[other] || strcmp(text[pe].at, text[other].at) != 0)
                continue;
            done[other] = true;
            alike[n++] = other;
            if (report_age(&job->pe[other]) > longest)
                longest = report_age(&job->pe[other]);
        }
        add_pes(&who, alike, n);
        fprintf(to, "%s  %s: %s", prefix, who.at, text[pe].at);
        if (longest)
            fprintf(to, " (for %.0f s)", (double)longest / 1e9);
        fputc('\n', to);
    }
    free(text);
    free(done);
    free(alike);
}

static void add_where(struct text *t, const struct where_job *job, const struct lines *lines,
                      int pe)
{
    const struct where_thread *thread = stack_of_main(&job->pe[pe]);
    struct text stack = {.used = 0};

    if (job->pe[pe].state == STATE_OUTSIDE && thread &&
        text_add_stack(&stack, lines, job->pe[pe].page, thread->frame, thread->frames))
        text_add(t, ", in %s", stack.at);
    stack = (struct text){.used = 0};
    if (job->pe[pe].state == STATE_OUTSIDE && thread && thread->state != 'R' &&
        text_add_running(&stack, &job->pe[pe], lines))
        text_add(t, "; %s", stack.at);
}

/* "; it holds the lock a": what the PE has that another waits for. */
static void add_held(struct text *t, const struct where_job *job, int pe)
{
    for (int other = 0; other < job->n_pes; other++) {
        const struct where_pe *p = &job->pe[other];
        for (int i = 0; i < p->n_waits; i++) {
            if (p->waits[i].kind != WHERE_LOCK || p->waits[i].peer[0] != pe)
                continue;
            struct text object = {.used = 0};
            report_object(&object, p, &p->waits[i]);
            text_add(t, "; it holds %s", object.used > 2 ? object.at + 2 : "a lock");
            return;
        }
    }
}

static void add_cycle(struct text *t, const struct where_job *job, const struct culprit *c)
{
    int lowest = 0;

    for (int i = 1; i < c->n; i++)
        lowest = c->pe[i] < c->pe[lowest] ? i : lowest;
    for (int i = 0; i < c->n && t->used < TEXT_BYTES * 3 / 4; i++) {
        const int pe = c->pe[(lowest + i) % c->n], next = c->pe[(lowest + i + 1) % c->n];
        text_add(t, i ? ", PE %d for PE %d" : "deadlock: PE %d waits for PE %d", pe, next);
        if (job->pe[pe].n_waits)
            text_add(t, " (in %s)", job->pe[pe].waits[0].call);
    }
}

static bool sleeps(const struct where_pe *p)
{
    const uint32_t threads = p->stacks ? p->stacks->threads : 0;
    uint32_t asleep = 0;

    for (uint32_t i = 0; i < threads; i++)
        asleep += p->stacks->thread[i].state == 'S' || p->stacks->thread[i].state == 'D';
    return threads && asleep == threads;
}

/* Nobody waits in a call for another PE that is not there. Where all threads of all PEs sleep,
 * nobody computes, either. */
static void add_idle(struct text *t, const struct where_job *job, const struct culprit *c,
                     const struct lines *lines)
{
    int first = -1;

    if (c->waiting) {
        text_add(t, "no PE blocks the job: what PEs wait for has just come; if this stays so, they "
                      "are in different calls of one team");
        return;
    }
    for (int pe = 0; pe < job->n_pes; pe++) {
        const struct where_pe *p = &job->pe[pe];
        if (p->state == STATE_LEFT)
            continue;
        if (p->state != STATE_OUTSIDE || !sleeps(p)) {
            text_add(t, "no PE waits: the job computes");
            return;
        }
        first = first < 0 ? pe : first;
    }
    text_add(t, "no PE waits in a call of GSHMEM, and none computes: all sleep elsewhere in the "
                  "program");
    if (first >= 0) {
        text_add(t, ", PE %d", first);
        add_where(t, job, lines, first);
    }
}

/* What PEs that wait do besides; returns how the others are called then. */
static const char *add_runners(struct text *t, const struct where_job *job, const struct culprit *c,
                               const struct lines *lines)
{
    for (int i = 0; i < c->n && !t->used; i++) {
        struct text one = {.used = 0};
        if (text_add_running(&one, &job->pe[c->pe[i]], lines))
            text_add(t, "; %s", one.at);
    }
    return t->used ? "other " : "";
}

/* The sentence. */
static void add_verdict(struct text *t, const struct where_job *job, const struct culprit *c,
                        const struct lines *lines)
{
    struct text runners = {.used = 0};

    switch (c->kind) {
    case CULPRIT_NONE:
        add_idle(t, job, c, lines);
        break;
    case CULPRIT_STATE:
        if (c->state == STATE_OUTSIDE || c->state == STATE_WAITS)
            text_add(t, "the others wait for ");
        else
            text_add(t, "the job cannot go on because of ");
        add_pes(t, c->pe, c->n);
        text_add(t, ", which %s", c->n == 1 ? state_text[c->state] : state_many[c->state]);
        if (c->state == STATE_WAITS)
            text_add(t, " in %s", job->pe[c->pe[0]].waits[0].call);
        if (c->state == STATE_WAITS && job->pe[c->pe[0]].waits[0].text[0])
            text_add(t, ": %s", job->pe[c->pe[0]].waits[0].text);
        add_where(t, job, lines, c->pe[0]);
        add_held(t, job, c->pe[0]);
        break;
    case CULPRIT_CYCLE:
        add_cycle(t, job, c);
        break;
    case CULPRIT_VARIABLE:
        add_pes(t, c->pe, c->n);
        text_add(t, c->n == 1 ? " waits" : " wait");
        text_add(t, " in %s for an update that no %sPE is left to make",
                   job->pe[c->pe[0]].waits[0].call, add_runners(&runners, job, c, lines));
        text_add(t, "%s", runners.used ? runners.at : ": all PEs wait or have left");
        break;
    case CULPRIT_OWN:
        text_add(t, "PE %d waits in %s for memory that is not symmetric: no other PE can update it",
                   c->pe[0], job->pe[c->pe[0]].waits[0].call);
        break;
    case CULPRIT_MAYBE:
        text_add(t, "only ");
        add_pes(t, c->pe, c->n);
        text_add(t, " can make the update that PE %d waits for, and %s", c->waiter,
                   c->n == 1 ? state_text[c->state] : state_many[c->state]);
        add_where(t, job, lines, c->pe[0]);
        break;
    }
}

void report_print(const struct where_job *job, const struct culprit *c, const char *prefix,
                  FILE *to)
{
    struct lines *lines = lines_new();
    struct text verdict = {.used = 0};

    enter_frames(lines, job);
    lines_resolve(lines);
    fprintf(to, "%sjob %s, %s, %d PEs on %d node%s, after %.0f s:\n", prefix, job->name,
            job->program, job->n_pes, job->nodes, job->nodes == 1 ? "" : "s",
            (double)job->lasted / 1e9);
    print_pes(job, lines, prefix, to);
    add_verdict(&verdict, job, c, lines);
    fprintf(to, "%s%s\n", prefix, verdict.at);
    fflush(to);
    lines_free(lines);
}

/* "in gshmem_barrier_all, main (a.c:7)"; empty: there is nothing to say. */
static void describe_briefly(struct text *t, const struct where_pe *p, const struct lines *lines)
{
    const struct where_thread *thread = stack_of_main(p);

    t->used = 0;
    t->at[0] = 0;
    if (p->state == STATE_WAITS) {
        text_add(t, "in %s, ", p->waits[0].call);
        if (!text_add_stack(t, lines, p->page, p->waits[0].frame, p->waits[0].frames))
            t->at[t->used -= 2] = 0;
    } else if (p->state == STATE_OUTSIDE) {
        text_add(t, "in the program, ");
        if (!thread || !text_add_stack(t, lines, p->page, thread->frame, thread->frames))
            t->at[t->used -= 2] = 0;
    } else if (p->state == STATE_STOPPED || p->state == STATE_ABSENT) {
        text_add(t, "%s", state_text[p->state]);
    }
}

void report_print_briefly(const struct where_job *job, const char *prefix, FILE *to)
{
    struct text(*text) = calloc((size_t)job->n_pes, sizeof *text);
    int *alike = calloc((size_t)job->n_pes, sizeof *alike);
    struct lines *lines = lines_new();
    struct text all = {.used = 0};

    enter_frames(lines, job);
    lines_resolve(lines);
    for (int pe = 0; text && pe < job->n_pes; pe++)
        describe_briefly(&text[pe], &job->pe[pe], lines);
    for (int pe = 0; text && alike && pe < job->n_pes; pe++) {
        int n = 0;
        for (int other = pe; text[pe].used && other < job->n_pes; other++) {
            if (strcmp(text[pe].at, text[other].at) == 0)
                alike[n++] = other;
        }
        if (!n)
            continue;
        text_add(&all, all.used ? "; " : "");
        add_pes(&all, alike, n);
        text_add(&all, " %s", text[pe].at);
        for (int i = n - 1; i >= 0; i--) /* each PE is in one of the groups */
            text[alike[i]] = (struct text){.used = 0};
    }
    if (all.used)
        fprintf(to, "%swhen it ended: %s\n", prefix, all.at);
    lines_free(lines);
    free(text);
    free(alike);
}

bool where_report(const struct asked *found, size_t n, const struct asked *one, bool brief,
                  const char *prefix, FILE *to)
{
    struct where_job job;
    struct culprit culprit;

    if (!where_collect(found, n, one, COLLECT_MS, &job))
        return false;
    if (brief)
        report_print_briefly(&job, prefix, to);
    else if (culprit_find(&job, &culprit))
        report_print(&job, &culprit, prefix, to);
    if (!brief)
        free(culprit.pe);
    where_free(&job);
    return true;
}
