#define _GNU_SOURCE
#include "runtime/memory/checked.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/memory/caller.h"
#include "runtime/memory/tree.h"
#include "runtime/memory/variables.h"
#include "runtime/where/symbols.h"

enum {
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
    struct checked_variables *variables;
};

static struct checked_object *object_of(struct tree_node *node)
{
    return node ? tree_entry(node, struct checked_object, by_address) : NULL;
}

static struct tree_key at_address(uintptr_t at)
{
    return (struct tree_key){.major = at};
}

/* ---- Red zones ---- */

static void zone_fill(const struct checked_object *o)
{
    if (o->zone)
        memset((void *)(o->at + o->bytes), PATTERN, CHECKED_ZONE);
}

/* The object behind the zone may be the one that was meant. */
static void zone_name_next(const struct checked *c, const struct checked_object *o, char *text,
                           size_t size)
{
    const uintptr_t end = o->at + o->bytes;
    const struct checked_object *next =
        object_of(tree_at_least(&c->objects, at_address(end + CHECKED_ZONE)));

    text[0] = 0;
    if (next && !next->freed && next->at - end < 2 * (size_t)CHECKED_ZONE)
        snprintf(text, size, ", which is %zu B in front of the object of %zu B at %p",
                 next->at - end, next->bytes, (void *)next->at);
}

/* Each write is reported once. */
static void zone_check(const struct checked *c, const struct checked_object *o, const char *call)
{
    const unsigned char *zone = (const unsigned char *)(o->at + o->bytes);
    char from[160], next[120];
    size_t first = 0;

    if (!o->zone)
        return;
    while (first < CHECKED_ZONE && zone[first] == PATTERN)
        first++;
    if (first == CHECKED_ZONE)
        return;
    caller_name(from, sizeof from, o->from);
    zone_name_next(c, o, next, sizeof next);
    fail(GSHMEM_ERR_ARGUMENT,
         "%s: the program has written behind the object of %zu B at %p, first %zu B behind its "
         "end%s; it is from %s in %s",
         call, o->bytes, (void *)o->at, first, next, o->call, from);
    zone_fill(o);
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

    if (!c || !(c->variables = variables_start())) {
        free(c);
        return NULL;
    }
    c->objects = tree_empty();
    c->newest = &c->oldest;
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

void checked_review(struct checked *c, const char *call)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    struct checked_object *o = object_of(tree_last(&c->objects));
    for (; o; o = object_of(tree_before(&c->objects, at_address(o->at)))) {
        if (!o->freed)
            zone_check(c, o, call);
    }
    pthread_mutex_unlock(&c->lock);
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
    variables_stop(c->variables);
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
                                 .from = caller_find(),
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
        zone_check(c, o, call);
        o->freed = true;
        o->freed_from = caller_find();
        *c->newest = o;
        c->newest = &o->next;
        if (++c->freed > FREED_MAX)
            forget_oldest(c);
    }
    pthread_mutex_unlock(&c->lock);
}

/* ---- Accesses ---- */

void checked_enter_variables(struct checked *c, uintptr_t base, size_t bytes)
{
    variables_enter(c->variables, base, bytes);
}

size_t checked_room(struct checked *c, const void *at, size_t most)
{
    const struct variable *v = variables_find(c->variables, (uintptr_t)at);

    if (v && (uintptr_t)at - v->at < v->bytes)
        return v->bytes - ((uintptr_t)at - v->at);
    pthread_mutex_lock(&c->lock);
    const struct checked_object *o =
        object_of(tree_at_most(&c->objects, at_address((uintptr_t)at)));
    if (o && !o->freed && (uintptr_t)at - o->at < o->bytes)
        most = o->bytes - ((uintptr_t)at - o->at);
    pthread_mutex_unlock(&c->lock);
    return most;
}

/* What is wrong with an access: o is the object there, or before it; NULL: there is none. */
static void explain_access(const struct checked_object *o, uintptr_t first, size_t bytes,
                           char *text, size_t size)
{
    char from[160], freed[160];

    if (!o) {
        snprintf(text, size, "no object is there: it was never allocated");
        return;
    }
    const size_t inside = first - o->at;
    caller_name(from, sizeof from, o->from);
    caller_name(freed, sizeof freed, o->freed_from);
    if (o->freed && inside < o->bytes)
        snprintf(text, size, "the object of %zu B at %p was freed, in %s; it was from %s in %s",
                 o->bytes, (void *)o->at, freed, o->call, from);
    else if (inside < o->bytes)
        snprintf(text, size,
                 "it would run %zu B past the end of the object of %zu B at %p, which is from %s "
                 "in %s",
                 inside + bytes - o->bytes, o->bytes, (void *)o->at, o->call, from);
    else
        snprintf(text, size,
                 "no object is there; it is %zu B past the end of the object of %zu B at %p, which "
                 "is%s from %s in %s",
                 inside - o->bytes, o->bytes, (void *)o->at, o->freed ? " freed, and was" : "",
                 o->call, from);
}

static gshmem_status_t refuse_access(const void *at, size_t bytes, const char *call, bool here,
                                     const char *why)
{
    char caller[160] = "";

    if (here)
        caller_name(caller, sizeof caller, caller_find());
    return fail(GSHMEM_ERR_NOT_SYMMETRIC, "%s of %zu B at %p%s%s: %s", call, bytes, at,
                here ? ", in " : "", caller, why);
}

gshmem_status_t checked_access(struct checked *c, const void *at, size_t bytes, const char *call,
                               bool here)
{
    char why[600] = "";

    if (!bytes)
        return GSHMEM_OK;
    pthread_mutex_lock(&c->lock);
    const struct checked_object *o =
        object_of(tree_at_most(&c->objects, at_address((uintptr_t)at)));
    const size_t inside = o ? (uintptr_t)at - o->at : 0;
    if (!o || o->freed || inside > o->bytes || bytes > o->bytes - inside)
        explain_access(o, (uintptr_t)at, bytes, why, sizeof why);
    pthread_mutex_unlock(&c->lock);
    if (!why[0])
        return GSHMEM_OK;
    return refuse_access(at, bytes, call, here, why);
}

gshmem_status_t checked_variable(struct checked *c, const void *at, size_t bytes, const char *call,
                                 bool here)
{
    const struct variable *v = variables_find(c->variables, (uintptr_t)at);
    const size_t inside = v ? (uintptr_t)at - v->at : 0;
    char why[300];

    if (bytes == 0 || (v && inside < v->bytes && bytes <= v->bytes - inside))
        return GSHMEM_OK;
    if (v && inside < v->bytes)
        snprintf(why, sizeof why, "it would run %zu B past the end of the variable %s of %zu B",
                 inside + bytes - v->bytes, v->name, v->bytes);
    else if (!variables_are_known(c->variables, (uintptr_t)at))
        return GSHMEM_OK;
    else if (v)
        snprintf(why, sizeof why,
                 "no variable is there; it is %zu B past the end of the variable %s of %zu B",
                 inside - v->bytes, v->name, v->bytes);
    else
        snprintf(why, sizeof why, "no variable is there");
    return refuse_access(at, bytes, call, here, why);
}
