#define _GNU_SOURCE
#include "small.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explore.h"
#include "fiber.h"
#include "gshmem.h"
#include "small_kernel.h"

#define KERNEL_LETTERS "PSFAQ"

enum { OPS_MOST = 8, CONSTANT = 4711, FIRST = 3, REST_NS = 1000 };

const char small_letters[] =
    "p put, s put with signal, f fence, q quiet, g get, a fetch-and-increment, l lock and unlock, "
    "t test_lock and unlock, u an update under the lock, b barrier, w wait for a signal; "
    "by a thread of a kernel, beside those: "
    "P put, S put with signal, F fence, A fetch-and-increment, Q quiet";

/* Symmetric. Each PE alone writes the other's data and signal. */
struct area {
    long lock;
    uint64_t guarded; /* of PE 1: counts sections under the lock */
    uint64_t counter; /* of PE 0 for the host, of the other PE for kernels */
    uint64_t signal;
    uint64_t data[OPS_MOST][2]; /* the same number twice */
    uint64_t constant[2];
    uint64_t got[2]; /* where a get stores */
};

/* An operation that stores into the other PE's memory. */
struct store {
    const uint64_t *at; /* there */
    uint64_t value;
    int epoch;           /* how many fences came before it */
    bool signals, quiet; /* quiet: it has been completed */
    bool of_kernel;
};

struct small {
    struct area *area;
    char ops[OPS_MOST + 1];
    uint64_t source[OPS_MOST][2];
    int stores, sections, barriers, increments;
    int epoch[2]; /* of the host and of the kernel */
    uint64_t signals;
    struct store store[2 * OPS_MOST];
    struct fiber *main, *kernel;
    bool begun, ended, kernel_ended;
    int holds;
    gshmem_status_t failed, raised;
    const char *call;
};

static struct small small[2];
static bool dies, kernels;

static struct small *other_than(const struct small *s)
{
    return &small[s == small];
}

static int number_of(const struct small *s)
{
    return (int)(s - small);
}

/* Whether the program may go on: a failure that no death explains ends the exploration. */
static bool is_good(struct small *s, const char *call, gshmem_status_t status)
{
    const char *text;

    status = status ? status : s->raised;
    s->call = call;
    if (!status)
        return true;
    gshmem_last_error(&text);
    if (!world.pe[1].dead)
        world_fail("PE %d: %s: %s, though no PE has died: %s", number_of(s), call,
                   gshmem_status_name(status), text);
    s->failed = status;
    return false;
}

static void small_raised(gshmem_status_t status, const char *text, void *context)
{
    (void)text;
    ((struct small *)context)->raised = status;
}

/* ---- What must be true ---- */

static bool is_there(const struct store *s)
{
    return s->signals ? s->at[0] >= s->value : s->at[0] == s->value && s->at[1] == s->value;
}

static void note_store(struct small *s, const uint64_t *at, uint64_t value, bool signals,
                       bool of_kernel)
{
    s->store[s->stores++] =
        (struct store){at, value, s->epoch[of_kernel], signals, false, of_kernel};
}

void small_check(void)
{
    for (int pe = 0; pe < 2; pe++) {
        const struct small *s = &small[pe];
        for (int i = 0; i < s->stores; i++) {
            const struct store *a = &s->store[i];
            if (is_there(a))
                continue;
            if (a->quiet && !world.pe[1].dead)
                world_fail("store %d of PE %d was complete, and is not there", i, pe);
            for (int k = i + 1; k < s->stores; k++) {
                const struct store *b = &s->store[k];
                if (is_there(b) && a->of_kernel == b->of_kernel &&
                    (b->epoch > a->epoch || (b->signals && k == i + 1)))
                    world_fail("store %d of PE %d is there before store %d", k, pe, i);
            }
        }
    }
    if (small[0].holds + small[1].holds > 1)
        world_fail("both PEs hold the lock");
}

/* So many of the stores; a quiet of the host covers those of kernels that came before it. */
static void completed(struct small *s, int stores, bool of_kernel)
{
    for (int i = 0; i < stores; i++)
        s->store[i].quiet |= !of_kernel || s->store[i].of_kernel;
    s->epoch[of_kernel]++;
}

/* ---- Operations ---- */

static bool do_put(struct small *s, bool signals)
{
    const int peer = !number_of(s), i = s->stores;
    struct area *there = other_than(s)->area;

    s->source[i][0] = s->source[i][1] = (uint64_t)i + 1;
    note_store(s, there->data[i], (uint64_t)i + 1, false, false);
    if (!signals)
        return is_good(s, "put", gshmem_putmem(s->area->data[i], s->source[i], 16, peer));
    note_store(s, &there->signal, ++s->signals, true, false);
    return is_good(s, "put_signal",
                   gshmem_putmem_signal(s->area->data[i], s->source[i], 16, &s->area->signal, 1,
                                        GSHMEM_SIGNAL_ADD, peer));
}

