/* The same words, updated by all PEs at once, some of which are mapped and some reached by a NIC;
 * and data passed on under signals between all pairs at the same time. No update is lost or done
 * twice, whoever does it, and who sees a signal sees the data before it.
 *
 *     hammer [ROUNDS]
 *
 * All four kinds of agents come together on a word: the owner itself, PEs that share memory with
 * it, its proxy for others, and two threads of each PE. */
#include <pthread.h>

#include "../pe/pe.h"

enum { MOST_PES = 16, WORDS = 4, BYTES = 9000, THREADS = 2, SLOTS = 24 };

/* Symmetric: what everybody updates, */
static struct {
    uint64_t sum, ticket, swapped, signal;
    uint32_t small[2];
    uint64_t bits;
    double real;
} word[WORDS];

/* and for each pair of PEs what one has from the other. */
static struct {
    uint64_t full, taken;
    unsigned char data[BYTES];
} box[MOST_PES];

/* What each thread of each PE puts, word by word, not one beside the other. */
static struct {
    uint64_t whole;
    uint64_t slot[SLOTS][3];
} table[MOST_PES][THREADS];

static int rounds;

/* ---- Updates ---- */

static void swap_up(uint64_t *at, int pe)
{
    uint64_t seen, old = 0;

    do {
        seen = old;
        CHECK_OK(gshmem_uint64_atomic_compare_swap_nbi(&old, at, seen, seen + 1, pe));
        CHECK_OK(gshmem_quiet());
    } while (old != seen);
}

/* ---- Many small puts, and behind a fence the word that they are there ---- */

static void scatter(int thread, uint64_t round)
{
    for (int pe = 0; pe < n; pe++) {
        for (int i = 0; i < SLOTS; i++)
            CHECK_OK(gshmem_uint64_p(&table[me][thread].slot[(unsigned)(i * 7) % SLOTS][round % 3],
                                     round, pe));
    }
    CHECK_OK(gshmem_fence());
    for (int pe = 0; pe < n; pe++)
        CHECK_OK(gshmem_uint64_p(&table[me][thread].whole, round, pe));
}

static void check_tables(void)
{
    for (int pe = 0; pe < n; pe++) {
        for (int thread = 0; thread < THREADS; thread++) {
            const uint64_t round = __atomic_load_n(&table[pe][thread].whole, __ATOMIC_ACQUIRE);
            for (int i = 0; round && i < SLOTS; i++)
                CHECK(__atomic_load_n(&table[pe][thread].slot[i][round % 3], __ATOMIC_RELAXED) >=
                      round);
        }
    }
}

/* One of each kind on one word of one PE; `last`: the ticket that this thread had from it before.
 */
static void update(int w, int pe, uint64_t *last)
{
    CHECK_OK(gshmem_uint64_atomic_add(&word[w].sum, 3, pe));
    uint64_t ticket = gshmem_uint64_atomic_fetch_inc(&word[w].ticket, pe) + 1;
    CHECK(ticket > *last); /* they only grow */
    *last = ticket;
    CHECK_OK(gshmem_signal_add(&word[w].signal, 1, pe));
    CHECK_OK(gshmem_uint32_atomic_add(&word[w].small[w % 2], 1, pe));
    CHECK_OK(gshmem_uint64_atomic_xor(&word[w].bits, 1ull << me, pe));
    CHECK_OK(gshmem_double_atomic_add(&word[w].real, 0.5, pe));
    swap_up(&word[w].swapped, pe);
}

static void *update_all(void *argument)
{
    uint64_t last[MOST_PES][WORDS] = {0};
    int begin = (int)(intptr_t)argument;

    for (int i = 0; i < rounds; i++) {
        for (int pe = 0; pe < n; pe++) {
            int w = (i + begin) % WORDS, to = (pe + i) % n;
            update(w, to, &last[to][w]);
        }
        if (i % 4 == 0)
            scatter(begin, (uint64_t)i + 1);
        check_tables();
    }
    return NULL;
}

static void check_updates(void)
{
    for (int w = 0; w < WORDS; w++) {
        uint64_t times = 0;
        for (int thread = 0; thread < THREADS; thread++) {
            for (int i = 0; i < rounds; i++)
                times += (i + thread) % WORDS == w;
        }
        CHECK_EQ(word[w].bits, times % 2 ? (1ull << n) - 1 : 0);
        times *= (uint64_t)n;
        CHECK_EQ(word[w].sum, 3 * times);
        CHECK_EQ(word[w].ticket, times);
        CHECK_EQ(word[w].swapped, times);
        CHECK_EQ(word[w].signal, times);
        CHECK_EQ(word[w].small[w % 2], times);
        CHECK_EQ(word[w].small[1 - w % 2], 0);
        CHECK_EQ(2 * word[w].real, times);
    }
}

/* ---- Data under signals, between all pairs ---- */

static size_t size_of(int round)
{
    static const size_t sizes[] = {8, 1, 129, BYTES, 64, 4097, 200, 16};

    return sizes[(unsigned)round % (sizeof sizes / sizeof sizes[0])];
}

/* In three ways: the signal set, the signal added to, and a put behind a fence. */
static void send(int round, int pe, unsigned char *from)
{
    const uint64_t number = (uint64_t)round;
    const size_t bytes = size_of(round);

    CHECK_OK(gshmem_uint64_wait_until(&box[pe].taken, GSHMEM_CMP_GE, number - 1));
    fill(from, bytes, me, (unsigned)round);
    if (round % 3 == 0) {
        CHECK_OK(gshmem_putmem_signal_nbi(box[me].data, from, bytes, &box[me].full, number,
                                          GSHMEM_SIGNAL_SET, pe));
    } else if (round % 3 == 1) {
        CHECK_OK(gshmem_putmem_signal_nbi(box[me].data, from, bytes, &box[me].full, 1,
                                          GSHMEM_SIGNAL_ADD, pe));
    } else {
        CHECK_OK(gshmem_putmem_nbi(box[me].data, from, bytes, pe));
        CHECK_OK(gshmem_fence());
        CHECK_OK(gshmem_uint64_p(&box[me].full, number, pe));
    }
}

static void receive(int round, int pe)
{
    CHECK_EQ(gshmem_signal_wait_until(&box[pe].full, GSHMEM_CMP_GE, (uint64_t)round), round);
    CHECK_FILLED(box[pe].data, size_of(round), pe, (unsigned)round);
    CHECK_OK(gshmem_uint64_p(&box[me].taken, (uint64_t)round, pe));
}

static void pass_data(void)
{
    static unsigned char from[MOST_PES][BYTES];

    for (int round = 1; round <= rounds; round++) {
        for (int pe = 0; pe < n; pe++)
            send(round, pe, from[pe]);
        for (int pe = 0; pe < n; pe++)
            receive(round, pe);
        CHECK_OK(gshmem_quiet()); /* `from` is filled again */
    }
}

int main(int argc, char **argv)
{
    pthread_t thread[THREADS];
    int provided;

    rounds = argc > 1 ? atoi(argv[1]) : 200;
    CHECK_OK(gshmem_init_thread(GSHMEM_THREAD_MULTIPLE, &provided));
    begin();
    CHECK(n <= MOST_PES);
    barrier();
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, update_all, (void *)i), 0);
    pass_data();
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    barrier();
    check_updates();
    barrier();
    end();
    CHECK_OK(gshmem_finalize());
    return 0;
}
