/* Objects for remote atomics (GSHMEM_MALLOC_ATOMICS_REMOTE), updated by all PEs at once: their
 * owner, PEs of its host, PEs of another, two threads of each. All kinds of updates of all types
 * that there are; no update is lost or made twice, and who sees a signal there sees the data before
 * it.
 *
 *     counters [ROUNDS]
 *
 * Whether NICs make the updates, and they alone, is the library's choice: GSHMEM_LOG=info tells. */
#include <pthread.h>
#include <stdlib.h>

#include "../pe/pe.h"

enum { MOST_PES = 16, BYTES = 3000, THREADS = 2 };

/* What everybody updates, on every PE. Halves of words are different objects. */
struct words {
    uint64_t sum, ticket, swapped, signal, bits, token, set;
    long above;
    uint32_t low, high; /* one word */
    int32_t first, second;
    float real, other_real;
    double twice;
    uint32_t low_bits, high_bits;
    uint32_t low_swapped, high_swapped;
    long lock;
    uint64_t guarded; /* by it, on PE 0: read and written, not updated */
};

/* For each pair of PEs what one has from the other. */
struct box {
    uint64_t full, taken;
    unsigned char data[BYTES];
};

static struct words *word;
static struct box *box;
static int rounds;

/* ---- Updates ---- */

static void swap_up(uint64_t *at, int pe)
{
    uint64_t seen, old = 0;

    do {
        seen = old;
        old = gshmem_uint64_atomic_compare_swap(at, seen, seen + 1, pe);
    } while (old != seen);
}

static void swap_up_half(uint32_t *at, int pe)
{
    uint32_t seen, old = 0;

    do {
        seen = old;
        old = gshmem_uint32_atomic_compare_swap(at, seen, seen + 1, pe);
    } while (old != seen);
}

struct thread {
    int number;
    uint64_t last[MOST_PES]; /* the ticket it had from each PE */
    uint64_t tokens;         /* put in, less those taken out */
};

/* One of each kind on one PE's words. */
static void update(struct thread *t, int round, int pe)
{
    const uint64_t token = (uint64_t)(round + 1) * 1000003 + (uint64_t)me * 17 + (uint64_t)t->number;

    CHECK_OK(gshmem_uint64_atomic_add(&word->sum, 3, pe));
    uint64_t ticket = gshmem_uint64_atomic_fetch_inc(&word->ticket, pe) + 1;
    CHECK(ticket > t->last[pe]); /* they only grow */
    t->last[pe] = ticket;
    CHECK(gshmem_uint64_atomic_fetch(&word->ticket, pe) >= ticket);
    CHECK_OK(gshmem_signal_add(&word->signal, 1, pe));
    CHECK_OK(gshmem_long_atomic_add(&word->above, -5, pe));
    CHECK_OK(gshmem_uint32_atomic_add(&word->low, 0x01000001, pe)); /* and overflows */
    CHECK_OK(gshmem_uint32_atomic_inc(&word->high, pe));
    gshmem_int32_atomic_fetch_add(&word->first, -1, pe);
    gshmem_int32_atomic_fetch_add(&word->second, -2, pe);
    CHECK_OK(gshmem_uint64_atomic_xor(&word->bits, 1ull << (2 * me + t->number), pe));
    CHECK_OK(gshmem_uint32_atomic_or(&word->low_bits, 1u << (2 * me + t->number), pe));
    gshmem_uint32_atomic_fetch_xor(&word->high_bits, 1u << (2 * me + t->number), pe);
    CHECK_OK(gshmem_float_atomic_add(&word->real, 1, pe));
    gshmem_float_atomic_fetch_add(&word->other_real, 2, pe);
    CHECK_OK(gshmem_double_atomic_add(&word->twice, 0.5, pe));
    t->tokens += token - gshmem_uint64_atomic_swap(&word->token, token, pe);
    CHECK_OK(gshmem_uint64_atomic_set(&word->set, token, pe));
    swap_up(&word->swapped, pe);
    swap_up_half(&word->low_swapped, pe);
    swap_up_half(&word->high_swapped, pe);
    CHECK_OK(gshmem_uint32_atomic_and(&word->low_bits, ~(1u << (2 * me + t->number)), pe));
}

static void *update_all(void *argument)
{
    struct thread *t = argument;

    for (int i = 0; i < rounds; i++) {
        for (int pe = 0; pe < n; pe++)
            update(t, i, (pe + i + me) % n);
    }
    CHECK_OK(gshmem_quiet());
    return NULL;
}