/* Of what was put there last, or of what never changes. */
static bool do_get(struct small *s)
{
    const struct store *last = NULL;
    uint64_t *from = s->area->constant;
    const bool quiet = s->stores == 0 || s->store[s->stores - 1].quiet;

    for (int i = 0; i < s->stores; i++) {
        if (!s->store[i].signals)
            last = &s->store[i];
    }
    if (last)
        from = s->area->data[last->value - 1];
    s->area->got[0] = s->area->got[1] = ~UINT64_C(0);
    if (!is_good(s, "get", gshmem_getmem(s->area->got, from, 16, !number_of(s))))
        return false;
    const uint64_t due = last ? last->value : CONSTANT;
    for (int i = 0; i < 2; i++) {
        const uint64_t got = s->area->got[i];
        if (got != due && (quiet || got != 0))
            world_fail("PE %d gets %llu, and not %llu", number_of(s), (unsigned long long)got,
                       (unsigned long long)due);
    }
    return true;
}

static bool note_number(struct small *s, int target, uint64_t number)
{
    static bool seen[2][2 * OPS_MOST];

    if (number - FIRST >= 2 * OPS_MOST || seen[target][number - FIRST])
        world_fail("PE %d: fetch_inc returns %llu", number_of(s), (unsigned long long)number);
    else
        seen[target][number - FIRST] = true;
    s->increments++;
    return true;
}

static bool do_atomic(struct small *s)
{
    const uint64_t number = gshmem_uint64_atomic_fetch_inc(&s->area->counter, 0);

    return is_good(s, "fetch_inc", GSHMEM_OK) && note_number(s, 0, number);
}

static bool do_update(struct small *s)
{
    gshmem_uint64_p(&s->area->guarded, small[1].area->guarded + 1, 1);
    if (!is_good(s, "p", GSHMEM_OK))
        return false;
    s->sections++;
    return true;
}

/* What the holder before has put is there. */
static void enter_section(struct small *s)
{
    const uint64_t count = small[1].area->guarded;
    const uint64_t due = (uint64_t)(small[0].sections + small[1].sections);

    s->holds++;
    if (count != due && !world.pe[1].dead)
        world_fail("PE %d: %llu updates of %llu are seen under the lock", number_of(s),
                   (unsigned long long)count, (unsigned long long)due);
    small_check();
}

static bool do_lock(struct small *s, char letter)
{
    const bool tests = letter == 't';
    const int taken = tests ? gshmem_test_lock(&s->area->lock) : 0;

    if (!is_good(s, tests ? "test_lock" : "set_lock",
                 taken < 0 ? gshmem_last_error(NULL)
                 : tests   ? GSHMEM_OK
                           : gshmem_set_lock(&s->area->lock)))
        return false;
    if (taken)
        return true;
    enter_section(s);
    if (letter == 'u' && !do_update(s))
        return false;
    s->holds--;
    return is_good(s, "clear_lock", gshmem_clear_lock(&s->area->lock));
}

static bool do_barrier(struct small *s)
{
    const int due = ++s->barriers;

    const int stores = s->stores;
    if (!is_good(s, "barrier", gshmem_barrier_all()))
        return false;
    completed(s, stores, false);
    if (other_than(s)->barriers < due)
        world_fail("PE %d leaves a barrier to which the other has not come", number_of(s));
    return true;
}

/* For a signal that the other sends: its data is there. */
static bool do_wait(struct small *s)
{
    const struct small *o = other_than(s);

    gshmem_signal_wait_until(&s->area->signal, GSHMEM_CMP_GE, 1);
    if (!is_good(s, "signal_wait_until", GSHMEM_OK))
        return false;
    for (int i = 0; i < o->stores && o->store[i].value != 1; i++)
        ;
    for (int i = 0; i < o->stores; i++) {
        if (o->store[i].signals && o->store[i].value == 1 && !is_there(&o->store[i - 1]))
            world_fail("PE %d has waited for a signal, and its data is not there", number_of(s));
    }
    return true;
}

static bool do_quiet(struct small *s)
{
    const int stores = s->stores;

    if (!is_good(s, "quiet", gshmem_quiet()))
        return false;
    completed(s, stores, false);
    return true;
}

static bool do_one(struct small *s, char letter)
{
    switch (letter) {
    case 'p':
    case 's':
        return do_put(s, letter == 's');
    case 'f':
        if (!is_good(s, "fence", gshmem_fence()))
            return false;
        s->epoch[0]++;
        return true;
    case 'q':
        return do_quiet(s);
    case 'g':
        return do_get(s);
    case 'a':
        return do_atomic(s);
    case 'l':
    case 't':
    case 'u':
        return do_lock(s, letter);
    case 'b':
        return do_barrier(s);
    default:
        return do_wait(s);
    }
}

/* ---- A thread of a kernel ---- */

static void kernel_put(struct small *s, bool signals)
{
    const int peer = !number_of(s), i = s->stores;
    struct area *there = other_than(s)->area;

    note_store(s, there->data[i], (uint64_t)i + 1, false, true);
    if (signals)
        note_store(s, &there->signal, ++s->signals, true, true);
    small_kernel_put(s->area->data[i], (uint64_t)i + 1, peer, signals ? &s->area->signal : NULL);
}

