#define _GNU_SOURCE
#include <stdlib.h>

#include "runtime/where/lines.h"
#include "runtime/where/pe_text.h"
#include "runtime/where/stack_text.h"
#include "runtime/where/verdict.h"
#include "runtime/where/where.h"

enum {
    COLLECT_MS = 1600,
    STACKS_MS = 300, /* for the threads of PEs in a cycle */
};

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

/* PEs whose lines are alike are one line. */
static void print_pes(const struct where_job *job, const struct lines *lines, const char *prefix,
                      FILE *to)
{
    struct text(*text) = calloc((size_t)job->n_pes, sizeof *text);
    bool *done = calloc((size_t)job->n_pes, sizeof *done);
    int *alike = calloc((size_t)job->n_pes, sizeof *alike);

    for (int pe = 0; text && done && alike && pe < job->n_pes; pe++)
        pe_text_describe(&text[pe], job, &job->pe[pe], lines);
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
        pe_text_add_pes(&who, alike, n);
        fprintf(to, "%s  %s: %s", prefix, who.at, text[pe].at);
        if (longest)
            fprintf(to, " (for %.0f s)", (double)longest / 1e9);
        fputc('\n', to);
    }
    free(text);
    free(done);
    free(alike);
}

void report_print(const struct where_job *job, const struct culprit *c, uint64_t until,
                  const char *prefix, FILE *to)
{
    struct lines *lines = lines_new();
    struct text verdict = {.used = 0};

    enter_frames(lines, job);
    lines_resolve(lines, until);
    fprintf(to, "%sjob %s, %s, %d PEs on %d node%s, after %.0f s:\n", prefix, job->name,
            job->program, job->n_pes, job->nodes, job->nodes == 1 ? "" : "s",
            (double)job->lasted / 1e9);
    print_pes(job, lines, prefix, to);
    verdict_add(&verdict, job, c, lines);
    fprintf(to, "%s%s\n", prefix, verdict.at);
    fflush(to);
    lines_free(lines);
}

void report_print_briefly(const struct where_job *job, uint64_t until, const char *prefix, FILE *to)
{
    struct text(*text) = calloc((size_t)job->n_pes, sizeof *text);
    int *alike = calloc((size_t)job->n_pes, sizeof *alike);
    struct lines *lines = lines_new();
    struct text all = {.used = 0};
    int left = 0; /* PEs for which the line has no room */

    enter_frames(lines, job);
    lines_resolve(lines, until);
    for (int pe = 0; text && pe < job->n_pes; pe++)
        pe_text_describe_briefly(&text[pe], &job->pe[pe], lines);
    for (int pe = 0; text && alike && pe < job->n_pes; pe++) {
        int n = 0;
        left += all.used > TEXT_BYTES / 2 && text[pe].used;
        for (int other = all.used > TEXT_BYTES / 2 ? job->n_pes : pe;
             text[pe].used && other < job->n_pes; other++) {
            if (strcmp(text[pe].at, text[other].at) == 0)
                alike[n++] = other;
        }
        if (!n)
            continue;
        text_add(&all, all.used ? "; " : "");
        pe_text_add_pes(&all, alike, n);
        text_add(&all, " %s", text[pe].at);
        for (int i = n - 1; i >= 0; i--) /* each PE is in one of the groups */
            text[alike[i]] = (struct text){.used = 0};
    }
    if (left)
        text_add(&all, "; and %d PE%s more", left, left == 1 ? "" : "s");
    if (all.used)
        fprintf(to, "%swhen it ended: %s\n", prefix, all.at);
    lines_free(lines);
    free(text);
    free(alike);
}

bool where_report(const struct asked *found, size_t n, const struct asked *one, bool brief,
                  uint64_t until, const char *prefix, FILE *to)
{
    struct where_job job;
    struct culprit culprit;

    if (!where_collect(found, n, one, COLLECT_MS, &job))
        return false;
    if (brief) {
        report_print_briefly(&job, until, prefix, to);
        where_free(&job);
        return true;
    }
    const bool found_out = culprit_find(&job, &culprit);
    if (found_out && culprit.kind == CULPRIT_CYCLE) /* another thread may be about to end it */
        where_collect_stacks(&job, culprit.pe, culprit.n, STACKS_MS);
    if (found_out)
        report_print(&job, &culprit, until, prefix, to);
    free(culprit.pe);
    where_free(&job);
    return found_out;
}
