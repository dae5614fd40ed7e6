#define _GNU_SOURCE
#include "runtime/memory/checked.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/memory/tree.h"

enum {
    FRAMES = 16,
    FREED_MAX = 4096, /* freed objects that are remembered; the oldest are forgotten */
    PATTERN = 0xe7,   /* of red zones */
};

struct checked_object {
    struct tree_node by_address;
    struct checked_object *next; /* in the order of frees */
    uintptr_t at;
    size_t bytes;
    const char *call; /* that made it */
    const void *from; /* the program's instruction behind that call; NULL: not known */
    const void *freed_from;
    bool zone;
    bool freed;
};

struct checked {
    pthread_mutex_t lock;
    struct tree objects; /* those that live, and freed ones whose place is not taken again */
    struct checked_object *oldest, **newest; /* freed */
    size_t freed;
};

static struct checked_object *object_of(struct tree_node *node)
{
    return node ? tree_entry(node, struct checked_object, by_address) : NULL;
}

static struct tree_key at_address(uintptr_t at)
{
    return (struct tree_key){.major = at};
}

/* ---- Where the program called ---- */

/* The innermost frame that is not of this library. */
static const void *find_caller(void)
{
    void *frame[FRAMES];
    Dl_info own, info;
    const int n = backtrace(frame, FRAMES);

    if (!dladdr((void *)(uintptr_t)checked_start, &own))
        return NULL;
    for (int i = 0; i < n; i++) {
        if (dladdr(frame[i], &info) && info.dli_fbase != own.dli_fbase)
            return frame[i];
    }
    return NULL;
}

/* "main+0x1c (prog+0x12ac)": what addr2line takes is in it. */
static void checked_name(char *text, size_t size, const void *from)
{
    Dl_info info;
    const char *file;

    if (!from || !dladdr((const char *)from - 1, &info) || !info.dli_fname) {
        snprintf(text, size, "an unknown place");
        return;
    }
    file = strrchr(info.dli_fname, '/');
    file = file ? file + 1 : info.dli_fname;
    const size_t offset = (size_t)((const char *)from - 1 - (const char *)info.dli_fbase);
    if (info.dli_sname)
        snprintf(text, size, "%s (%s+%#zx)", info.dli_sname, file, offset);
    else
        snprintf(text, size, "%s+%#zx", file, offset);
}

/* ---- Red zones ---- */

static void zone_fill(const struct checked_object *o)
{
    if (o->zone)
        memset((void *)(o->at + o->bytes), PATTERN, CHECKED_ZONE);
}

static void zone_check(const struct checked_object *o, const char *call)
{
    const unsigned char *zone = (const unsigned char *)(o->at + o->bytes);
    char from[160];
    size_t first = 0;

    if (!o->zone)
        return;
    while (first < CHECKED_ZONE && zone[first] == PATTERN)
        first++;
    if (first == CHECKED_ZONE)
        return;
    checked_name(from, sizeof from, o->from);
    fail(GSHMEM_ERR_ARGUMENT,
         "%s: the program has written behind the object of %zu B at %p, first %zu B behind its "
         "end; it is from %s in %s",
         call, o->bytes, (void *)o->at, first, o->call, from);
}

/* ---- Objects ---- */

static void forget_oldest(struct checked *c)
{
    struct checked_object *o = c->oldest;

    c->oldest = o->next;
    if (!c->oldest)
        c->newest = &c->oldest;
    c->freed--;
    tree_erase(&c->objects, &o->by_address);
    free(o);
}

static void forget_freed(struct checked *c, struct checked_object *o)
{
    struct checked_object **at = &c->oldest;

    while (*at != o)
        at = &(*at)->next;
    *at = o->next;
    if (!o->next)
        c->newest = at;
    c->freed--;
    tree_erase(&c->objects, &o->by_address);
    free(o);
}

/* What was freed there is no longer what an access means. */
static void forget_range(struct checked *c, uintptr_t at, size_t bytes)
{
    struct checked_object *o = object_of(tree_at_most(&c->objects, at_address(at)));

    if (o && o->freed && at - o->at < o->bytes)
        forget_freed(c, o);
    while ((o = object_of(tree_at_least(&c->objects, at_address(at)))) && o->freed &&
           o->at - at < bytes)
        forget_freed(c, o);
}

