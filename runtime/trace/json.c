/* The trace in Chrome's format, which Perfetto opens: a process for each PE, calls and waits as
 * slices, the steps of an operation as short slices that arrows connect. Times are microseconds. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/json_text.h"
#include "runtime/trace/traced.h"

static void begin_event(FILE *to, bool *first, const char *phase, int pe, uint32_t thread)
{
    fprintf(to, "%s\n{\"ph\":\"%s\",\"pid\":%d,\"tid\":%u", *first ? "" : ",", phase, pe, thread);
    *first = false;
}

/* Kernels have tracks of their own, behind all threads that the system numbers. */
enum { KERNEL_TRACKS = 0x60000000 };

static uint32_t track_of_place(const struct tracks *k, uint64_t place)
{
    return KERNEL_TRACKS + (uint32_t)tracks_number(k, place);
}

/* A post is shown on the track of its block. */
static uint32_t track_of(const struct traced_pe *p, const struct tracks *k, const struct item *i)
{
    const uint64_t place = i->event->at;

    if (item_what(i) != TRACE_KERNEL)
        return p->thread[i->thread].number;
    return track_of_place(k, place - kernel_thread_of(place));
}

static void name_track(char *name, size_t size, uint64_t key)
{
    const int64_t block = kernel_block_of(key);
    const unsigned thread = kernel_thread_of(key), lane = kernel_launch_of(key);
    int n = block < 0 ? snprintf(name, size, "kernels")
            : thread  ? snprintf(name, size, "block %lld of kernels, thread %u", (long long)block,
                                 thread)
                      : snprintf(name, size, "block %lld of kernels", (long long)block);

    if (lane > 1)
        snprintf(name + n, size - (size_t)n, " (%u)", lane);
}

static void write_tracks(FILE *to, bool *first, const struct traced_pe *p, const struct tracks *k)
{
    char name[100];

    for (size_t i = 0; i < k->n; i++) {
        name_track(name, sizeof name, k->key[i]);
        begin_event(to, first, "M", p->pe, KERNEL_TRACKS + (uint32_t)i);
        fprintf(to, ",\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}}", name);
        begin_event(to, first, "M", p->pe, KERNEL_TRACKS + (uint32_t)i);
        fprintf(to, ",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%zu}}",
                KERNEL_TRACKS + i);
    }
}

static void write_meta(FILE *to, bool *first, const struct traced_pe *p, const struct tracks *k)
{
    char name[200];

    begin_event(to, first, "M", p->pe, 0);
    snprintf(name, sizeof name, "PE %d on %s (%s)", p->pe, p->head->host, p->head->program);
    fputs(",\"name\":\"process_name\",\"args\":{\"name\":", to);
    json_text(to, name);
    fputs("}}", to);
    begin_event(to, first, "M", p->pe, 0);
    fprintf(to, ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":%d}}", p->pe);
    for (uint32_t i = 0; i < p->threads; i++) {
        const bool is_main = p->thread[i].number == p->head->pid;
        begin_event(to, first, "M", p->pe, p->thread[i].number);
        fputs(",\"name\":\"thread_name\",\"args\":{\"name\":", to);
        json_text(to, is_main ? "main thread" : p->thread[i].name);
        fputs("}}", to);
    }
    write_tracks(to, first, p, k);
}

static const char *json_category(const struct interval *i)
{
    static const char *const kind[] = {
        [INTERVAL_LAUNCH] = "kernel", [INTERVAL_BLOCK] = "block", [INTERVAL_IDLE] = "idle"};

    return i->kind != INTERVAL_CALL ? kind[i->kind]
           : i->is_wait             ? "wait"
           : i->round               ? "round"
                                    : "call";
}

static void write_interval(FILE *to, bool *first, const struct traced *t, const struct tracks *k,
                           const struct intervals *s, const struct interval *i)
{
    static const char *const awaited[] = {"PEs", "network", "variable", "blocks"};
    const struct traced_pe *p = &t->pe[i->pe];

    begin_event(to, first, "X", p->pe,
                i->place ? track_of_place(k, i->place) : p->thread[i->thread].number);
    fprintf(to, ",\"cat\":\"%s\",\"ts\":%.3f,\"dur\":%.3f,\"name\":", json_category(i),
            i->begin / 1e3, (i->end - i->begin) / 1e3);
    json_text(to, i->is_wait && !i->place ? "waiting" : i->round ? "round" : i->name);
    fputs(",\"args\":{", to);
    if (i->is_wait)
        fprintf(to, "\"for\":\"%s\"", awaited[i->awaited <= TRACE_BLOCKS ? i->awaited : 0]);
    if (i->is_wait && i->place && !i->is_open) {
        const struct cause by = intervals_cause(s, t, i);
        fprintf(to, ",\"ended by\":%d", by.pe < 0 ? -1 : t->pe[by.pe].pe);
        if (by.step)
            fprintf(to, ",\"id\":\"%llx\"", (unsigned long long)by.step->id);
    }
    if (i->kind == INTERVAL_LAUNCH)
        fprintf(to, "\"launch\":%u,\"blocks\":%llu%s", kernel_launch_of(i->place),
                (unsigned long long)i->object, i->is_open ? "," : "");
    if (i->is_open)
        fprintf(to, "%s\"end\":\"of the trace\"", i->is_wait ? "," : "");
    if (i->round && !i->is_open) {
        const struct cause last = intervals_cause(s, t, i);
        fprintf(to, "\"team\":%u,\"round\":%u,\"last\":%d", (unsigned)(i->round >> 52),
                (unsigned)i->round, last.pe < 0 ? -1 : t->pe[last.pe].pe);
    }
    fputs("}}", to);
}

