#include "runtime/where/verdict.h"

#include "runtime/where/pe_text.h"

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
        text_add_running(&stack, &job->pe[pe], true, lines))
        text_add(t, "; %s", stack.at);
}

static bool waits_for_lock(const struct where_pe *p, const struct where_wait *lock)
{
    for (int i = 0; i < p->n_waits; i++) {
        const struct where_wait *w = &p->waits[i];
        if (w->kind == WHERE_LOCK && w->segment == lock->segment && w->offset == lock->offset)
            return true;
    }
    return false;
}

/* "; it holds the lock a": what the PE has that another waits for. One that waits for the lock
 * itself is before the other in the queue. */
static void add_held(struct text *t, const struct where_job *job, int pe)
{
    for (int other = 0; other < job->n_pes; other++) {
        const struct where_pe *p = &job->pe[other];
        for (int i = 0; i < p->n_waits; i++) {
            if (p->waits[i].kind != WHERE_LOCK || where_peer(&p->waits[i], 0) != pe)
                continue;
            struct text object = {.used = 0};
            pe_text_add_object(&object, p, &p->waits[i]);
            const char *const lock = object.used > 2 ? object.at + 2 : "a lock";
            if (waits_for_lock(&job->pe[pe], &p->waits[i]))
                text_add(t, "; PE %d waits behind it for %s", other, lock);
            else
                text_add(t, "; it holds %s", lock);
            return;
        }
    }
}

/* What PEs that wait do besides; returns how the others are called then. */
static const char *add_runners(struct text *t, const struct where_job *job, const struct culprit *c,
                               const struct lines *lines)
{
    for (int i = 0; i < c->n && !t->used; i++) {
        struct text one = {.used = 0};
        if (text_add_running(&one, &job->pe[c->pe[i]], true, lines))
            text_add(t, "; %s", one.at);
    }
    return t->used ? "other " : "";
}

static void add_cycle(struct text *t, const struct where_job *job, const struct culprit *c,
                      const struct lines *lines)
{
    struct text runners = {.used = 0};
    bool free_thread = false;
    int lowest = 0, i;

    for (i = 0; i < c->n; i++) {
        lowest = c->pe[i] < c->pe[lowest] ? i : lowest;
        free_thread = free_thread || culprit_has_free_thread(&job->pe[c->pe[i]], false);
    }
    add_runners(&runners, job, c, lines);
    text_add(t, free_thread ? "deadlock, unless another thread ends it: " : "deadlock: ");
    for (i = 0; i < c->n && t->used < TEXT_BYTES / 2; i++) {
        const int pe = c->pe[(lowest + i) % c->n], next = c->pe[(lowest + i + 1) % c->n];
        const struct where_wait *w = culprit_wait_for(job, pe, next);
        text_add(t, i ? ", PE %d for PE %d" : "PE %d waits for PE %d", pe, next);
        if (w)
            text_add(t, " (in %s)", w->call);
    }
    if (i < c->n)
        text_add(t, ", and so on through %d PEs more, back to PE %d", c->n - i, c->pe[lowest]);
    text_add(t, "%s", runners.at);
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

/* " in gshmem_quiet: 3 answers over tcp, for PE 1": a wait that no PE's call can end. */
static void add_inner(struct text *t, const struct where_job *job, int pe)
{
    const struct where_wait *w = &job->pe[pe].waits[0];
    const bool network = w->kind == WHERE_NETWORK || w->kind == WHERE_ROOM;

    text_add(t, " in %s", w->call);
    if (w->text[0])
        text_add(t, ": %s", w->text);
    if (!network || !w->peers)
        return;
    pe_text_add_peers(t, job, w);
    text_add(t, "; PEs answer without a call of their own, so what is slow is the network, or a "
                "machine");
}

static const char *verdict_variable_call(const struct where_pe *p)
{
    int i = 0;

    while (i + 1 < p->n_waits && p->waits[i].kind != WHERE_VARIABLE)
        i++;
    return p->waits[i].call;
}

void verdict_add(struct text *t, const struct where_job *job, const struct culprit *c,
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
        pe_text_add_pes(t, c->pe, c->n);
        text_add(t, ", which %s", c->n == 1 ? pe_state_text[c->state] : pe_state_many[c->state]);
        if (c->state == STATE_WAITS)
            add_inner(t, job, c->pe[0]);
        add_where(t, job, lines, c->pe[0]);
        add_held(t, job, c->pe[0]);
        break;
    case CULPRIT_INNER:
        pe_text_add_pes(t, c->pe, c->n);
        text_add(t, c->n == 1 ? " waits" : " wait");
        add_inner(t, job, c->pe[0]);
        break;
    case CULPRIT_CYCLE:
        add_cycle(t, job, c, lines);
        break;
    case CULPRIT_VARIABLE:
        pe_text_add_pes(t, c->pe, c->n);
        text_add(t, c->n == 1 ? " waits" : " wait");
        text_add(t, " in %s for an update that no %sPE is left to make",
                 verdict_variable_call(&job->pe[c->pe[0]]), add_runners(&runners, job, c, lines));
        text_add(t, "%s", runners.used ? runners.at : ": all PEs wait or have left");
        break;
    case CULPRIT_OWN:
        text_add(t, "PE %d waits in %s for memory that is not symmetric: no other PE can update it",
                 c->pe[0], job->pe[c->pe[0]].waits[0].call);
        break;
    case CULPRIT_MAYBE:
        if (!text_add_running(&runners, &job->pe[c->waiter], true, lines))
            text_add(t, "only ");
        pe_text_add_pes(t, c->pe, c->n);
        if (runners.used)
            text_add(t, ", or another thread of PE %d,", c->waiter);
        text_add(t, " can make the update that PE %d waits for, and %s", c->waiter,
                 c->n == 1 ? pe_state_text[c->state] : pe_state_many[c->state]);
        add_where(t, job, lines, c->pe[0]);
        if (runners.used && c->waiter != c->pe[0])
            text_add(t, "; %s", runners.at);
        break;
    }
}
