/* Irregular programs: updates of and gets from random places of a table that is spread over all
 * PEs. Each in three forms: by one operation for each element, by indexed operations, and
 * aggregated by hand (`_sent`), the form that the other two are compared with: indices sorted into
 * a buffer for each PE, sent as one put to each, and answered in the same way.
 *
 * One iteration is ROUND elements of each PE, and the barrier that completes them. */
#include "benchmark.h"
#include <library.h>

#if LIB_HAS_INDEXED
#include <stdlib.h>
#include <string.h>

enum { ROUND = IRREGULAR_ROUND, TABLE = 10000 };

static struct {
    long *table;  /* symmetric: TABLE longs of each PE */
    char *asked;  /* symmetric: a slot for each PE: their number, then indices or values */
    char *answer; /* likewise, what comes back */
    char *out;    /* a slot for each PE, on the way to it */
    size_t slot;  /* bytes */
    size_t *index;
    int *pes;
    long *value;
    uint32_t *place; /* [PE][k]: which element the kth of its slot is */
    size_t most;     /* elements of a slot */
} all;

static size_t per_pe(const struct run *r)
{
    const size_t mean = ROUND / (size_t)r->n_pes;

    return r->n_pes == 1 ? ROUND : mean + mean / 4 + 1000; /* far above what chance gives a PE */
}

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
    all.most = per_pe(r);
    all.slot = sizeof(uint64_t) + all.most * 2 * sizeof(uint64_t);
    all.table = memory_or_end(lib_malloc(TABLE * sizeof(long)));
    all.asked = memory_or_end(lib_malloc(pes * all.slot));
    all.answer = memory_or_end(lib_malloc(pes * all.slot));
    all.out = memory_or_end(malloc(pes * all.slot));
    all.index = memory_or_end(malloc(ROUND * sizeof *all.index));
    all.pes = memory_or_end(malloc(ROUND * sizeof *all.pes));
    all.value = memory_or_end(malloc(ROUND * sizeof *all.value));
    all.place = memory_or_end(malloc(pes * all.most * sizeof *all.place));
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

static uint64_t *count_of(char *slots, int pe)
{
    return (uint64_t *)(void *)slot_of(slots, pe);
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

/* Sends each PE its slot, of so many bytes for each element; all have theirs afterwards. */
static void exchange(const struct run *r, char *to, size_t bytes)
{
    for (int k = 1; k <= r->n_pes; k++) {
        const int pe = (r->pe + k) % r->n_pes;
        lib_put_nbi(slot_of(to, r->pe), slot_of(all.out, pe),
                    sizeof(uint64_t) + *count_of(all.out, pe) * bytes, pe);
    }
    lib_barrier_all();
}

struct element {
    uint64_t index;
    long value;
};

/* Sorts the elements by PE: the index of each, and for a scatter its value behind it. */
static void sort_out(const struct run *r, int with_values)
{
    for (int pe = 0; pe < r->n_pes; pe++)
        *count_of(all.out, pe) = 0;
    for (size_t i = 0; i < ROUND; i++) {
        const int pe = all.pes[i];
        const uint64_t k = (*count_of(all.out, pe))++;
        char *slot = slot_of(all.out, pe) + sizeof(uint64_t);
        all.place[(size_t)pe * all.most + k] = (uint32_t)i;
        if (with_values) {
            ((struct element *)(void *)slot)[k] = (struct element){all.index[i], all.value[i]};
        } else {
            ((uint32_t *)(void *)slot)[k] = (uint32_t)all.index[i];
        }
    }
}

static const void *sent_by(int pe)
{
    return slot_of(all.asked, pe) + sizeof(uint64_t);
}

static const uint32_t *asked_by(int pe)
{
    return sent_by(pe);
}

void loop_histogram_sent(struct run *r, uint64_t n)
{
    prepare(r);
    for (uint64_t k = 0; k < n; k++) {
        sort_out(r, 0);
        exchange(r, all.asked, sizeof(uint32_t));
        for (int pe = 0; pe < r->n_pes; pe++) {
            const uint32_t *index = asked_by(pe);
            for (uint64_t i = 0, m = *count_of(all.asked, pe); i < m; i++)
                all.table[index[i]]++;
        }
        lib_barrier_all();
    }
}

void loop_scatter_sent(struct run *r, uint64_t n)
{
    prepare(r);
    for (uint64_t k = 0; k < n; k++) {
        sort_out(r, 1);
        exchange(r, all.asked, sizeof(struct element));
        for (int pe = 0; pe < r->n_pes; pe++) {
            const struct element *e = sent_by(pe);
            for (uint64_t i = 0, m = *count_of(all.asked, pe); i < m; i++)
                all.table[e[i].index] = e[i].value;
        }
        lib_barrier_all();
    }
}

void loop_gather_sent(struct run *r, uint64_t n)
{
    prepare(r);
    for (uint64_t k = 0; k < n; k++) {
        sort_out(r, 0);
        exchange(r, all.asked, sizeof(uint32_t));
        for (int pe = 0; pe < r->n_pes; pe++) {
            const uint64_t m = *count_of(all.out, pe) = *count_of(all.asked, pe);
            long *value = (long *)(void *)(slot_of(all.out, pe) + sizeof(uint64_t));
            for (uint64_t i = 0; i < m; i++)
                value[i] = all.table[asked_by(pe)[i]];
        }
        exchange(r, all.answer, sizeof(long));
        for (int pe = 0; pe < r->n_pes; pe++) {
            const long *value =
                (const long *)(const void *)(slot_of(all.answer, pe) + sizeof(uint64_t));
            const uint32_t *place = all.place + (size_t)pe * all.most;
            for (uint64_t i = 0, m = *count_of(all.answer, pe); i < m; i++)
                all.value[place[i]] = value[i];
        }
    }
}
#endif
