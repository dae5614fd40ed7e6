/* Signals and single elements by themselves: none is lost, none comes twice, those with a fence between
 * them come in order, and a count of puts with signals says that all their data is there.
 *
 *  - In order: sets, and p's, of growing values with fences between them are never seen to shrink.
 *  - Updates before a fence are there when what comes after it is seen.
 *  - Without a fence a signal may overtake a put before it: after a quiet both are there, no more.
 *  - Adds from all PEs, by all ways, make the exact sum.
 *  - Puts with add-signals from many blocks: when the count is complete, so is the data. */
#include "litmus.h"

/* ---- In order --------------------------------------------------------------------------------- */

struct steps {
    uint64_t *signal, *word; /* symmetric */
    int to;
};

__global__ void in_order(struct steps s, uint64_t seed, int rounds, struct found *found)
{
    if (blockIdx.x == 0) {
        for (int r = 1; r <= rounds; r++) {
            EXPECT(found, gshmem_signal_set(s.signal, r, s.to), GSHMEM_OK);
            EXPECT(found, gshmem_uint64_p(s.word, r, s.to), GSHMEM_OK);
            EXPECT(found, gshmem_fence(), GSHMEM_OK);
            litmus_delay(seed, r);
        }
        return;
    }
    /* The reader takes each value it happens to see; the last one has to come. */
    for (uint64_t signal = 0, word = 0; signal < (uint64_t)rounds || word < (uint64_t)rounds;) {
        uint64_t signal_now = gshmem_signal_wait_until(s.signal, GSHMEM_CMP_GE, 0);
        uint64_t word_now = gshmem_signal_wait_until(s.word, GSHMEM_CMP_GE, 0);

        if (signal_now < signal)
            EXPECT(found, signal_now, signal);
        if (word_now < word)
            EXPECT(found, word_now, word);
        if (word_now + 1 < signal_now) /* that of the round before came first */
            EXPECT(found, word_now, signal_now);
        if (signal_now == signal && word_now == word)
            __nanosleep(100);
        signal = signal_now;
        word = word_now;
    }
}

static void test_in_order(const struct litmus *l)
{
    struct steps s;

    s.signal = symmetric_array<uint64_t>(1);
    s.word = symmetric_array<uint64_t>(1);
    s.to = (gshmem_my_pe() + 1) % gshmem_n_pes();
    in_order<<<2, 1>>>(s, l->seed, l->rounds, l->found);
    litmus_check(l, "sets and p's in order");
    CHECK_OK(gshmem_free(s.signal));
    CHECK_OK(gshmem_free(s.word));
}

/* ---- Updates, and what comes after them ------------------------------------------------------- */

#define UPDATES_WORDS 256u /* more than travels together with updates */

/* What updates, owners carry out where NICs must not; what follows is stored by another way, and could be
 * there first. */
__global__ void updates(uint64_t *count, uint64_t *sum, uint64_t *word, uint64_t *draft, int to, uint64_t seed,
                        int rounds, struct found *found)
{
    if (blockIdx.x == 0) {
        for (int r = 1; r <= rounds; r++) {
            EXPECT(found, gshmem_uint64_atomic_add(count, 1, to), GSHMEM_OK);
            EXPECT(found, gshmem_signal_add(sum, 1, to), GSHMEM_OK);
            EXPECT(found, gshmem_fence(), GSHMEM_OK);
            draft[UPDATES_WORDS - 1] = r;
            EXPECT(found, gshmem_putmem(word + 1 - UPDATES_WORDS, draft, UPDATES_WORDS * sizeof *draft, to),
                   GSHMEM_OK);
            litmus_delay(seed, r);
        }
        return;
    }
    for (uint64_t seen = 0; seen < (uint64_t)rounds;) {
        uint64_t now = gshmem_signal_wait_until(word, GSHMEM_CMP_GT, seen);
        uint64_t count_now = gshmem_signal_wait_until(count, GSHMEM_CMP_GE, 0);
        uint64_t sum_now = gshmem_signal_wait_until(sum, GSHMEM_CMP_GE, 0);

        if (count_now < now)
            EXPECT(found, count_now, now);
        if (sum_now < now)
            EXPECT(found, sum_now, now);
        seen = now;
    }
}

static void test_updates(const struct litmus *l)
{
    uint64_t *words = symmetric_array<uint64_t>(2 + UPDATES_WORDS);
    uint64_t *draft = shared_array<uint64_t>(UPDATES_WORDS);

    updates<<<2, 1>>>(words, words + 1, words + 1 + UPDATES_WORDS, draft,
                      (gshmem_my_pe() + 1) % gshmem_n_pes(), l->seed, l->rounds, l->found);
    litmus_check(l, "updates, fence, put");
    CHECK_OK(gshmem_free(words));
    CHECK_CUDA(cudaFree(draft));
}

