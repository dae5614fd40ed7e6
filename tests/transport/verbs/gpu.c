/* Memory of GPUs over verbs: two PEs in one process, as gpu_pes.h has them. What the CPU touches of such memory
 * faults, so that all of it has to go by registrations or the device's copies.
 *
 *     unit-transport-verbs-gpu MODULE */
#include "gpu_pes.h"

#include <stdlib.h>
#include <time.h>

/* ---- Updates ---- */

enum { UPDATES = 2 };

static struct {
    struct device_update update;
    int rounds; /* until it is made; 0: there is none */
} late[UPDATES];
static int updates, forgotten;

/* What the library's kernel would do, which is there only where it was built with nvcc; it takes its time. */
static gshmem_status_t start_update(struct device *d, const struct device_update *u, uint64_t *ticket)
{
    (void)d;
    *ticket = 0;
    for (int i = 0; i < UPDATES && !*ticket && rand() % 4; i++) {
        if (late[i].rounds)
            continue;
        late[i].update = *u;
        late[i].rounds = 1 + rand() % 30;
        *ticket = (uint64_t)i + 1;
    }
    return GSHMEM_OK;
}

static bool end_update(struct device *d, uint64_t ticket, uint64_t *old, gshmem_status_t *status)
{
    (void)d;
    CHECK(late[ticket - 1].rounds > 0);
    if (--late[ticket - 1].rounds)
        return false;
    *old = update_word(&late[ticket - 1].update);
    *status = GSHMEM_OK;
    updates++;
    return true;
}

static void forget_update(struct device *d, uint64_t ticket)
{
    (void)d;
    late[ticket - 1].rounds = 0;
    forgotten++;
}

/* For the transport below. */
static gshmem_status_t update_at_once(struct device *d, const struct device_update *u, uint64_t *old)
{
    (void)d;
    *old = update_word(u);
    return GSHMEM_OK;
}

static int disturbances;

/* ---- Tests ---- */

/* From and to memory of all kinds, there and back. */
static void sizes(void)
{
    static const uint64_t all[] = {1, 8, 128, 129, 192, 4096, 4097, 100003, 1 << 20};
    static char here[1 << 20], back[1 << 20];

    for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++) {
        for (int way = 0; way < 8; way++) {
            const int to = way % 2 ? GPU : HOST;
            char *local[] = {at_of(0, HOST, 64), at_of(0, GPU, (16 << 20) - 100), pe[0].own + 5, here};
            char *from = local[way / 2];
            fill(back, all[i], i * 8 + (unsigned)way);
            copy(from, back, all[i]);
            post((struct transport_request){.kind = TRANSPORT_PUT, .segment = to, .local = from,
                                            .offset = 33 + i, .bytes = all[i]});
            settle();
            memset(back, 0, all[i]);
            copy(back, at_of(1, to, 33 + i), all[i]);
            fill(here, all[i], i * 8 + (unsigned)way);
            CHECK(memcmp(here, back, all[i]) == 0);
            memset(back, 0, all[i]);
            copy(from, back, all[i]);
            post((struct transport_request){.kind = TRANSPORT_GET, .segment = to, .local = from,
                                            .offset = 33 + i, .bytes = all[i]});
            settle();
            copy(back, from, all[i]);
            fill(here, all[i], i * 8 + (unsigned)way);
            CHECK(memcmp(here, back, all[i]) == 0);
        }
    }
}

/* A kernel that waits for gets sees what they have brought to its GPU's memory, also if many end at one time. */
static void gets_are_seen(void)
{
    enum { GETS = 20, BYTES = 3000 };
    static char data[GETS * BYTES], seen[GETS * BYTES];
    char *to = at_of(0, GPU, 1 << 20);

    for (unsigned round = 0; round < 20; round++) {
        const unsigned gets = round % 2 ? GETS : 1;
        fill(data, sizeof data, round);
        copy(at_of(1, GPU, 8192), data, sizeof data);
        for (unsigned i = 0; i < gets; i++)
            post((struct transport_request){.kind = TRANSPORT_GET, .segment = GPU, .local = to + i * BYTES,
                                            .offset = 8192 + i * BYTES, .bytes = BYTES});
        settle();
        look(seen, to, gets * BYTES);
        CHECK(memcmp(seen, data, gets * BYTES) == 0);
    }
}

