/* Irregular programs: updates of and gets from random places of a table that is spread over all
 * PEs. Each in three forms: by one operation for each element, by indexed operations, and
 * aggregated by hand (`_sent`), the form that the other two are compared with: indices are sorted
 * into a buffer for each PE, of as many elements as a batch of the library has; when one is full
 * all are exchanged, as one put to each PE, and answered in the same way.
 *
 * One iteration is ROUND elements of each PE, and the barrier that completes them. */
#include "benchmark.h"
#include <library.h>

#if LIB_HAS_INDEXED
#include <stdlib.h>
#include <string.h>

enum { ROUND = IRREGULAR_ROUND, TABLE = 10000, SLOT = 4096 };

/* Of a slot. */
struct head {
    uint64_t count;
    uint64_t is_last; /* the PE has no more elements */
};

static struct {
    long *table;  /* symmetric: TABLE longs of each PE */
    char *asked;  /* symmetric: a slot for each PE: its head, then indices or values */
    char *answer; /* likewise, what comes back */
    char *out;    /* a slot for each PE, on the way to it */
    size_t slot;  /* bytes */
    size_t *index;
    int *pes;
    long *value;
    uint32_t *place; /* [PE][k]: which element the kth of its slot is */
} all;

static void *memory_or_end(void *memory)
{
    if (!memory) {
        fputs(LIB_PROGRAM ": no memory for irregular programs\n", stderr);
        exit(1);
    }
    return memory;
}

/* By all PEs, before their first loop. */
static void prepare(const struct run *r)
{
    const size_t pes = (size_t)r->n_pes;
    uint64_t random = 88172645463325252ull + (uint64_t)r->pe * 7919;

    if (all.table)
        return;
    all.slot = sizeof(struct head) + SLOT * 2 * sizeof(uint64_t);
    all.table = memory_or_end(lib_malloc(TABLE * sizeof(long)));
    all.asked = memory_or_end(lib_malloc(pes * all.slot));
    all.answer = memory_or_end(lib_malloc(pes * all.slot));
    all.out = memory_or_end(malloc(pes * all.slot));
    all.index = memory_or_end(malloc(ROUND * sizeof *all.index));
    all.pes = memory_or_end(malloc(ROUND * sizeof *all.pes));
    all.value = memory_or_end(malloc(ROUND * sizeof *all.value));
    all.place = memory_or_end(malloc(pes * SLOT * sizeof *all.place));
    for (size_t i = 0; i < ROUND; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        all.index[i] = (size_t)(random % TABLE);
        all.pes[i] = (int)((random >> 20) % pes);
        all.value[i] = 1;
    }
    for (size_t i = 0; i < TABLE; i++)
        all.table[i] = (long)i;
    lib_barrier_all();
}

static char *slot_of(char *slots, int pe)
{
    return slots + (size_t)pe * all.slot;
}

static struct head *head_of(char *slots, int pe)
{
    return (struct head *)(void *)slot_of(slots, pe);
}

/* ---- One operation for each element ---- */

void loop_histogram(struct run *r, uint64_t n)
{
    prepare(r);
    for (uint64_t k = 0; k < n; k++) {
        for (size_t i = 0; i < ROUND; i++)
            lib_add(&all.table[all.index[i]], 1, all.pes[i]);
        lib_barrier_all();
    }
}

void loop_gather(struct run *r, uint64_t n)
{
    prepare(r);
    for (uint64_t k = 0; k < n; k++) {
        for (size_t i = 0; i < ROUND; i++)
            all.value[i] = lib_g(&all.table[all.index[i]], all.pes[i]);
        lib_barrier_all();
    }
}

void loop_scatter(struct run *r, uint64_t n)
{
    prepare(r);
    for (uint64_t k = 0; k < n; k++) {
        for (size_t i = 0; i < ROUND; i++)
            lib_p(&all.table[all.index[i]], (long)i, all.pes[i]);
        lib_barrier_all();
    }
}

/* ---- Indexed ---- */

void loop_histogram_ix(struct run *r, uint64_t n)
{
    prepare(r);
    for (uint64_t k = 0; k < n; k++) {
        lib_ix_add(all.table, all.value, all.index, all.pes, ROUND);
        lib_barrier_all();
    }
}

void loop_gather_ix(struct run *r, uint64_t n)
{
    prepare(r);
    for (uint64_t k = 0; k < n; k++) {
        lib_ixget(all.value, all.table, all.index, all.pes, ROUND);
        lib_barrier_all();
    }
}