/* ---- Overtaking ------------------------------------------------------------------------------- */

/* Nothing orders a signal after the put before it; but a quiet completes both. A round's own word and
 * flag are looked at by the writer, with gets that come after the quiet. */
__global__ void overtake(uint64_t *words, uint64_t *flags, uint64_t *draft, int to, uint64_t seed,
                         int rounds, struct found *found)
{
    const int many = 16;

    for (int r = 0; r + many <= rounds; r += many) {
        for (int i = r; i < r + many; i++) {
            draft[i] = mixed2(seed, i);
            EXPECT(found, gshmem_putmem_nbi(&words[i], &draft[i], sizeof *words, to), GSHMEM_OK);
            EXPECT(found, gshmem_signal_set(&flags[i], i + 1, to), GSHMEM_OK);
        }
        EXPECT(found, gshmem_quiet(), GSHMEM_OK);
        for (int i = r; i < r + many; i++) {
            EXPECT(found, gshmem_uint64_g(&words[i], to), mixed2(seed, i));
            EXPECT(found, gshmem_uint64_g(&flags[i], to), i + 1);
        }
    }
}

static void test_overtake(const struct litmus *l)
{
    uint64_t *words = symmetric_array<uint64_t>(l->rounds), *flags = symmetric_array<uint64_t>(l->rounds);
    uint64_t *draft = shared_array<uint64_t>(l->rounds);

    overtake<<<1, 1>>>(words, flags, draft, (gshmem_my_pe() + 1) % gshmem_n_pes(), l->seed,
                       l->rounds, l->found);
    litmus_check(l, "put_nbi and signal, then quiet");
    CHECK_OK(gshmem_free(words));
    CHECK_OK(gshmem_free(flags));
    CHECK_CUDA(cudaFree(draft));
}

/* ---- Exact sums ------------------------------------------------------------------------------- */

/* Every thread adds to every PE's signal, with and without data, with and without waiting. */
__global__ void add(uint64_t *start, uint64_t *sum, uint64_t *data, const uint64_t *source, uint64_t seed,
                    int rounds, struct found *found)
{
    const int thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    gshmem_status_t status;

    litmus_start(start, found);
    for (int r = thread; r < rounds; r += threads) {
        int pe = r % gshmem_n_pes(), way = (int)(mixed2(seed, r) % 3);
        if (way == 0)
            status = gshmem_signal_add(sum, r, pe);
        else if (way == 1)
            status = gshmem_putmem_signal(data, source, sizeof *data, sum, r, GSHMEM_SIGNAL_ADD, pe);
        else
            status = gshmem_putmem_signal_nbi(data, source, sizeof *data, sum, r, GSHMEM_SIGNAL_ADD,
                                              pe);
        EXPECT(found, status, GSHMEM_OK);
    }
    EXPECT(found, gshmem_quiet(), GSHMEM_OK);
}

static void test_add(const struct litmus *l)
{
    uint64_t *sum = symmetric_array<uint64_t>(1), *data = symmetric_array<uint64_t>(1);
    uint64_t *start = symmetric_array<uint64_t>(1);
    uint64_t *source = shared_array<uint64_t>(1), expected = 0;

    for (int r = gshmem_my_pe(); r < l->rounds; r += gshmem_n_pes())
        expected += (uint64_t)r * gshmem_n_pes();
    add<<<4, 16>>>(start, sum, data, source, l->seed, l->rounds, l->found);
    litmus_check(l, "adds to signals");
    EXPECT(l->found, value_at(sum), expected);
    litmus_check(l, "the sum of adds to signals");
    CHECK_OK(gshmem_free(start));
    CHECK_OK(gshmem_free(sum));
    CHECK_OK(gshmem_free(data));
    CHECK_CUDA(cudaFree(source));
}

/* ---- Counts that stand for data --------------------------------------------------------------- */

#define SENDERS 4u  /* blocks */
#define TURNS   8u  /* rounds in flight */
#define PIECE   96u /* bytes at most, of one sender in one round */

/* `counted`: a counter of bytes, and else a signal that each put adds 1 to. */
struct count {
    char *box;       /* symmetric: [TURNS][SENDERS] of PIECE */
    char *draft;     /* this PE's own, the same */
    uint64_t *count; /* symmetric: [TURNS], more with each round */
    uint64_t *taken; /* symmetric */
    int to, from;
};