static const char *const step_name[TRACE_WHATS] = {
    [TRACE_POSTED] = "posted",
    [TRACE_TAKEN] = "taken by the proxy",
    [TRACE_SENT] = "queued for the network",
    [TRACE_EFFECT] = "carried out",
    [TRACE_COPIED] = "copied",
    [TRACE_SIGNALED] = "signal updated",
    [TRACE_COPIED_SIGNAL] = "signal updated",
    [TRACE_DONE] = "done",
    [TRACE_KERNEL] = "posted by a kernel",
};

static void write_step(FILE *to, bool *first, const struct traced *t, const struct tracks *k,
                       const struct step *s, const char *op)
{
    const struct traced_pe *p = &t->pe[s->pe];
    const struct trace_event *e = s->item->event;
    const enum trace_what what = item_what(s->item);

    begin_event(to, first, "X", p->pe, track_of(p, k + s->pe, s->item));
    fprintf(to,
            ",\"cat\":\"operation\",\"ts\":%.3f,\"dur\":0,\"name\":\"%s: %s\",\"args\":{"
            "\"id\":\"%llx\",\"peer\":%d",
            s->ns / 1e3, op, step_name[what], (unsigned long long)s->id, item_peer(s->item));
    if (what == TRACE_KERNEL)
        fprintf(to, ",\"block\":%lld,\"thread\":%u}}", (long long)kernel_block_of(e->at),
                kernel_thread_of(e->at));
    else if (what == TRACE_DONE)
        fprintf(to, ",\"status\":%llu}}", (unsigned long long)item_status(s->item));
    else
        fprintf(to, ",\"segment\":%u,\"offset\":%llu,\"bytes\":%u}}", (unsigned)(e->at >> 56),
                (unsigned long long)(e->at & UINT64_C(0xffffffffffffff)), e->bytes);
}

/* An arrow through the steps of one operation. */
static void write_flow(FILE *to, bool *first, const struct traced *t, const struct tracks *k,
                       const struct step *s, size_t n)
{
    const char *op = traced_op(item_op(step_of_op(s, n)->item));

    for (size_t i = 0; i < n; i++)
        write_step(to, first, t, k, &s[i], op);
    for (size_t i = 0; i < n && n > 1; i++) {
        const struct traced_pe *p = &t->pe[s[i].pe];
        begin_event(to, first, i == 0 ? "s" : i == n - 1 ? "f" : "t", p->pe,
                    track_of(p, k + s[i].pe, s[i].item));
        fprintf(to, ",\"cat\":\"operation\",\"ts\":%.3f,\"id\":\"%llx\",\"name\":\"%s\"%s}",
                s[i].ns / 1e3, (unsigned long long)s[i].id, op,
                i == n - 1 ? ",\"bp\":\"e\"" : "");
    }
}

static void json_write_all(FILE *to, const struct traced *t, const struct tracks *k,
                      const struct intervals *s)
{
    bool first = true;

    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", to);
    for (int i = 0; i < t->n; i++)
        write_meta(to, &first, &t->pe[i], &k[i]);
    for (size_t i = 0; i < s->n; i++) {
        if (s->of[i].kind != INTERVAL_IDLE) /* its waits are drawn */
            write_interval(to, &first, t, &k[s->of[i].pe], s, &s->of[i]);
    }
    for (size_t i = 0, n; i < t->steps; i += n) {
        n = traced_run(t, i);
        write_flow(to, &first, t, k, &t->step[i], n);
    }
    fprintf(to,
            "\n],\"otherData\":{\"job\":\"%016llx\",\"PEs\":%d,\"traces\":%d,"
            "\"clocks\":%d,\"clock error in ns\":%.0f}}\n",
            (unsigned long long)t->job, t->n_pes, t->n, t->clocks, t->error);
}

bool json_write(const struct traced *t, const struct intervals *s, FILE *to)
{
    struct tracks *k = calloc((size_t)t->n, sizeof *k);
    bool good = k != NULL;

    for (int i = 0; i < t->n && good; i++)
        good = tracks_find(&k[i], t, s, i);
    if (good)
        json_write_all(to, t, k, s);
    for (int i = 0; i < t->n && k; i++)
        tracks_free(&k[i]);
    free(k);
    return good && fflush(to) == 0 && !ferror(to);
}
