/* Best fit, lowest address first.
 *
 * The address space is cut into ranges without gaps, each of which is an object or free. Invariant:
 * two free ranges never touch. All ranges are in one tree by address, the free ones also in one by
 * size. When an object is freed, its start is remembered until the place is allocated again, so
 * that a second free of it gets an error line of its own. */
#include "runtime/memory/allocator.h"

#include <stdlib.h>

#include "runtime/memory/tree.h"

enum {
    GRAIN = 16,            /* every range begins and ends at a multiple of this */
    BATCH = 64,            /* ranges that are allocated at a time */
    REMEMBERED_MAX = 8192, /* freed objects; the oldest are forgotten */
    FITS_TRIED = 16,       /* free ranges that are tried for an alignment, before one that is large
                              enough in any case */
};

struct range {
    struct tree_node by_address; /* in ranges, or in remembered */
    struct tree_node by_size;    /* in spaces, if free */
    struct range *next;          /* in spare, or in the order of frees */
    struct range *previous;
    size_t offset;
    size_t bytes; /* whole grains */
    size_t asked; /* the requested size; 0: free */
};

struct batch {
    struct batch *next;
    struct range range[BATCH];
};

struct allocator {
    struct tree ranges;     /* all of [0, limit), by address */
    struct tree spaces;     /* the free ones, by size, then address */
    struct tree remembered; /* starts of freed objects, within free ranges */
    struct range *oldest;   /* the oldest of the remembered ones */
    struct range *newest;
    size_t remembered_count;

    struct range *spare;
    size_t spare_count;
    struct batch *batches;

    size_t limit;
    size_t apart; /* bytes behind each object that are in none */
    size_t used;
    size_t objects;
};

static struct range *address_entry(struct tree_node *node)
{
    return node ? tree_entry(node, struct range, by_address) : NULL;
}

static struct range *size_entry(struct tree_node *node)
{
    return node ? tree_entry(node, struct range, by_size) : NULL;
}

static struct tree_key at_offset(size_t offset)
{
    return (struct tree_key){.major = offset};
}

static struct tree_key of_size(const struct range *r)
{
    return (struct tree_key){.major = r->bytes, .minor = r->offset};
}

/* ---- Ranges: made in batches, kept when no longer used ---- */

/* Makes sure that n spare ranges are there; false: out of memory. */
static bool allocator_reserve(struct allocator *a, size_t n)
{
    if (a->spare_count >= n)
        return true;

    struct batch *batch = malloc(sizeof *batch);
    if (!batch)
        return false;
    batch->next = a->batches;
    a->batches = batch;
    for (size_t i = BATCH; i-- > 0;) {
        batch->range[i].next = a->spare;
        a->spare = &batch->range[i];
    }
    a->spare_count += BATCH;
    return true;
}

static struct range *allocator_pick(struct allocator *a, size_t offset, size_t bytes)
{
    struct range *r = a->spare;

    a->spare = r->next;
    a->spare_count--;
    r->offset = offset;
    r->bytes = bytes;
    r->asked = 0;
    return r;
}

static void allocator_drop(struct allocator *a, struct range *r)
{
    r->next = a->spare;
    a->spare = r;
    a->spare_count++;
}

/* ---- Freed objects ---- */

static void allocator_forget(struct allocator *a, struct range *r)
{
    *(r->previous ? &r->previous->next : &a->oldest) = r->next;
    *(r->next ? &r->next->previous : &a->newest) = r->previous;
    a->remembered_count--;
    tree_erase(&a->remembered, &r->by_address);
    allocator_drop(a, r);
}

/* Does nothing if there is no memory for it: then only an error line becomes less precise. */
static void allocator_remember(struct allocator *a, size_t offset, size_t bytes)
{
    if (a->remembered_count == REMEMBERED_MAX)
        allocator_forget(a, a->oldest);
    if (!allocator_reserve(a, 1))
        return;

    struct range *r = allocator_pick(a, offset, bytes);
    tree_insert(&a->remembered, &r->by_address, at_offset(offset));
    r->previous = a->newest;
    r->next = NULL;
    *(a->newest ? &a->newest->next : &a->oldest) = r;
    a->newest = r;
    a->remembered_count++;
}