/* A flag, set or added to, is not seen before the data in GPU memory. */
static void flags(int op, int segment)
{
    enum { ROUNDS = 30, BYTES = 9000 };
    static char data[BYTES], found[BYTES];
    const uint64_t at = segment == GPU ? 20 << 20 : 8;
    uint64_t before, flag;

    copy(&before, at_of(1, segment, at), 8);
    for (unsigned round = 1; round <= ROUNDS; round++) {
        const uint64_t bytes = round % 3 == 0 ? BYTES : round % 3 == 1 ? 8 : 1000;
        fill(data, bytes, round * 3 + (unsigned)op);
        copy(at_of(0, GPU, 4096), data, bytes);
        post((struct transport_request){.kind = TRANSPORT_PUT, .segment = GPU,
                                        .local = at_of(0, GPU, 4096), .offset = 8192, .bytes = bytes,
                                        .signal_op = op, .signal_segment = segment, .signal_offset = at,
                                        .signal_value = op == GSHMEM_SIGNAL_SET ? before + round : 1});
        do {
            drive();
            copy(&flag, at_of(1, segment, at), 8);
        } while (flag != before + round);
        copy(found, at_of(1, GPU, 8192), bytes);
        CHECK(memcmp(found, data, bytes) == 0);
        settle();
    }
}

static void atomics(void)
{
    uint64_t old = 99, value = 40;
    const int before = updates;

    copy(at_of(1, GPU, 64), &value, 8);
    for (int i = 0; i < 2; i++) {
        post((struct transport_request){.kind = TRANSPORT_ATOMIC, .segment = GPU, .offset = 64,
                                        .amo = GSHMEM_AMO_ADD, .type = GSHMEM_TYPE_UINT64,
                                        .operand = 2, .old = i ? &old : NULL});
        settle();
    }
    CHECK_EQ(old, 42);
    copy(&value, at_of(1, GPU, 64), 8);
    CHECK_EQ(value, 44);
    CHECK_EQ(updates - before, 2);
    /* and a put behind one, which goes to the owner as a message */
    post((struct transport_request){.kind = TRANSPORT_ATOMIC, .segment = GPU, .offset = 64,
                                    .amo = GSHMEM_AMO_ADD, .type = GSHMEM_TYPE_UINT64, .operand = 2});
    old = 7;
    post((struct transport_request){.kind = TRANSPORT_PUT, .segment = GPU, .offset = 64, .local = &old,
                                    .bytes = 8});
    settle();
    copy(&value, at_of(1, GPU, 64), 8);
    CHECK_EQ(value, 7);
}

/* The heap grows under what has been registered, shrinks, and grows again with other memory. */
static void growth(void)
{
    static char data[3 << 20], found[3 << 20];
    const uint64_t far = 47 << 20; /* in the piece to come, across two chunks */

    for (unsigned round = 0; round < 3; round++) {
        for (int i = 0; i < PES; i++)
            grow(&pe[i], 64 << 20);
        fill(data, sizeof data, round);
        post((struct transport_request){.kind = TRANSPORT_PUT, .segment = GPU, .local = data,
                                        .offset = far, .bytes = sizeof data});
        settle();
        memset(found, 0, sizeof found);
        copy(found, at_of(1, GPU, far), sizeof found);
        CHECK(memcmp(found, data, sizeof data) == 0);
        const int registered = fake.registered;
        for (int i = 0; i < PES; i++) {
            gshmem_transport.forget(pe[i].t, GPU, (31 << 20) + 5, (33 << 20) - 5);
            CHECK_EQ(device->ops->heap_shrink(device, &pe[i].heap, 32 << 20), 32 << 20);
            pe[i].there = 32 << 20;
        }
        CHECK(stages || fake.registered < registered);
    }
}