static bool kernel_one(struct small *s, char letter)
{
    const int stores = s->stores;
    uint64_t old;

    switch (letter) {
    case 'P':
    case 'S':
        kernel_put(s, letter == 'S');
        return true;
    case 'F':
        small_kernel_fence();
        s->epoch[1]++;
        return true;
    case 'A':
        return small_kernel_fetch_inc(&s->area->counter, !number_of(s), &old) &&
               note_number(s, !number_of(s), old);
    default:
        if (!small_kernel_quiet())
            return false;
        completed(s, stores, true);
        return true;
    }
}

static void *kernel_main(void *argument)
{
    struct small *s = argument;
    bool good = true;

    fiber_block(NEVER);
    for (const char *op = s->ops; *op && good; op++) {
        if (strchr(KERNEL_LETTERS, *op))
            good = kernel_one(s, *op);
    }
    if (!good && !world.pe[1].dead)
        world_fail("PE %d: a kernel has failed, though no PE has died", number_of(s));
    s->kernel_ended = true;
    return NULL;
}

/* ---- Programs ---- */

bool small_choose(const char *program)
{
    const char *dot = strchr(program, '.');
    size_t n[2];

    if (!dot)
        return false;
    n[0] = (size_t)(dot - program);
    n[1] = strlen(dot + 1);
    dies = n[1] && dot[n[1]] == 'x';
    n[1] -= dies;
    for (int pe = 0; pe < 2; pe++) {
        const char *ops = pe ? dot + 1 : program;
        if (n[pe] > OPS_MOST || strspn(ops, "psfqgaltubw" KERNEL_LETTERS) < n[pe] ||
            (!kernels && strcspn(ops, KERNEL_LETTERS) < n[pe]))
            return false;
        memcpy(small[pe].ops, ops, n[pe]);
        small[pe].ops[n[pe]] = 0;
    }
    return true;
}

bool small_dies(void)
{
    return dies;
}

static bool connect_both(struct small *s)
{
    gshmem_init_attr_t attr = {.thread_level = GSHMEM_THREAD_MULTIPLE};

    if (kernels)
        small_kernel_begin();
    if (!is_good(s, "init", gshmem_init_attr(&attr)))
        return false;
    s->area = gshmem_calloc(1, sizeof *s->area);
    if (!is_good(s, "calloc", s->area ? GSHMEM_OK : gshmem_last_error(NULL)))
        return false;
    s->area->constant[0] = s->area->constant[1] = CONSTANT;
    if (!is_good(s, "barrier", gshmem_barrier_all()))
        return false;
    gshmem_uint64_atomic_fetch_add(&s->area->counter, FIRST, !number_of(s));
    return is_good(s, "fetch_add", GSHMEM_OK) && is_good(s, "barrier", gshmem_barrier_all());
}

static void *small_main(void *argument)
{
    struct small *s = argument;

    s->main = fiber_current;
    gshmem_set_error_handler(small_raised, s);
    if (!connect_both(s))
        return NULL;
    if (kernels)
        s->kernel = fiber_new(s->main->pe, s->main->now, kernel_main, s);
    s->begun = true;
    fiber_block(NEVER);
    bool good = true;
    for (const char *op = s->ops; *op && good; op++) {
        if (!strchr(KERNEL_LETTERS, *op))
            good = do_one(s, *op);
    }
    if (good)
        do_quiet(s);
    s->ended = true;
    return NULL;
}

void small_start(bool with_kernels)
{
    kernels = with_kernels;
    for (int pe = 0; pe < 2; pe++)
        fiber_new(&world.pe[pe], REST_NS, small_main, &small[pe]);
}

bool small_has_started(void)
{
    for (int pe = 0; pe < 2; pe++) {
        explored_memory.at[pe] = (uintptr_t)small[pe].area;
        explored_memory.bytes = sizeof(struct area);
    }
    return small[0].begun && small[1].begun;
}

void small_begin(void)
{
    for (int pe = 0; pe < 2; pe++) {
        fiber_wake(small[pe].main);
        if (strpbrk(small[pe].ops, KERNEL_LETTERS))
            fiber_wake(small[pe].kernel);
        else
            small[pe].kernel_ended = true;
    }
}

bool small_has_ended(void)
{
    const bool dead = world.pe[1].dead;

    if (!small[0].ended || !small[0].kernel_ended ||
        (!(small[1].ended && small[1].kernel_ended) && !dead))
        return false;
    const int increments = small[0].increments + small[1].increments;
    const uint64_t counted = small[0].area->counter + small[1].area->counter - 2 * FIRST;
    const uint64_t sections = small[1].area->guarded;
    if (!dead && counted != (uint64_t)increments)
        world_fail("%d increments have made %llu", increments, (unsigned long long)counted);
    if (!dead && sections != (uint64_t)(small[0].sections + small[1].sections))
        world_fail("%d sections under the lock have made %llu",
                   small[0].sections + small[1].sections, (unsigned long long)sections);
    return true;
}
