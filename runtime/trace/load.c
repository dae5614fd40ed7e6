/* Reads the traces of a folder. What a file says is not trusted: it may be of another program, cut
 * off, or of a PE that was killed while it wrote. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/trace/traced.h"

static bool complain(const char *path, const char *what)
{
    fprintf(stderr, "gshmem-trace: %s: %s\n", path, what);
    return false;
}

const char *traced_name(const struct traced_pe *p, uint64_t number)
{
    const uint32_t names = atomic_load_explicit(&p->head->names, memory_order_relaxed);

    return number < names && number < TRACE_NAMES ? p->head->name[number] : "(more names)";
}

const char *traced_op(enum trace_op op)
{
    static const char *const name[TRACE_OPS] = {"operation", "put", "get", "atomic", "signal"};

    return op < TRACE_OPS ? name[op] : name[0];
}

/* ---- One file ---- */

static bool texts_end(const struct trace_head *h)
{
    bool end = memchr(h->boot, 0, sizeof h->boot) && memchr(h->host, 0, sizeof h->host) &&
               memchr(h->program, 0, sizeof h->program);

    for (int i = 0; i < TRACE_NAMES && end; i++)
        end = memchr(h->name[i], 0, TRACE_NAME_BYTES);
    return end;
}

/* Why the file is no trace; NULL: it is one. */
static const char *wrong_with(const struct trace_head *h, size_t bytes)
{
    if (bytes < TRACE_HEAD_BYTES || memcmp(h->magic, trace_magic, sizeof h->magic))
        return "is not a trace of GSHMEM, or its PE was killed before it had begun";
    if (h->version != TRACE_VERSION)
        return "is a trace of another version of GSHMEM: use the gshmem-trace of that version";
    if (h->n_pes == 0 || h->n_pes > (1u << 24) || h->pe >= h->n_pes || h->chunks == 0 ||
        h->begun_ticks == 0 || !texts_end(h))
        return "is damaged: its head makes no sense";
    return NULL;
}

/* A PE that still runs goes on to write, and cuts the file off when it ends: what is read twice has
 * to be a copy. What is not there any more stays 0, which no event is. */
static void copy_file(int fd, char *to, size_t bytes)
{
    ssize_t n;

    while (bytes && ((n = read(fd, to, bytes)) > 0 || (n < 0 && errno == EINTR))) {
        to += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
}

static bool map_file(struct traced_pe *p, const char *path)
{
    struct stat status;
    void *at = MAP_FAILED;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &status))
        return complain(path, strerror(errno));
    if (status.st_size > 0)
        at = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const int reason = errno;
    if (at != MAP_FAILED)
        copy_file(fd, at, (size_t)status.st_size);
    close(fd);
    if (at == MAP_FAILED)
        return complain(path, status.st_size ? strerror(reason) : "is empty");
    const char *wrong = wrong_with(at, (size_t)status.st_size);
    if (wrong) {
        munmap(at, (size_t)status.st_size);
        return complain(path, wrong);
    }
    p->head = at;
    p->mapped = (size_t)status.st_size;
    p->chunk = (const struct trace_chunk *)((const char *)at + TRACE_HEAD_BYTES);
    const size_t there = (p->mapped - TRACE_HEAD_BYTES) / sizeof(struct trace_chunk);
    p->chunks = there < p->head->chunks ? (uint32_t)there : p->head->chunks;
    p->pe = (int)p->head->pe;
    return true;
}

static uint32_t chunk_used(const struct trace_chunk *c)
{
    const uint32_t used = atomic_load_explicit(&c->used, memory_order_relaxed);

    return c->number == 0 ? 0 : used < TRACE_EVENTS ? used : TRACE_EVENTS;
}

/* By the two readings of both clocks that are farthest apart. */
static double find_rate(const struct traced_pe *p)
{
    uint64_t ticks = p->head->ended_ticks, ns = p->head->ended_ns;

    for (uint32_t i = 0; i < p->chunks; i++) {
        if (p->chunk[i].number && p->chunk[i].ticks > ticks) {
            ticks = p->chunk[i].ticks;
            ns = p->chunk[i].ns;
        }
    }
    if (ticks <= p->head->begun_ticks || ns <= p->head->begun_ns)
        return 1;
    return (double)(ns - p->head->begun_ns) / (double)(ticks - p->head->begun_ticks);
}

/* ---- Times ---- */

struct reading {
    uint64_t ticks, ns;
};

/* Readings of both clocks in order, APART_NS or more from each other: each is wrong by some ten ns,
 * and between two of them time must not go back. */
struct readings {
    struct reading *of;
    size_t n;
};

#define APART_NS 1e6

static int by_ticks(const void *a, const void *b)
{
    const struct reading *x = a, *y = b;

    return x->ticks < y->ticks ? -1 : x->ticks > y->ticks;
}