static void all(enum transport_way way, enum transport_way of_other)
{
    begin_both(way, of_other);
    stages = ((struct verbs *)pe[0].t)->gpu_below || ((struct verbs *)pe[1].t)->gpu_below;
    sizes();
    for (int segment = GPU; segment <= COUNTERS; segment++) {
        flags(GSHMEM_SIGNAL_SET, segment);
        flags(GSHMEM_SIGNAL_ADD, segment);
    }
    atomics();
    growth();
    CHECK_EQ(pe[0].passed_down, 0);
}

/* ---- Through pinned buffers, while paths break ---- */

enum { STEPS = 240, SOURCES = 12, AREA = 3 << 20, PUT_MOST = 1 << 20, GET_MOST = 1 << 16 };
enum { GPU_AREA = 5 << 20, GPU_SOURCES = 16 << 20, GPU_LANDINGS = 32 << 20 }; /* in the heap */

static char model[COUNTERS][AREA]; /* what the other's memory is to be like */
static char *host_sources, *host_landings, *data;
static struct {
    char *at;
    uint64_t bytes;
    char expected[GET_MOST];
} landing[STEPS];

static struct {
    uint64_t old, expected;
} fetched[STEPS];

static uint64_t area_of(int segment)
{
    return segment == GPU ? GPU_AREA : 0;
}

static void draw_get(int i, int segment, uint64_t at, struct transport_request *r)
{
    r->kind = TRANSPORT_GET;
    r->local = landing[i].at = rand() % 2 ? at_of(0, GPU, GPU_LANDINGS + (uint64_t)i * GET_MOST)
                                          : host_landings + (uint64_t)i * GET_MOST;
    landing[i].bytes = r->bytes;
    memcpy(landing[i].expected, model[segment] + at, r->bytes);
}

static void draw_put(int i, int segment, uint64_t at, struct transport_request *r)
{
    const uint64_t source = (uint64_t)(i % SOURCES) * PUT_MOST;

    r->local = rand() % 2 ? at_of(0, GPU, GPU_SOURCES + source) : host_sources + source;
    fill(data, r->bytes, (unsigned)i * 7);
    copy(r->local, data, r->bytes);
    memcpy(model[segment] + at, data, r->bytes);
    if (rand() % 2) {
        const int of = rand() % 2 ? GPU : HOST;
        uint64_t value = (uint64_t)i + 1;
        *r = (struct transport_request){.kind = r->kind,
                                        .segment = r->segment,
                                        .local = r->local,
                                        .offset = r->offset,
                                        .bytes = r->bytes,
                                        .signal_op =
                                            rand() % 2 ? GSHMEM_SIGNAL_ADD : GSHMEM_SIGNAL_SET,
                                        .signal_segment = of,
                                        .signal_offset = area_of(of) + 8,
                                        .signal_value = value};
        uint64_t before;
        memcpy(&before, model[of] + 8, 8);
        value += r->signal_op == GSHMEM_SIGNAL_ADD ? before : 0;
        memcpy(model[of] + 8, &value, 8);
    }
}

static uint64_t *model_word(int segment, int which)
{
    return (uint64_t *)(void *)(model[segment] + 16 + 8 * which);
}

/* Either one that wants the old value, or several that do not, and may travel together. */
static void draw_updates(int i, int segment)
{
    const bool fetches = rand() % 2;

    for (int n = fetches ? 1 : 1 + rand() % 4; n; n--) {
        const int which = rand() % 4;
        const uint64_t operand = (uint64_t)rand();
        fetched[i].expected = fetches ? *model_word(segment, which) : 0;
        *model_word(segment, which) += operand;
        post((struct transport_request){.kind = TRANSPORT_ATOMIC,
                                        .flags = TRANSPORT_LOOSE | (n > 1 ? TRANSPORT_MORE : 0),
                                        .epoch = (uint32_t)i,
                                        .segment = segment,
                                        .offset = area_of(segment) + 16 + 8 * (uint64_t)which,
                                        .amo = GSHMEM_AMO_ADD,
                                        .type = GSHMEM_TYPE_UINT64,
                                        .operand = operand,
                                        .old = fetches ? &fetched[i].old : NULL});
    }
}

