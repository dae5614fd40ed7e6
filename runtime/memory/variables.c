#define _GNU_SOURCE
#include "runtime/memory/variables.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/memory/data.h"
#include "runtime/where/symbols.h"

struct checked_variables {
    struct tree by_address; /* none overlaps another */
    struct {
        uintptr_t base;
        size_t bytes;
    } known[DATA_SEGMENT_MAX]; /* data all of whose variables are there */
    int n_known;
};

static struct variable *variable_of(struct tree_node *node)
{
    return node ? tree_entry(node, struct variable, by_address) : NULL;
}

static struct tree_key variable_key(uintptr_t at)
{
    return (struct tree_key){.major = at};
}

struct checked_variables *variables_start(void)
{
    struct checked_variables *c = calloc(1, sizeof *c);

    if (c)
        c->by_address = tree_empty();
    return c;
}

struct found_variable {
    uintptr_t at;
    size_t bytes;
    char *name;
};

struct variable_search {
    uintptr_t base, bias;
    size_t bytes;
    struct found_variable *found;
    size_t n, room;
    bool statics, incomplete;
};

static bool variables_have_room(struct variable_search *s)
{
    const size_t room = s->room ? 2 * s->room : 64;

    if (s->n < s->room)
        return true;
    struct found_variable *more = realloc(s->found, room * sizeof *more);
    if (!more)
        return false;
    s->found = more;
    s->room = room;
    return true;
}

static void note_variable(void *context, const struct symbols_variable *v)
{
    struct variable_search *s = context;
    const uintptr_t offset = (uintptr_t)v->at + s->bias - s->base;

    if (offset >= s->bytes || v->bytes > s->bytes - offset)
        return;
    char *copy = variables_have_room(s) ? strndup(v->name, v->room) : NULL;
    s->statics |= v->is_static;
    s->incomplete |= !copy;
    if (copy)
        s->found[s->n++] = (struct found_variable){s->base + offset, v->bytes, copy};
}

/* By address; of those that begin at one the largest comes first. */
static int compare_variables(const void *a, const void *b)
{
    const struct found_variable *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

/* Aliases, and symbols inside of a variable, are left out: an access is compared with the whole. */
static void enter_found(struct checked_variables *c, struct variable_search *s)
{
    uintptr_t end = 0;

    for (size_t i = 0; i < s->n; i++) {
        const struct found_variable *v = &s->found[i];
        struct variable *o = v->at >= end ? calloc(1, sizeof *o) : NULL;
        s->incomplete |= !o && v->at >= end;
        if (!o) {
            free(v->name);
            continue;
        }
        *o = (struct variable){.at = v->at, .bytes = v->bytes, .name = v->name};
        tree_insert(&c->by_address, &o->by_address, variable_key(o->at));
        end = v->at + v->bytes;
    }
}

void variables_enter(struct checked_variables *c, uintptr_t base, size_t bytes)
{
    struct variable_search s = {.base = base, .bytes = bytes};
    struct link_map *map = NULL;
    Dl_info info;

    if (!dladdr1((const void *)base, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return;
    s.bias = map->l_addr;
    symbols_variables(map->l_name[0] ? map->l_name : "/proc/self/exe", note_variable, &s);
    qsort(s.found, s.n, sizeof *s.found, compare_variables);
    enter_found(c, &s);
    free(s.found);
    if (s.incomplete)
        log_error("start-up: no memory for GSHMEM_CHECK=memory to know all of the program's "
                  "variables");
    /* The C runtime has a static variable: a file without any has been stripped of them. */
    if (s.statics && !s.incomplete && c->n_known < DATA_SEGMENT_MAX) {
        c->known[c->n_known].base = base;
        c->known[c->n_known++].bytes = bytes;
    }
}

bool variables_are_known(const struct checked_variables *c, uintptr_t at)
{
    int i = 0;

    while (i < c->n_known && at - c->known[i].base >= c->known[i].bytes)
        i++;
    return i < c->n_known;
}

const struct variable *variables_find(const struct checked_variables *c, uintptr_t at)
{
    return variable_of(tree_at_most(&c->by_address, variable_key(at)));
}

void variables_stop(struct checked_variables *c)
{
    struct variable *v;

    while (c && (v = variable_of(tree_last(&c->by_address)))) {
        tree_erase(&c->by_address, &v->by_address);
        free(v->name);
        free(v);
    }
    free(c);
}