static void readings_thin(struct readings *r, double rate)
{
    size_t kept = 1;

    for (size_t i = 1; i < r->n; i++) {
        const struct reading *last = &r->of[kept - 1], *next = &r->of[i];
        if ((double)(next->ticks - last->ticks) * rate >= APART_NS && next->ns > last->ns)
            r->of[kept++] = *next;
    }
    r->n = kept;
}

static bool readings_find(struct readings *r, const struct traced_pe *p)
{
    *r = (struct readings){.of = malloc((p->chunks + 2u) * sizeof *r->of), .n = 1};
    if (!r->of)
        return false;
    r->of[0] = (struct reading){p->head->begun_ticks, p->head->begun_ns};
    for (uint32_t i = 0; i < p->chunks; i++) {
        if (p->chunk[i].number && p->chunk[i].ticks > p->head->begun_ticks)
            r->of[r->n++] = (struct reading){p->chunk[i].ticks, p->chunk[i].ns};
    }
    if (p->head->ended_ticks > p->head->begun_ticks)
        r->of[r->n++] = (struct reading){p->head->ended_ticks, p->head->ended_ns};
    qsort(r->of, r->n, sizeof *r->of, by_ticks);
    readings_thin(r, p->rate);
    return true;
}

/* The same for all threads: between the readings around it, or by the rate behind the last. */
static double readings_ns(const struct readings *r, uint64_t ticks, double rate)
{
    size_t low = 1, high = r->n;

    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (r->of[middle].ticks <= ticks)
            low = middle + 1;
        else
            high = middle;
    }
    const struct reading *before = &r->of[low - 1];
    if (low < r->n)
        rate = (double)(before[1].ns - before->ns) / (double)(before[1].ticks - before->ticks);
    return (double)before->ns + (double)(int64_t)(ticks - before->ticks) * rate;
}

/* ---- Events ---- */

static uint32_t find_thread(struct traced_pe *p, const struct trace_chunk *c)
{
    for (uint32_t i = 0; i < p->threads; i++) {
        if (p->thread[i].number == c->thread)
            return i;
    }
    struct traced_thread *more = realloc(p->thread, (p->threads + 1) * sizeof *more);
    if (!more)
        return 0;
    p->thread = more;
    p->thread[p->threads].number = c->thread;
    memcpy(p->thread[p->threads].name, c->name, sizeof c->name);
    p->thread[p->threads].name[sizeof c->name] = 0;
    return p->threads++;
}

static int by_time(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    if (x->event != y->event)
        return x->event < y->event ? -1 : 1;
    return x->what < y->what ? -1 : x->what > y->what;
}

/* What the event stands for, and how many ticks later. */
struct stood_for {
    enum trace_what what;
    uint32_t later;
};

enum { ITEMS_MOST = 4 };

static int stands_for(const struct trace_event *e, struct stood_for of[ITEMS_MOST])
{
    const enum trace_what what = trace_what_of(e);
    int n = 0;

    if (what == TRACE_CARRIED) {
        of[n++] = (struct stood_for){TRACE_TAKEN, 0};
        of[n++] = (struct stood_for){TRACE_COPIED, 1};
        of[n++] = (struct stood_for){TRACE_DONE, 2};
    } else if (what == TRACE_KERNEL_WAITED) {
        of[n++] = (struct stood_for){TRACE_KERNEL_WAIT, 0};
        of[n++] = (struct stood_for){TRACE_KERNEL_WAKE, e->bytes};
        if (trace_waited_idle(e->at)) {
            of[n++] = (struct stood_for){TRACE_IDLE, 0};
            of[n++] = (struct stood_for){TRACE_BUSY, e->bytes};
        }
    } else {
        of[n++] = (struct stood_for){what, 0};
    }
    return n;
}

static size_t count_items(const struct trace_chunk *c)
{
    struct stood_for of[ITEMS_MOST];
    const uint32_t used = chunk_used(c);
    size_t n = 0;

    for (uint32_t e = 0; e < used; e++)
        n += (size_t)stands_for(&c->event[e], of);
    return n;
}

/* All times by one clock: an end is not behind what its thread does next. */
static void add_items(struct traced_pe *p, const struct readings *clock,
                      const struct trace_event *e, uint32_t thread)
{
    struct stood_for of[ITEMS_MOST];
    const int n = stands_for(e, of);

    for (int i = 0; i < n; i++)
        p->item[p->n++] = (struct item){readings_ns(clock, e->time + of[i].later, p->rate), e,
                                        thread, of[i].what};
}