/* Updates; or puts and gets between memory of both kinds, anywhere: their first 64 bytes are for updates and
 * signals. */
static void draw(int i)
{
    static const uint64_t sizes[] = {1, 8, 100, 192, 193, 4096, 4097, 60000, 300000, PUT_MOST};
    const int segment = rand() % 2 ? GPU : HOST;
    const bool puts = rand() % 3;
    struct transport_request r = {.kind = TRANSPORT_PUT, .segment = segment,
                                  .bytes = sizes[rand() % (puts ? 10 : 8)]};
    const uint64_t at = 64 + (uint64_t)rand() % (AREA - r.bytes - 64);

    r.offset = area_of(segment) + at;
    if (i % SOURCES == 0)
        settle(); /* sources are free again */
    if (rand() % 4 == 0) {
        draw_updates(i, segment);
        return;
    }
    (puts ? draw_put : draw_get)(i, segment, at, &r);
    r.flags = (rand() % 2 ? TRANSPORT_MORE : 0) | (rand() % 2 ? TRANSPORT_LOOSE : 0);
    r.epoch = (uint32_t)i; /* behind a fence all the same */
    post(r);
}

static void disturb(int devices)
{
    static int away = -1;

    if (rand() % 10 == 0)
        fake_fail(1 + rand() % 6, IBV_WC_RETRY_EXC_ERR);
    if (rand() % 20 == 0) {
        disturbances++;
        if (away >= 0 && away < devices)
            fake_port(away, true);
        away = away >= 0 ? -1 : rand() % devices;
        if (away >= 0)
            fake_port(away, false);
    }
    for (int i = 0; i < PES; i++)
        watch_poll((struct verbs *)pe[i].t);
}

static void check_all(unsigned seed)
{
    for (int segment = HOST; segment <= GPU; segment++) {
        copy(data, at_of(1, segment, area_of(segment)), AREA);
        for (int i = 0; i < AREA; i++) {
            if (data[i] != model[segment][i])
                CHECK_FAIL("seed %u: byte %d of segment %d is %d, not %d", seed, i, segment, data[i],
                           model[segment][i]);
        }
    }
    for (int i = 0; i < STEPS; i++) {
        if (fetched[i].old != fetched[i].expected)
            CHECK_FAIL("seed %u: request %d found %llu, not %llu", seed, i, (unsigned long long)fetched[i].old,
                       (unsigned long long)fetched[i].expected);
        if (!landing[i].at)
            continue;
        copy(data, landing[i].at, landing[i].bytes);
        if (memcmp(data, landing[i].expected, landing[i].bytes) != 0)
            CHECK_FAIL("seed %u: request %d got something else", seed, i);
    }
}

static uint64_t pins_most; /* of the CPU's memory */

/* Requests in order against a model: none is lost, none overtakes another, whatever paths do. */
static void nothing_is_lost(unsigned seed, int devices, bool breaks, enum transport_way way,
                            enum transport_way of_other)
{
    fake_begin(seed);
    fake.devices = devices;
    fake.loses_answers = seed % 2;
    fake.peermem = 1;
    fake.pins_most = pins_most;
    begin_both(way, of_other);
    for (int i = 0; i < PES; i++)
        grow(&pe[i], 64 << 20);
    srand(seed);
    host_sources = malloc(SOURCES * PUT_MOST);
    host_landings = malloc(STEPS * GET_MOST);
    data = calloc(1, AREA);
    memset(model, 0, sizeof model);
    memset(landing, 0, sizeof landing);
    memset(fetched, 0, sizeof fetched);
    copy(at_of(1, GPU, GPU_AREA), data, AREA);
    for (int i = 0; i < STEPS; i++) {
        draw(i);
        if (breaks)
            disturb(devices);
        for (int k = rand() % 6; k; k--)
            drive();
    }
    settle();
    check_all(seed);
    CHECK(breaks || (pe[0].passed_down > 0) == (pins_most > 0));
    end();
    free(host_sources);
    free(host_landings);
    free(data);
}