static void check_updates(uint64_t tokens)
{
    const uint64_t times = (uint64_t)rounds * THREADS * (uint64_t)n, all = (1ull << THREADS * n) - 1;
    uint64_t mine = tokens, sum = 0;

    CHECK_EQ(word->sum, 3 * times);
    CHECK_EQ(word->ticket, times);
    CHECK_EQ(word->signal, times);
    CHECK_EQ(word->above, -5 * (long)times);
    CHECK_EQ(word->low, (uint32_t)times * 0x01000001u);
    CHECK_EQ(word->high, times);
    CHECK_EQ(word->first, -(int32_t)times);
    CHECK_EQ(word->second, -2 * (int32_t)times);
    CHECK_EQ(word->bits, rounds % 2 ? all : 0);
    CHECK_EQ(word->low_bits, 0);
    CHECK_EQ(word->high_bits, rounds % 2 ? (uint32_t)all : 0);
    CHECK_EQ(word->real, times);
    CHECK_EQ(word->other_real, 2 * times);
    CHECK_EQ(2 * word->twice, times);
    CHECK_EQ(word->swapped, times);
    CHECK_EQ(word->low_swapped, times);
    CHECK_EQ(word->high_swapped, times);
    CHECK(word->set % 1000003 < 17 * MOST_PES + THREADS);
    /* what was put in by all is what was taken out, and what is left on all */
    mine -= word->token;
    for (int pe = 0; pe < n; pe++)
        CHECK_OK(gshmem_uint64_atomic_add(&word->guarded, mine, pe));
    barrier();
    sum = word->guarded;
    CHECK_EQ(sum, 0);
}

/* ---- Data under signals, between all pairs ---- */

static void pass_data(void)
{
    static unsigned char from[MOST_PES][BYTES];

    for (int round = 1; round <= rounds; round++) {
        const size_t bytes = round % 4 == 0 ? BYTES : (size_t)round % 200;
        for (int pe = 0; pe < n; pe++) {
            CHECK_OK(gshmem_uint64_wait_until(&box[pe].taken, GSHMEM_CMP_GE, (uint64_t)round - 1));
            fill(from[pe], bytes, me, (unsigned)round);
            CHECK_OK(gshmem_putmem_signal_nbi(
                box[me].data, from[pe], bytes, &box[me].full, round % 2 ? (uint64_t)round : 1,
                round % 2 ? GSHMEM_SIGNAL_SET : GSHMEM_SIGNAL_ADD, pe));
        }
        for (int pe = 0; pe < n; pe++) {
            CHECK_EQ(gshmem_signal_wait_until(&box[pe].full, GSHMEM_CMP_GE, (uint64_t)round), round);
            CHECK_FILLED(box[pe].data, bytes, pe, (unsigned)round);
            /* the signal goes behind the atomic */
            CHECK_OK(gshmem_uint64_atomic_add(&box[me].taken, 1, pe));
        }
        CHECK_OK(gshmem_quiet());
    }
}

/* ---- Collectives, which find the object by its name on all hosts ---- */

enum { GIVEN = 5000 };

static unsigned char *given; /* by all, behind what this PE gives */

static void give_to_all(void)
{
    unsigned char *all = given + GIVEN;

    fill(given, GIVEN, me, 1);
    CHECK_OK(gshmem_fcollectmem(GSHMEM_TEAM_WORLD, all, given, GIVEN));
    for (int pe = 0; pe < n; pe++)
        CHECK_FILLED(all + (size_t)pe * GIVEN, GIVEN, pe, 1);
    CHECK_OK(gshmem_broadcastmem(GSHMEM_TEAM_WORLD, given, given, GIVEN, n - 1));
    CHECK_FILLED(given, GIVEN, n - 1, 1);
}

/* ---- A lock ---- */

static void take_turns(void)
{
    for (int i = 0; i < rounds; i++) {
        CHECK_OK(gshmem_set_lock(&word->lock));
        uint64_t value;
        CHECK_OK(gshmem_getmem(&value, &word->guarded, 8, 0));
        value++;
        CHECK_OK(gshmem_putmem(&word->guarded, &value, 8, 0));
        CHECK_OK(gshmem_clear_lock(&word->lock));
    }
    barrier();
    if (me == 0)
        CHECK_EQ(word->guarded, (uint64_t)rounds * (uint64_t)n);
    barrier();
    word->guarded = 0;
    barrier();
}

/* ---- */

static void *make(size_t bytes)
{
    void *at = gshmem_malloc_with_hints(bytes, GSHMEM_MALLOC_ATOMICS_REMOTE);

    CHECK(at);
    memset(at, 0, bytes);
    return at;
}

int main(int argc, char **argv)
{
    struct thread t[THREADS] = {{.number = 0}, {.number = 1}};
    pthread_t thread[THREADS];
    uint64_t tokens = 0;
    int provided;

    rounds = argc > 1 ? atoi(argv[1]) : 50;
    CHECK_OK(gshmem_init_thread(GSHMEM_THREAD_MULTIPLE, &provided));
    begin();
    CHECK(n <= MOST_PES);
    word = make(sizeof *word);
    box = make(MOST_PES * sizeof *box);
    given = make((size_t)(n + 1) * GIVEN);
    CHECK(gshmem_ptr(word, me) == word);
    barrier();
    give_to_all();
    take_turns();
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, update_all, &t[i]), 0);
    pass_data();
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
        tokens += t[i].tokens;
    }
    barrier();
    check_updates(tokens);
    barrier();
    CHECK_OK(gshmem_free(given));
    CHECK_OK(gshmem_free(box));
    CHECK_OK(gshmem_free(word));
    end();
    CHECK_OK(gshmem_finalize());
    return 0;
}
