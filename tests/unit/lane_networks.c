/* Two lanes of a PE (runtime/network/lanes.h), whose transports and commands are played here: how
 * they are opened, who makes progress on them and asks the bootstrap, and how they end. */
#define _GNU_SOURCE
#include "gshmem.h"

#include "../check.h"
#include "runtime/network/parts.h"

static gshmem_status_t played_choose(struct network *n);
#define network_choose(n) played_choose(n)
#include "runtime/network/life.c"
#undef network_choose

enum { LANES = 2, PES = 2 };

/* ---- The transports ---- */

static struct played {
    struct transport t;
    int asked;     /* how often busy was called */
    bool answered; /* its last answer */
    bool closed;
} played[LANES];

static struct transport below;
static int lanes_with_below = LANES;

static void played_begin(struct transport *t, const struct transport_config *config)
{
    (void)t, (void)config;
}

static gshmem_status_t played_post(struct transport *t, const struct transport_request *r)
{
    (void)t, (void)r;
    return GSHMEM_ERR_UNSUPPORTED;
}

static gshmem_status_t played_progress(struct transport *t, int *events)
{
    (void)t;
    *events = 0;
    return GSHMEM_OK;
}

static gshmem_status_t played_address(struct transport *t, void *address, size_t capacity,
                                      size_t *bytes)
{
    CHECK(capacity >= sizeof(int));
    memset(address, 7, sizeof(int));
    *(char *)address = (char)((struct played *)t - played);
    *bytes = sizeof(int);
    return GSHMEM_OK;
}

/* Until the other lane was asked, too. */
static int played_busy(struct transport *t)
{
    struct played *p = (struct played *)t;

    p->asked++;
    return p->answered = !played[p == &played[0]].asked;
}

static void played_close(struct transport *t)
{
    ((struct played *)t)->closed = true;
}

static const struct transport_ops played_ops = {.size = sizeof played_ops,
                                                .version = TRANSPORT_VERSION,
                                                .name = "played",
                                                .begin = played_begin,
                                                .post = played_post,
                                                .progress = played_progress,
                                                .address = played_address,
                                                .busy = played_busy,
                                                .close = played_close};

static gshmem_status_t played_choose(struct network *n)
{
    played[n->number] = (struct played){.t = {&played_ops}};
    n->remote = &played[n->number].t;
    n->config.below = n->number < lanes_with_below ? &below : NULL;
    return GSHMEM_OK;
}

/* ---- The bootstrap ---- */

static pthread_t asked_by;
static _Atomic int asked;

static gshmem_status_t played_fetch(struct bootstrap *b, int pe, void *blob, size_t capacity,
                                    size_t *bytes)
{
    (void)b, (void)blob, (void)capacity, (void)bytes;
    CHECK_EQ(pe, 1);
    asked_by = pthread_self();
    atomic_store(&asked, 1);
    return fail_silently(GSHMEM_ERR_TIMEOUT, "the launcher does not answer");
}

/* ---- The commands ---- */

static struct played_source {
    struct network_source source;
    struct network *lane;
    pthread_t thread; /* this test's: what other threads take is not counted */
    int taken;
    bool crosses;          /* a fence waits for another lane */
    bool has_command;      /* one that can be taken */
    _Atomic bool wants;    /* a command needs the address of PE 1 */
} source[LANES];

static bool source_take(struct network_source *s)
{
    struct played_source *p = (struct played_source *)s;

    s->restless = p->crosses;
    if (pthread_equal(p->thread, pthread_self())) /* no other thread writes it */
        p->taken++;
    if (atomic_load(&p->wants) && network_has_met(p->lane, 1))
        atomic_store(&p->wants, false);
    const bool took = p->has_command;
    p->has_command = false;
    return took;
}

static void source_nothing(struct network_source *s)
{
    (void)s;
}

static bool source_fall_asleep(struct network_source *s)
{
    return ((struct played_source *)s)->crosses;
}

static void serve(struct network *n)
{
    for (int i = 0; i < LANES; i++) {
        source[i] = (struct played_source){.source = {.take = source_take,
                                                      .publish = source_nothing,
                                                      .fall_asleep = source_fall_asleep,
                                                      .wake_up = source_nothing,
                                                      .raise = source_nothing,
                                                      .look_after = source_nothing},
                                           .lane = n->lane[i],
                                           .thread = pthread_self()};
        CHECK_OK(network_serve(n->lane[i], &source[i].source));
    }
}

/* ---- The tests ---- */

static gshmem_status_t open_lanes(struct job *j)
{
    unsigned char address[TRANSPORT_ADDRESS_MAX], key[X25519_BYTES];
    size_t bytes, lane_bytes;

    j->network = NULL;
    free(j->blobs->kept);
    return network_open(j, NULL, address, sizeof address, &bytes, &lane_bytes, key);
}

/* TCP for one lane and verbs for the other would be two ways to a PE, of which the caller knows
 * one. */