void loop_scatter_ix(struct run *r, uint64_t n)
{
    prepare(r);
    for (uint64_t k = 0; k < n; k++) {
        lib_ixput(all.table, all.value, all.index, all.pes, ROUND);
        lib_barrier_all();
    }
}

/* ---- Aggregated by hand ---- */

struct element {
    uint64_t index;
    long value;
};

/* Sends each PE its slot, of so many bytes for each element; all have theirs afterwards. */
static void exchange(const struct run *r, char *to, size_t bytes)
{
    for (int k = 1; k <= r->n_pes; k++) {
        const int pe = (r->pe + k) % r->n_pes;
        lib_put_nbi(slot_of(to, r->pe), slot_of(all.out, pe),
                    sizeof(struct head) + head_of(all.out, pe)->count * bytes, pe);
    }
    lib_barrier_all();
}

/* Sorts elements by PE, from this one on, until a slot is full: the index of each, and for a
 * scatter its value. Returns the first that is left. */
static size_t sort_out(const struct run *r, size_t i, int with_values)
{
    for (int pe = 0; pe < r->n_pes; pe++)
        head_of(all.out, pe)->count = 0;
    for (uint64_t k = 0; i < ROUND && k < SLOT; i++) {
        const int pe = all.pes[i];
        void *slot = head_of(all.out, pe) + 1;
        k = head_of(all.out, pe)->count++;
        all.place[(size_t)pe * SLOT + k] = (uint32_t)i;
        if (with_values)
            ((struct element *)slot)[k] = (struct element){all.index[i], all.value[i]};
        else
            ((uint32_t *)slot)[k] = (uint32_t)all.index[i];
        k++;
    }
    for (int pe = 0; pe < r->n_pes; pe++)
        head_of(all.out, pe)->is_last = i == ROUND;
    return i;
}

/* Whether some PE has elements left. */
static int more_to_come(const struct run *r)
{
    int more = 0;

    for (int pe = 0; pe < r->n_pes; pe++)
        more |= !head_of(all.asked, pe)->is_last;
    return more;
}

static void update_table(const struct run *r)
{
    for (int pe = 0; pe < r->n_pes; pe++) {
        const struct head *h = head_of(all.asked, pe);
        const uint32_t *index = (const uint32_t *)(const void *)(h + 1);
        for (uint64_t i = 0; i < h->count; i++)
            all.table[index[i]]++;
    }
}

static void store_in_table(const struct run *r)
{
    for (int pe = 0; pe < r->n_pes; pe++) {
        const struct head *h = head_of(all.asked, pe);
        const struct element *e = (const struct element *)(const void *)(h + 1);
        for (uint64_t i = 0; i < h->count; i++)
            all.table[e[i].index] = e[i].value;
    }
}

/* Answers what was asked, and puts the answers to this PE in their places. */
static void answer(const struct run *r)
{
    for (int pe = 0; pe < r->n_pes; pe++) {
        const struct head *h = head_of(all.asked, pe);
        const uint32_t *index = (const uint32_t *)(const void *)(h + 1);
        long *value = (long *)(void *)(head_of(all.out, pe) + 1);
        *head_of(all.out, pe) = *h;
        for (uint64_t i = 0; i < h->count; i++)
            value[i] = all.table[index[i]];
    }
    exchange(r, all.answer, sizeof(long));
    for (int pe = 0; pe < r->n_pes; pe++) {
        const struct head *h = head_of(all.answer, pe);
        const long *value = (const long *)(const void *)(h + 1);
        for (uint64_t i = 0; i < h->count; i++)
            all.value[all.place[(size_t)pe * SLOT + i]] = value[i];
    }
}

static void aggregate(struct run *r, uint64_t n, int with_values, size_t bytes,
                      void (*deal_with)(const struct run *r))
{
    prepare(r);
    for (uint64_t k = 0; k < n; k++) {
        size_t i = 0;
        int more;
        do {
            i = sort_out(r, i, with_values);
            exchange(r, all.asked, bytes);
            more = more_to_come(r);
            deal_with(r);
            lib_barrier_all(); /* slots may be written again */
        } while (more);
    }
}

void loop_histogram_sent(struct run *r, uint64_t n)
{
    aggregate(r, n, 0, sizeof(uint32_t), update_table);
}

void loop_scatter_sent(struct run *r, uint64_t n)
{
    aggregate(r, n, 1, sizeof(struct element), store_in_table);
}

void loop_gather_sent(struct run *r, uint64_t n)
{
    aggregate(r, n, 0, sizeof(uint32_t), answer);
}
#endif
