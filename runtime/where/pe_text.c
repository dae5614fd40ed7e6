#define _GNU_SOURCE
#include "runtime/where/pe_text.h"

#include <stdlib.h>

enum { WAITS_SHOWN = 3 }; /* of a PE; waits that are alike are one */

void pe_text_add_pes(struct text *t, const int *pe, int n)
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

void pe_text_add_object(struct text *t, const struct where_pe *p, const struct where_wait *w)
{
    char name[160];

    if (!w->at)
        return;
    const char *what = w->kind == WHERE_LOCK || w->kind == WHERE_THREAD ? "lock" : "variable";
    if (lines_variable(p->page, w->at, name, sizeof name))
        text_add(t, ", the %s %s", what, name);
    else if (w->segment >= 0)
        text_add(t, ", the %s that is %llu bytes into %s", what, (unsigned long long)w->offset,
                 w->segment == WHERE_SEGMENT_HEAP ? "the heap" : "symmetric memory");
    else
        text_add(t, ", the %s at 0x%llx (not symmetric: no other PE reaches it)", what,
                 (unsigned long long)w->at);
}

void pe_text_add_peers(struct text *t, const struct where_job *job, const struct where_wait *w)
{
    int *pe = malloc((size_t)job->n_pes * sizeof *pe), n = 0, at = 0, next;
    const int unknown = w->peers > WHERE_PEERS && !w->step ? w->peers - WHERE_PEERS : 0;

    while (pe && n < job->n_pes && (next = where_next_peer(job, w, &at)) >= 0)
        pe[n++] = next;
    if (n) {
        text_add(t, ", for ");
        pe_text_add_pes(t, pe, n);
        if (unknown)
            text_add(t, " and %d more", unknown);
    }
    free(pe);
}

/* The wait of one thread: of the main one, of a kernel, or of another. */
static void add_wait(struct text *t, const struct where_job *job, const struct where_pe *p,
                     const struct where_wait *w, const struct lines *lines)
{
    text_add(t, "%sin %s", w->tid < 0 ? "on a stream: " : "", w->call);
    if (w->kind == WHERE_COLLECTIVE)
        text_add(t, " on team %d", w->team);
    pe_text_add_object(t, p, w);
    if (w->text[0])
        text_add(t, ", %s", w->text);
    pe_text_add_peers(t, job, w);
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
    if (thread->state == 'R' || !text_add_running(t, p, false, lines))
        t->at[t->used = before] = 0;
}

const char *const pe_state_text[] = {
    [STATE_DIED] = "has died",
    [STATE_FAILED] = "has failed in gshmem_init or gshmem_finalize",
    [STATE_STOPPED] = "is stopped, by a signal or a debugger",
    [STATE_SILENT] = "does not answer, nor does any other PE of its node for it",
    [STATE_LEFT] = "has left the job",
    [STATE_ABSENT] = "has not come to gshmem_init",
    [STATE_OUTSIDE] = "is outside of calls that wait",
    [STATE_WAITS] = "waits",
};

const char *const pe_state_many[] = {
    [STATE_DIED] = "have died",
    [STATE_FAILED] = "have failed in gshmem_init or gshmem_finalize",
    [STATE_STOPPED] = "are stopped, by a signal or a debugger",
    [STATE_SILENT] = "do not answer, nor does any other PE of their nodes for them",
    [STATE_LEFT] = "have left the job",
    [STATE_ABSENT] = "have not come to gshmem_init",
    [STATE_OUTSIDE] = "are outside of calls that wait",
    [STATE_WAITS] = "wait",
};

static bool is_of_other_thread(const struct where_pe *p, const struct where_wait *w)
{
    return w->tid > 0 && w->tid != p->page->pid;
}

/* The waits; those of other threads that are alike are one. */
static void describe_waits(struct text *t, const struct where_job *job, const struct where_pe *p,
                           const struct lines *lines)
{
    struct text *one = calloc((size_t)p->n_waits + 1, sizeof *one);
    int shown = 0, left = p->n_waits;

    for (int i = 0; one && i < p->n_waits; i++)
        add_wait(&one[i], job, p, &p->waits[i], lines);
    for (int i = 0; one && i < p->n_waits && shown < WAITS_SHOWN; i++) {
        const bool other = is_of_other_thread(p, &p->waits[i]);
        int alike = 0;
        for (int k = i; k < p->n_waits && one[i].used; k++) {
            if (k == i || (other && is_of_other_thread(p, &p->waits[k]) &&
                           strcmp(one[k].at, one[i].at) == 0)) {
                alike++;
                one[k].used = k == i ? one[k].used : 0;
            }
        }
        if (!alike)
            continue;
        text_add(t, t->used ? "; " : "");
        if (other && alike > 1)
            text_add(t, "%d other threads: ", alike);
        else if (other)
            text_add(t, "another thread: ");
        text_add(t, "%s", one[i].at);
        left -= alike;
        shown++;
    }
    if (left)
        text_add(t, "; and %d waits more", left);
    if (p->page->more && p->n_waits >= WHERE_WAITS - 1)
        text_add(t, ", or still more, for which this PE has no room");
    free(one);
}

void pe_text_describe(struct text *t, const struct where_job *job, const struct where_pe *p,
                      const struct lines *lines)
{
    t->used = 0;
    t->at[0] = 0;
    if (p->state == STATE_OUTSIDE)
        add_outside(t, p, lines);
    else if (p->state != STATE_WAITS)
        text_add(t, "%s", pe_state_text[p->state]);
    if (p->n_waits)
        describe_waits(t, job, p, lines);
}

void pe_text_describe_briefly(struct text *t, const struct where_pe *p, const struct lines *lines)
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
        text_add(t, "%s", pe_state_text[p->state]);
    }
}