struct checked *checked_start(void)
{
    struct checked *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->objects = tree_empty();
    c->newest = &c->oldest;
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

void checked_review(struct checked *c)
{
    struct checked_object *o = c ? object_of(tree_last(&c->objects)) : NULL;

    for (; o; o = object_of(tree_before(&c->objects, at_address(o->at)))) {
        if (!o->freed)
            zone_check(o, "gshmem_finalize");
    }
}

void checked_stop(struct checked *c)
{
    struct checked_object *o;

    if (!c)
        return;
    while ((o = object_of(tree_last(&c->objects)))) {
        tree_erase(&c->objects, &o->by_address);
        free(o);
    }
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* Without memory for it the program's own accesses would be refused: it ends here. */
void checked_enter(struct checked *c, void *object, size_t bytes, const char *call, bool zone)
{
    struct checked_object *o = c ? calloc(1, sizeof *o) : NULL;

    if (!c)
        return;
    if (!o) {
        log_error("%s: no memory for GSHMEM_CHECK=memory to keep account of an object", call);
        abort();
    }
    *o = (struct checked_object){.at = (uintptr_t)object,
                                 .bytes = bytes,
                                 .call = call,
                                 .from = find_caller(),
                                 .zone = zone};
    zone_fill(o);
    pthread_mutex_lock(&c->lock);
    forget_range(c, o->at, bytes + CHECKED_ZONE);
    tree_insert(&c->objects, &o->by_address, at_address(o->at));
    pthread_mutex_unlock(&c->lock);
}

void checked_leave(struct checked *c, const void *object, const char *call)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    struct checked_object *o =
        object_of(tree_at_most(&c->objects, at_address((uintptr_t)object)));
    if (o && o->at == (uintptr_t)object && !o->freed) {
        zone_check(o, call);
        o->freed = true;
        o->freed_from = find_caller();
        *c->newest = o;
        c->newest = &o->next;
        if (++c->freed > FREED_MAX)
            forget_oldest(c);
    }
    pthread_mutex_unlock(&c->lock);
}

/* ---- Accesses ---- */

/* Of objects and places before and in the bytes: what the line says. NULL `o`: there is none. */
static gshmem_status_t refuse_access(const struct checked_object *o, const void *at, size_t bytes,
                                     const char *call)
{
    const uintptr_t first = (uintptr_t)at;
    char from[160], freed[160];

    if (!o)
        return fail(GSHMEM_ERR_NOT_SYMMETRIC,
                    "%s of %zu B at %p: no object is there: that part of the symmetric heap was "
                    "never allocated",
                    call, bytes, at);
    checked_name(from, sizeof from, o->from);
    if (o->freed && first - o->at < o->bytes) {
        checked_name(freed, sizeof freed, o->freed_from);
        return fail(GSHMEM_ERR_NOT_SYMMETRIC,
                    "%s of %zu B at %p: the object of %zu B at %p was freed, in %s; it was from %s "
                    "in %s",
                    call, bytes, at, o->bytes, (void *)o->at, freed, o->call, from);
    }
    if (first - o->at < o->bytes)
        return fail(GSHMEM_ERR_NOT_SYMMETRIC,
                    "%s of %zu B at %p: it would run %zu B past the end of the object of %zu B at "
                    "%p, which is from %s in %s",
                    call, bytes, at, first + bytes - o->at - o->bytes, o->bytes, (void *)o->at,
                    o->call, from);
    return fail(GSHMEM_ERR_NOT_SYMMETRIC,
                "%s of %zu B at %p: no object is there; it is %zu B past the end of the object of "
                "%zu B at %p, which is%s from %s in %s",
                call, bytes, at, first - o->at - o->bytes, o->bytes, (void *)o->at,
                o->freed ? " freed, and was" : "", o->call, from);
}

gshmem_status_t checked_find(struct checked *c, const void *at, size_t bytes, const char *call)
{
    gshmem_status_t status = GSHMEM_OK;

    if (!bytes)
        return GSHMEM_OK;
    pthread_mutex_lock(&c->lock);
    const struct checked_object *o =
        object_of(tree_at_most(&c->objects, at_address((uintptr_t)at)));
    const size_t inside = o ? (uintptr_t)at - o->at : 0;
    if (!o || o->freed || inside > o->bytes || bytes > o->bytes - inside)
        status = refuse_access(o, at, bytes, call);
    pthread_mutex_unlock(&c->lock);
    return status;
}