static void test_unequal(struct job *j)
{
    lanes_with_below = 1;
    CHECK_FAILS(open_lanes(j), GSHMEM_ERR_TRANSPORT,
                "GSHMEM_PROXIES=2: proxy 1 cannot have the transport of proxy 0");
    network_stop(j);
    lanes_with_below = LANES;
}

/* A fence that waits for another lane keeps its proxy going, and no thread that waits. */
static void test_restless(struct network *n)
{
    bool worked = false;

    mutex_take(&n->lane[1]->lock);
    source[1].crosses = true;
    mutex_give(&n->lane[1]->lock);
    for (int i = 0; i < 100; i++) {
        CHECK(!network_drive(n, NETWORK_FOR_REQUESTS));
        worked |= network_try_round(n->lane[1]);
        CHECK(network_round(n->lane[1]));
    }
    CHECK(!worked);
    mutex_take(&n->lane[1]->lock);
    source[1].crosses = false;
    mutex_give(&n->lane[1]->lock);
    CHECK(!network_round(n->lane[1]));
}

/* A thread that waits makes a round of another lane at each step while something is in flight there.
 * Otherwise, after some rounds in vain, no sooner than 50 us after the last one. */
static void test_further(struct network *n)
{
    enum { US = 1000, HOUR_S = 3600, VAIN = 64 };
    struct network *lane = n->lane[1];
    uint64_t now = clock_ns() + HOUR_S * UINT64_C(1000000000); /* long after its proxy's last round */

    for (int i = 0; i < VAIN; i++) /* a round is none if its proxy has the lock */
        network_drive_further(lane, now += 50 * US);
    source[1].taken = 0;
    while (!source[1].taken)
        network_drive_further(lane, now += 50 * US);
    for (int i = 0; i < 100; i++)
        network_drive_further(lane, now + 49 * US);
    CHECK_EQ(source[1].taken, 1);
    atomic_store(&source[1].source.pending, true);
    while (source[1].taken < 10)
        network_drive_further(lane, now);
    atomic_store(&source[1].source.pending, false);
    network_drive_further(lane, now);
    CHECK_EQ(source[1].taken, 10);
}

/* Two CPUs do for a thread of the program and a proxy, until a command comes to the other lane. */
static void test_shares(struct network *n)
{
    struct network *lane = n->lane[1];

    CHECK(!network_shares_cpu(n));
    CHECK(network_shares_cpu(lane)); /* its proxy would be the third */
    mutex_take(&lane->lock);
    source[1].has_command = true;
    mutex_give(&lane->lock);
    while (!network_shares_cpu(n)) /* its proxy may be the one that takes it */
        network_try_round(lane);
}

/* A launcher may be slow: a thread that is within a put does not ask it, but the proxy does, also
 * where it leaves the rounds to that thread. */
static void test_asking(struct network *n)
{
    for (int i = 0; i < 1000; i++)
        network_drive_on(n);
    atomic_store(&source[0].wants, true);
    while (!atomic_load(&asked))
        network_drive_on(n);
    CHECK(!pthread_equal(asked_by, pthread_self()));
    while (atomic_load(&source[0].wants))
        network_drive_on(n);
}

/* Each lane's last responses take their time beside those of the others. */
static void check_end(const char *what)
{
    for (int i = 0; i < LANES; i++) {
        if (!played[i].asked || played[i].answered)
            CHECK_FAIL("%s: lane %d was given up", what, i);
        played[i].asked = 0;
    }
}

int main(void)
{
    struct bootstrap_ops ops = {.fetch = played_fetch};
    struct bootstrap two = {.ops = &ops, .n_pes = PES, .n_hosts = 2};
    struct blobs blobs;
    struct job other;

    CHECK_EQ(setenv("GSHMEM_PROXIES", "2", 1), 0);
    CHECK_OK(gshmem_init());
    job->node->cpus = 2;
    CHECK_EQ(job->node->sharers, 1);
    memcpy(&other, job, sizeof other);
    blobs_open(&blobs, &two);
    other.blobs = &blobs;
    other.bootstrap = &two;
    test_unequal(&other);
    CHECK_OK(open_lanes(&other));
    CHECK_OK(network_start(&other));
    serve(other.network);
    test_shares(other.network);
    test_restless(other.network);
    test_further(other.network);
    test_asking(other.network);
    network_rest(&other);
    check_end("the end of the proxies");
    for (int i = 0; i < LANES; i++) { /* its thread has been joined */
        struct proxy *p = &other.network->lane[i]->proxy;
        close(p->wake_fd);
        atomic_store(&p->runs, false);
    }
    CHECK_OK(network_start(&other));
    network_stop(&other);
    check_end("the last responses");
    CHECK(played[0].closed && played[1].closed);
    blobs_close(&blobs);
    CHECK_OK(gshmem_finalize());
    return 0;
}