static __device__ size_t piece_bytes(uint64_t seed, int r, unsigned sender)
{
    return mixed2(seed + sender, r) % (PIECE + 1);
}

static __device__ char piece_byte(uint64_t seed, int r, unsigned sender, size_t i)
{
    return (char)(mixed2(seed + sender, r) / 256 + i);
}

template <bool counted>
static __device__ gshmem_status_t count_put(char *to, const char *from, size_t bytes,
                                            uint64_t *count, int pe)
{
    return counted ? gshmem_putmem_signal_counted_nbi(to, from, bytes, count, pe)
                   : gshmem_putmem_signal_nbi(to, from, bytes, count, 1, GSHMEM_SIGNAL_ADD, pe);
}

template <bool counted> static __device__ void count_send(struct count c, uint64_t seed, int rounds, unsigned sender,
                                  struct found *found)
{
    for (int r = 1; r <= rounds; r++) {
        size_t at = (r % TURNS * SENDERS + sender) * PIECE, bytes = piece_bytes(seed, r, sender);

        if (r > (int)TURNS)
            gshmem_signal_wait_until(c.taken, GSHMEM_CMP_GE, r - TURNS);
        for (size_t i = 0; i < bytes; i++)
            c.draft[at + i] = piece_byte(seed, r, sender, i);
        litmus_delay(seed + sender, r);
        EXPECT(found,
               count_put<counted>(c.box + at, c.draft + at, bytes, c.count + r % TURNS, c.to),
               GSHMEM_OK);
        if (r % TURNS == 0)
            EXPECT(found, gshmem_quiet(), GSHMEM_OK);
    }
}

template <bool counted>
static __device__ void count_receive(struct count c, uint64_t seed, int rounds, struct found *found)
{
    uint64_t bytes[TURNS] = {};

    for (int r = 1; r <= rounds; r++) {
        uint64_t complete = (uint64_t)((r - 1) / (int)TURNS + 1) * SENDERS; /* of this turn */

        for (unsigned sender = 0; sender < SENDERS; sender++)
            bytes[r % TURNS] += piece_bytes(seed, r, sender);
        if (counted)
            gshmem_signal_counted_wait_until(c.count + r % TURNS, bytes[r % TURNS]);
        else
            EXPECT(found, gshmem_signal_wait_until(c.count + r % TURNS, GSHMEM_CMP_GE, complete),
                   complete);
        for (unsigned sender = 0; sender < SENDERS; sender++) {
            size_t at = (r % TURNS * SENDERS + sender) * PIECE;
            for (size_t i = 0; i < piece_bytes(seed, r, sender); i++)
                EXPECT(found, c.box[at + i], piece_byte(seed, r, sender, i));
        }
        EXPECT(found, gshmem_signal_set(c.taken, r, c.from), GSHMEM_OK);
    }
}

template <bool counted>
__global__ void count(struct count c, uint64_t seed, int rounds, struct found *found)
{
    if (blockIdx.x < SENDERS)
        count_send<counted>(c, seed, rounds, blockIdx.x, found);
    else
        count_receive<counted>(c, seed, rounds, found);
}

static void test_count(const struct litmus *l, bool counted)
{
    int me = gshmem_my_pe(), n = gshmem_n_pes();
    struct count c;

    c.box = symmetric_array<char>(TURNS * SENDERS * PIECE);
    c.draft = shared_array<char>(TURNS * SENDERS * PIECE);
    c.count = symmetric_array<uint64_t>(TURNS);
    c.taken = symmetric_array<uint64_t>(1);
    c.to = (me + 1) % n;
    c.from = (me + n - 1) % n;
    if (counted)
        count<true><<<SENDERS + 1, 1>>>(c, l->seed, l->rounds, l->found);
    else
        count<false><<<SENDERS + 1, 1>>>(c, l->seed, l->rounds, l->found);
    litmus_check(l, counted ? "counted puts" : "counts of puts with signals");
    CHECK_OK(gshmem_free(c.box));
    CHECK_OK(gshmem_free(c.count));
    CHECK_OK(gshmem_free(c.taken));
    CHECK_CUDA(cudaFree(c.draft));
}

int main(int argc, char **argv)
{
    struct litmus l = litmus_begin(argc, argv);

    test_in_order(&l);
    test_updates(&l);
    test_overtake(&l);
    test_add(&l);
    test_count(&l, false);
    test_count(&l, true);
    litmus_end(&l);
    return 0;
}