static void forget_within(struct allocator *a, size_t offset, size_t bytes)
{
    struct range *r;

    while ((r = address_entry(tree_at_least(&a->remembered, at_offset(offset)))) &&
           r->offset - offset < bytes)
        allocator_forget(a, r);
}

/* ---- Free ranges ---- */

static void add_space(struct allocator *a, size_t offset, size_t bytes)
{
    struct range *r = allocator_pick(a, offset, bytes);

    tree_insert(&a->ranges, &r->by_address, at_offset(offset));
    tree_insert(&a->spaces, &r->by_size, of_size(r));
}

static void remove_space(struct allocator *a, struct range *r)
{
    tree_erase(&a->spaces, &r->by_size);
    tree_erase(&a->ranges, &r->by_address);
    allocator_drop(a, r);
}

/* Where an object of `bytes` would begin in this space, or past its end if it does not fit. */
static size_t aligned_start(const struct range *space, size_t alignment)
{
    size_t gap = -space->offset & (alignment - 1);

    return gap <= space->bytes ? space->offset + gap : space->offset + space->bytes;
}

static bool allocator_fits(const struct range *space, size_t bytes, size_t alignment)
{
    return space->bytes - (aligned_start(space, alignment) - space->offset) >= bytes;
}

static struct range *smallest_space(const struct allocator *a, size_t bytes)
{
    return size_entry(tree_at_least(&a->spaces, (struct tree_key){.major = bytes}));
}

/* The smallest free range that holds the object, as a rule. With a large alignment a few are tried,
 * then one that is large enough for any alignment; only if there is none, all that remain. */
static struct range *find_space(const struct allocator *a, size_t bytes, size_t alignment)
{
    struct range *r = smallest_space(a, bytes);

    for (int tried = 0; r && !allocator_fits(r, bytes, alignment); tried++) {
        if (tried == FITS_TRIED && alignment <= a->limit - bytes) {
            struct range *sure = smallest_space(a, bytes + alignment - GRAIN);
            if (sure)
                return sure;
        }
        r = size_entry(tree_after(&a->spaces, of_size(r)));
    }
    return r;
}

/* ---- The interface ---- */

struct allocator *allocator_create(size_t limit)
{
    struct allocator *a = calloc(1, sizeof *a);

    if (!a)
        return NULL;
    a->ranges = tree_empty();
    a->spaces = tree_empty();
    a->remembered = tree_empty();
    a->limit = limit / GRAIN * GRAIN;
    if (!allocator_reserve(a, 1)) {
        free(a);
        return NULL;
    }
    if (a->limit)
        add_space(a, 0, a->limit);
    return a;
}

void allocator_keep_apart(struct allocator *a, size_t bytes)
{
    a->apart = bytes;
}

void allocator_destroy(struct allocator *a)
{
    if (!a)
        return;
    while (a->batches) {
        struct batch *next = a->batches->next;
        free(a->batches);
        a->batches = next;
    }
    free(a);
}

/* A free range becomes the object of `bytes` at `start`; the rest of it, before and after the
 * object, stays free. Two spare ranges are there. */
static void allocator_cut(struct allocator *a, struct range *r, size_t start, size_t bytes,
                          size_t asked)
{
    size_t before = start - r->offset, after = r->bytes - before - bytes;

    tree_erase(&a->spaces, &r->by_size);
    if (before)
        tree_erase(&a->ranges, &r->by_address);
    size_t space = r->offset;
    r->offset = start;
    r->bytes = bytes;
    r->asked = asked;
    if (before) {
        tree_insert(&a->ranges, &r->by_address, at_offset(start));
        add_space(a, space, before);
    }
    if (after)
        add_space(a, start + bytes, after);
    forget_within(a, start, bytes);
    a->used += bytes;
    a->objects++;
}

/* The grains of an object, and of what is kept free behind it. asked: at most the limit. */
static size_t whole_grains(const struct allocator *a, size_t asked)
{
    return (asked + a->apart + GRAIN - 1) / GRAIN * GRAIN;
}

bool allocator_take(struct allocator *a, size_t asked, size_t alignment, size_t *offset)
{
    if (asked == 0 || asked > a->limit || alignment > a->limit)
        return false;
    if (alignment < GRAIN)
        alignment = GRAIN;

    size_t bytes = whole_grains(a, asked);
    struct range *r = bytes > a->limit ? NULL : find_space(a, bytes, alignment);
    if (!r || !allocator_reserve(a, 2))
        return false;
    *offset = aligned_start(r, alignment);
    allocator_cut(a, r, *offset, bytes, asked);
    return true;
}

