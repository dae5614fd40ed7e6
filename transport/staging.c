#include "transport/staging.h"

#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "runtime/base/clock.h"

void staging_open(struct staging *s, const struct transport_config *config)
{
    *s = (struct staging){.config = config};
}

/* ---- The pool ---- */

/* An eighth of each half is for small buffers. */
struct plan {
    size_t large; /* bytes of a large buffer */
    uint32_t smalls, larges; /* in each half */
};

static struct plan staging_plan(uint64_t bytes)
{
    size_t half = (bytes < STAGING_LEAST ? STAGING_LEAST : (size_t)bytes) / STAGING_WAYS;
    struct plan p = {.large = STAGING_LARGE, .smalls = (uint32_t)(half / 8 / STAGING_SMALL)};

    p.smalls = p.smalls < 2 ? 2 : p.smalls;
    size_t rest = half - p.smalls * STAGING_SMALL;
    if (rest / STAGING_LARGE < STAGING_LARGE_FEW)
        p.large = rest / STAGING_LARGE_FEW / STAGING_SMALL * STAGING_SMALL;
    p.large = p.large < STAGING_SMALL ? STAGING_SMALL : p.large;
    p.larges = (uint32_t)(rest / p.large);
    return p;
}

static char *staging_add(struct staging *s, struct staged **next, char *at, enum staging_way way,
                         bool large, size_t room, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++, at += room) {
        struct staged *b = (*next)++;
        *b = (struct staged){.pool = s, .at = at, .room = room, .way = (uint8_t)way, .large = large,
                             .next = s->spare[way][large]};
        s->spare[way][large] = b;
    }
    return at;
}

static bool staging_make(struct staging *s)
{
    const struct plan p = staging_plan(s->config->staging);
    size_t bytes = STAGING_WAYS * (p.smalls * (size_t)STAGING_SMALL + p.larges * p.large);
    struct device *d = s->config->device;

    s->buffers = (int)(STAGING_WAYS * (p.smalls + p.larges));
    s->buffer = calloc((size_t)s->buffers, sizeof *s->buffer);
    s->memory = s->buffer ? d->ops->allocate(d, DEVICE_MEMORY_SHARED, bytes) : NULL;
    if (!s->memory) {
        s->config->fail(GSHMEM_ERR_MEMORY,
                        "no pinned memory (%zu KiB, GSHMEM_STAGING) to send GPU memory through",
                        bytes >> 10);
        free(s->buffer);
        s->buffer = NULL;
        s->failed = true;
        return false;
    }
    s->bytes = bytes;
    struct staged *next = s->buffer;
    char *at = s->memory;
    for (enum staging_way way = 0; way < STAGING_WAYS; way++) {
        at = staging_add(s, &next, at, way, true, p.large, p.larges);
        at = staging_add(s, &next, at, way, false, STAGING_SMALL, p.smalls);
    }
    s->share = p.larges / 3 < 2 ? 2 : p.larges / 3 > 8 ? 8 : p.larges / 3;
    s->config->info("GPU memory goes to other nodes through %zu KiB of pinned memory "
                    "(GSHMEM_STAGING): each way %u buffers of %zu KiB, at most %u of them for one "
                    "PE, and %u of %d KiB",
                    bytes >> 10, p.larges, p.large >> 10, s->share, p.smalls, STAGING_SMALL >> 10);
    return true;
}

bool staging_ready(struct staging *s)
{
    return s->memory || (!s->failed && staging_make(s));
}

struct staged *staging_take(struct staging *s, enum staging_way way, uint64_t bytes, uint32_t *held)
{
    bool large = bytes > STAGING_SMALL;

    if (!staging_ready(s))
        return NULL;
    if ((way == STAGING_OUT && *held >= s->share) || s->begun - s->over == STAGING_COPIES)
        return NULL;
    struct staged *b = s->spare[way][large];
    if (!b)
        return NULL;
    s->spare[way][large] = b->next;
    b->next = NULL;
    b->number = b->then = 0;
    b->bytes = 0;
    b->held = held;
    if (held)
        ++*held;
    return b;
}

void staging_give(void *staged)
{
    struct staged *b = staged;
    struct staging *s = b->pool;

    if (b->held)
        --*b->held;
    b->next = s->spare[b->way][b->large];
    s->spare[b->way][b->large] = b;
    s->given++;
}

/* ---- Copies ---- */

_Static_assert((int)STAGING_COPIES <= DEVICE_COPIES_MOST / 2, "others start copies too");

gshmem_status_t staging_begin(struct staged *b, void *to, const void *from, size_t bytes)
{
    struct staging *s = b->pool;
    struct device *d = s->config->device;
    gshmem_status_t status = d->ops->copy_start(d, to, from, bytes, &b->copy);

    if (status)
        return status;
    b->bytes = bytes;
    b->copying = true;
    s->under_way[s->begun++ % STAGING_COPIES] = b;
    return GSHMEM_OK;
}

bool staging_look(struct staging *s)
{
    uint64_t before = s->over;

    while (s->over != s->begun) {
        struct device *d = s->config->device;
        struct staged *b = s->under_way[s->over % STAGING_COPIES];
        if (!d->ops->copy_done(d, b->copy, &b->copied))
            break;
        b->copying = false;
        s->over++;
    }
    return s->over != before;
}

/* A copy within the machine ends soon. */
static void staging_wait_for(struct staged *b)
{
    while (b->copying) {
        if (!staging_look(b->pool))
            clock_pause();
    }
}

void staging_abandon(struct staged_list *list)
{
    struct staged *b;

    while ((b = staged_remove(list))) {
        staging_wait_for(b);
        staging_give(b);
    }
}

void staging_close(struct staging *s)
{
    struct device *d = s->config ? s->config->device : NULL;

    for (int i = 0; i < s->buffers && s->buffer; i++)
        staging_wait_for(&s->buffer[i]);
    if (s->memory)
        d->ops->release(d, DEVICE_MEMORY_SHARED, s->memory);
    free(s->buffer);
    *s = (struct staging){.memory = NULL};
}

/* ---- Lists ---- */

void staged_append(struct staged_list *list, struct staged *b)
{
    b->next = NULL;
    if (list->first)
        list->last->next = b;
    else
        list->first = b;
    list->last = b;
}

struct staged *staged_remove(struct staged_list *list)
{
    struct staged *b = list->first;

    if (b)
        list->first = b->next;
    return b;
}