int main(int argc, char **argv)
{
    CHECK_EQ(argc, 2);
    open_device(argv[1]);
    ops.update = update_at_once;
    ops.update_start = start_update;
    ops.update_done = end_update;
    ops.update_forget = forget_update;

    fake_begin(1);
    all(TRANSPORT_BY_DMA_BUF, TRANSPORT_BY_DMA_BUF);
    CHECK(fake.dma_bufs > 0 && fake.peermems == 0);
    end();

    fake_begin(2);
    fake.peermem = 1;
    all(TRANSPORT_BY_PEERMEM, TRANSPORT_BY_PEERMEM);
    CHECK(fake.peermems > 0 && fake.dma_bufs == 0);
    end();

    fake_begin(3); /* a kernel or a NIC's driver that knows no dma-bufs */
    fake.no_dma_buf = fake.peermem = 1;
    all(TRANSPORT_BY_DMA_BUF, TRANSPORT_BY_DMA_BUF);
    CHECK(fake.peermems > 0);
    end();

    fake_begin(6); /* a GPU that does not order what NICs write */
    flushes = true;
    setenv("SIM_ORDERING", "0", 1);
    all(TRANSPORT_BY_DMA_BUF, TRANSPORT_BY_DMA_BUF);
    gets_are_seen();
    end();
    fake_begin(7); /* and NICs that write there what the other one stages */
    fake.peermem = 1;
    pool = 4 << 20;
    all(TRANSPORT_BY_PEERMEM, TRANSPORT_BY_STAGING);
    gets_are_seen();
    end();
    flushes = false;
    unsetenv("SIM_ORDERING");

    for (int way = 0; way < 3; way++) { /* one of the two, the other, both */
        pool = way ? 4 << 20 : 64 << 10;
        fake_begin(4);
        fake.peermem = 1;
        all(way == 1 ? TRANSPORT_BY_PEERMEM : TRANSPORT_BY_STAGING,
            way == 0 ? TRANSPORT_BY_PEERMEM : TRANSPORT_BY_STAGING);
        end();
    }
    fake_begin(5); /* what was to be registered cannot be */
    fake.no_dma_buf = 1;
    all(TRANSPORT_BY_DMA_BUF, TRANSPORT_BY_DMA_BUF);
    end();
    for (unsigned seed = 1; seed <= 15; seed++) {
        pool = seed % 2 ? 4 << 20 : 256 << 10;
        nothing_is_lost(seed, 1 + (int)seed % 3, seed > 3,
                        seed % 3 == 1 ? TRANSPORT_BY_PEERMEM : TRANSPORT_BY_STAGING,
                        seed % 3 == 2 ? TRANSPORT_BY_PEERMEM : TRANSPORT_BY_STAGING);
    }
    CHECK(disturbances > 50);
    CHECK(updates > 500);
    CHECK_EQ(forgotten, 0);
    for (unsigned seed = 1; seed <= 12; seed++) { /* the pinned buffers, or the memory that they are for, is too much */
        pool = 4 << 20;
        pins_most = (7 << 20) + seed * 4096;
        nothing_is_lost(seed, 1, seed > 6, seed % 3 == 1 ? TRANSPORT_BY_PEERMEM : TRANSPORT_BY_STAGING,
                        seed % 3 == 2 ? TRANSPORT_BY_PEERMEM : TRANSPORT_BY_STAGING);
    }
    close_device();
    return 0;
}