static struct range *range_at(const struct allocator *a, size_t offset)
{
    return address_entry(tree_at_most(&a->ranges, at_offset(offset)));
}

bool allocator_take_at(struct allocator *a, size_t offset, size_t asked)
{
    if (asked == 0 || asked > a->limit || offset >= a->limit || offset % GRAIN)
        return false;

    size_t bytes = whole_grains(a, asked);
    struct range *r = range_at(a, offset);
    if (r->asked || r->bytes - (offset - r->offset) < bytes || !allocator_reserve(a, 2))
        return false;
    allocator_cut(a, r, offset, bytes, asked);
    return true;
}

enum allocator_answer allocator_look(const struct allocator *a, size_t offset, size_t *object,
                                     size_t *bytes)
{
    const struct range *r = offset < a->limit ? range_at(a, offset) : NULL;

    if (!r)
        return ALLOCATOR_FOREIGN;
    if (r->asked) {
        *object = r->offset;
        *bytes = r->asked;
        return r->offset == offset ? ALLOCATOR_OK : ALLOCATOR_INSIDE;
    }
    r = address_entry(tree_at_most(&a->remembered, at_offset(offset)));
    return r && r->offset == offset ? ALLOCATOR_FREED : ALLOCATOR_FOREIGN;
}

/* Makes the object's range free, merged with the free ranges it touches. Takes no memory. */
static void allocator_release(struct allocator *a, struct range *r)
{
    struct range *before = address_entry(tree_before(&a->ranges, at_offset(r->offset)));
    struct range *after = address_entry(tree_after(&a->ranges, at_offset(r->offset)));

    r->asked = 0;
    if (after && !after->asked) {
        r->bytes += after->bytes;
        remove_space(a, after);
    }
    if (before && !before->asked) {
        tree_erase(&a->spaces, &before->by_size);
        before->bytes += r->bytes;
        tree_erase(&a->ranges, &r->by_address);
        allocator_drop(a, r);
        r = before;
    }
    tree_insert(&a->spaces, &r->by_size, of_size(r));
}

enum allocator_answer allocator_give(struct allocator *a, size_t offset)
{
    struct range *r = offset < a->limit ? range_at(a, offset) : NULL;
    size_t object, asked;

    if (!r || r->offset != offset || !r->asked)
        return allocator_look(a, offset, &object, &asked);

    size_t bytes = r->bytes;
    a->used -= bytes;
    a->objects--;
    allocator_release(a, r);
    allocator_remember(a, offset, bytes);
    return ALLOCATOR_OK;
}

bool allocator_resize(struct allocator *a, size_t offset, size_t asked)
{
    struct range *r = offset < a->limit ? range_at(a, offset) : NULL;

    if (!r || r->offset != offset || !r->asked || asked == 0 || asked > a->limit)
        return false;

    size_t bytes = whole_grains(a, asked);
    struct range *after = address_entry(tree_after(&a->ranges, at_offset(r->offset)));
    size_t space = after && !after->asked ? after->bytes : 0;

    /* Takes memory only where a new free range comes into being, so that undoing a change of size
     * never fails. */
    if (bytes > r->bytes + space || (bytes < r->bytes && !space && !allocator_reserve(a, 1)))
        return false;
    if (bytes != r->bytes) {
        size_t room = r->bytes + space;
        if (space)
            remove_space(a, after);
        if (bytes > r->bytes)
            forget_within(a, offset + r->bytes, bytes - r->bytes);
        if (room > bytes)
            add_space(a, offset + bytes, room - bytes);
        a->used += bytes - r->bytes;
        r->bytes = bytes;
    }
    r->asked = asked;
    return true;
}

size_t allocator_used(const struct allocator *a)
{
    return a->used;
}

size_t allocator_objects(const struct allocator *a)
{
    return a->objects;
}

size_t allocator_largest(const struct allocator *a)
{
    const struct range *r = size_entry(tree_last(&a->spaces));

    return r ? r->bytes : 0;
}

size_t allocator_top(const struct allocator *a)
{
    const struct range *r = address_entry(tree_last(&a->ranges));

    return r && !r->asked ? r->offset : a->limit;
}