/* Times are nanoseconds since this PE's clock was 0, until traced_align. */
static bool read_events(struct traced_pe *p)
{
    struct readings clock;
    size_t n = 0;

    p->rate = find_rate(p);
    if (!readings_find(&clock, p))
        return false;
    for (uint32_t i = 0; i < p->chunks; i++)
        n += count_items(&p->chunk[i]);
    if (!(p->item = malloc((n ? n : 1) * sizeof *p->item))) {
        free(clock.of);
        return false;
    }
    for (uint32_t i = 0; i < p->chunks; i++) {
        const struct trace_chunk *c = &p->chunk[i];
        const uint32_t used = chunk_used(c), thread = used ? find_thread(p, c) : 0;
        for (uint32_t e = 0; e < used; e++)
            add_items(p, &clock, &c->event[e], thread);
    }
    free(clock.of);
    qsort(p->item, p->n, sizeof *p->item, by_time);
    p->lost = atomic_load_explicit(&p->head->lost, memory_order_relaxed);
    p->overwritten = atomic_load_explicit(&p->head->overwritten, memory_order_relaxed);
    p->begin = (double)p->head->begun_ns;
    p->end = p->head->ended_ns ? (double)p->head->ended_ns : p->n ? p->item[p->n - 1].ns : p->begin;
    return true;
}

/* ---- All files ---- */

static bool load_file(struct traced *t, const char *path, uint64_t job)
{
    struct traced_pe p = {0};

    if (!map_file(&p, path))
        return false;
    if (job && p.head->job != job) {
        munmap((void *)p.head, p.mapped);
        return true;
    }
    struct traced_pe *more = realloc(t->pe, (size_t)(t->n + 1) * sizeof *more);
    if (more)
        t->pe = more;
    if (!more || !read_events(&p))
        return complain(path, "there is no memory for it");
    t->pe[t->n++] = p;
    return true;
}

static int by_pe(const void *a, const void *b)
{
    const struct traced_pe *x = a, *y = b;

    return x->pe < y->pe ? -1 : x->pe > y->pe;
}

/* All of one job, with the jobs that there are if that is not so. */
static bool is_one_job(const struct traced *t, const char *folder)
{
    bool one = true;

    for (int i = 1; i < t->n; i++)
        one &= t->pe[i].head->job == t->pe[0].head->job;
    if (one)
        return true;
    fprintf(stderr, "gshmem-trace: %s has traces of several jobs; name one by --job:\n", folder);
    for (int i = 0; i < t->n; i++) {
        bool is_first = true;
        for (int j = 0; j < i; j++)
            is_first &= t->pe[j].head->job != t->pe[i].head->job;
        if (is_first)
            fprintf(stderr, "  %016llx: %s, %u PEs\n", (unsigned long long)t->pe[i].head->job,
                    t->pe[i].head->program, t->pe[i].head->n_pes);
    }
    return false;
}

static bool fill_table(struct traced *t, const char *folder)
{
    t->job = t->pe[0].head->job;
    t->n_pes = (int)t->pe[0].head->n_pes;
    if (!(t->at = malloc((size_t)t->n_pes * sizeof *t->at)))
        return complain(folder, "there is no memory for so many PEs");
    for (int i = 0; i < t->n_pes; i++)
        t->at[i] = -1;
    for (int i = 0; i < t->n; i++) {
        if (t->pe[i].pe >= t->n_pes || t->at[t->pe[i].pe] >= 0)
            return complain(folder, "has two traces of one PE, or of jobs of different sizes");
        t->at[t->pe[i].pe] = i;
    }
    if (t->n < t->n_pes)
        fprintf(stderr,
                "gshmem-trace: %s has traces of %d of %d PEs: what the others did is missing\n",
                folder, t->n, t->n_pes);
    return true;
}

bool traced_load(struct traced *t, const char *folder, uint64_t job)
{
    DIR *from = opendir(folder);
    struct dirent *entry;
    bool good = true;

    *t = (struct traced){0};
    if (!from)
        return complain(folder, strerror(errno));
    while ((entry = readdir(from))) {
        const char *end = strrchr(entry->d_name, '.');
        char path[4096];
        if (!end || strcmp(end, ".trace"))
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        good &= load_file(t, path, job);
    }
    closedir(from);
    if (t->n == 0)
        return good ? complain(folder, job ? "has no trace of that job" : "has no traces "
                               "(GSHMEM_TRACE names the folder in which PEs leave them)") : false;
    qsort(t->pe, (size_t)t->n, sizeof *t->pe, by_pe);
    return is_one_job(t, folder) && fill_table(t, folder);
}

void traced_free(struct traced *t)
{
    for (int i = 0; i < t->n; i++) {
        free(t->pe[i].item);
        free(t->pe[i].thread);
        munmap((void *)t->pe[i].head, t->pe[i].mapped);
    }
    free(t->step);
    free(t->pe);
    free(t->at);
}
