/* Memory of GPUs over verbs: two PEs in one process, each with a heap in memory of a simulated GPU (the
 * module of the cuda device, and tests/cuda/driver below it), over the fake of libibverbs. What the CPU
 * touches of such memory faults, so that all of it has to go by registrations or the device's copies.
 *
 *     unit-transport-verbs-gpu MODULE */
#include <dlfcn.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include "device/device.h"
#include "fake.h"
#include "gshmem.h"
#include "gshmem/rma.h"
#include "gshmem/type.h"
#include "runtime/base/settings.h"
#include "tests/check.h"
#include "transport/verbs/verbs.h"

enum { HOST, GPU, COUNTERS /* which NICs update */, SEGMENTS };
enum { PES = 2, HOST_BYTES = 4 << 20, LIMIT = 128 << 20, NOTES = 64 };

struct pe {
    struct transport *t;
    struct transport_config config;
    struct transport below;
    struct device *device;
    struct device_ops ops; /* the device's, but for updates */
    struct device_heap_map heap;
    uint64_t there;
    char *memory, *own; /* host memory; GPU memory that is not in the heap */
    uint64_t counters[512];
    int lost, passed_down, notes, updates;
    size_t bytes[NOTES];
    unsigned char note[NOTES][TRANSPORT_NOTE_MAX];
};

static struct pe pe[PES];
static bool stages; /* one of the two does */
static struct device *device; /* of both */
static uint64_t pool = 4 << 20; /* of pinned buffers */
static int ok, posted;
static gshmem_status_t failed;

/* ---- What the transport and the device are lent ---- */

static gshmem_status_t complain(gshmem_status_t status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return status;
}

static void be_silent(const char *format, ...)
{
    (void)format;
}

static gshmem_status_t add_module(struct gshmem_device_module *module)
{
    (void)module;
    return GSHMEM_OK;
}

static void remove_module(struct gshmem_device_module *module)
{
    (void)module;
}

static int on_device(void *context, const void *at, uint64_t bytes)
{
    (void)context;
    return device->ops->owns(device, at, bytes);
}

static bool is_gpu(const void *at, size_t bytes)
{
    return device->ops->owns(device, at, bytes);
}

static int export(const void *at, size_t bytes, uint64_t *offset)
{
    int fd;

    return device->ops->export_range(device, at, bytes, &fd, offset) ? -1 : fd;
}

static uint64_t apply(void *context, enum gshmem_amo amo, int type, void *target, uint64_t operand,
                      uint64_t compare)
{
    uint64_t old = *(uint64_t *)target;

    (void)context, (void)type, (void)compare;
    CHECK(amo == GSHMEM_AMO_ADD || amo == GSHMEM_AMO_SET);
    *(uint64_t *)target = amo == GSHMEM_AMO_ADD ? old + operand : operand;
    return old;
}

/* What the library's kernel would do, which takes more of the library than is here. */
static gshmem_status_t update(struct device *d, const struct device_update *u, uint64_t *old)
{
    uint64_t value, sum;

    CHECK(u->op == GSHMEM_AMO_ADD && u->type == GSHMEM_TYPE_UINT64);
    CHECK_EQ(d->ops->copy(d, &value, u->at, 8), GSHMEM_OK);
    sum = value + u->operand;
    CHECK_EQ(d->ops->copy(d, u->at, &sum, 8), GSHMEM_OK);
    if (old)
        *old = value;
    pe[0].updates++;
    return GSHMEM_OK;
}

static gshmem_status_t find(void *context, int which, void *address, size_t capacity, size_t *bytes)
{
    (void)context;
    return gshmem_transport.address(pe[which].t, address, capacity, bytes);
}

static void lost(void *context, int which, gshmem_status_t status, const char *why)
{
    (void)context, (void)status;
    CHECK_FAIL("PE %d is lost: %s", which, why);
}

static int64_t number(int setting)
{
    return settings_number((enum setting)setting);
}

static const char *text(int setting)
{
    return settings_string((enum setting)setting);
}

/* ---- The transport below ---- */

static struct pe *owner(struct transport *t)
{
    return (struct pe *)(void *)((char *)t - offsetof(struct pe, below));
}

static gshmem_status_t below_address(struct transport *t, void *address, size_t capacity, size_t *bytes)
{
    (void)t, (void)address, (void)capacity;
    *bytes = 0;
    return GSHMEM_OK;
}

/* Carries out a put or a get at once. */
static gshmem_status_t below_post(struct transport *t, const struct transport_request *r)
{
    struct pe *p = owner(t), *other = &pe[1 - (int)(p - pe)];
    char *there = other->config.segment[r->segment].base + r->offset;
    char *signal = other->config.segment[r->signal_segment].base + r->signal_offset;
    uint64_t value;

    p->passed_down++;
    CHECK(r->kind != TRANSPORT_ATOMIC);
    if (r->bytes)
        CHECK_EQ(device->ops->copy(device, r->kind == TRANSPORT_PUT ? there : r->local,
                                   r->kind == TRANSPORT_PUT ? r->local : there, r->bytes),
                 GSHMEM_OK);
    if (r->signal_op) {
        CHECK_EQ(device->ops->copy(device, &value, signal, 8), GSHMEM_OK);
        value = r->signal_op == GSHMEM_SIGNAL_ADD ? value + r->signal_value : r->signal_value;
        CHECK_EQ(device->ops->copy(device, signal, &value, 8), GSHMEM_OK);
    }
    r->done(r->tag, GSHMEM_OK);
    return GSHMEM_OK;
}

static gshmem_status_t below_say(struct transport *t, int to, const void *note, size_t bytes)
{
    struct pe *p = owner(t);

    CHECK(p->notes < NOTES && bytes <= TRANSPORT_NOTE_MAX && to == 1 - (int)(p - pe));
    p->bytes[p->notes] = bytes;
    memcpy(p->note[p->notes++], note, bytes);
    return GSHMEM_OK;
}

static gshmem_status_t below_progress(struct transport *t, int *events)
{
    (void)t;
    *events = 0;
    return GSHMEM_OK;
}

static void below_begin(struct transport *t, const struct transport_config *config)
{
    (void)t, (void)config;
}

static void below_forget(struct transport *t, int segment, uint64_t offset, uint64_t bytes)
{
    (void)t, (void)segment, (void)offset, (void)bytes;
}

static int below_fd(struct transport *t)
{
    (void)t;
    return -1;
}

static void below_close(struct transport *t)
{
    (void)t;
}

static const struct transport_ops below_ops = {.name = "below",
                                               .address = below_address,
                                               .begin = below_begin,
                                               .post = below_post,
                                               .progress = below_progress,
                                               .say = below_say,
                                               .wait_fd = below_fd,
                                               .forget = below_forget,
                                               .close = below_close};

/* ---- Two PEs ---- */

static void grow(struct pe *p, uint64_t bytes)
{
    struct device_piece piece;

    while (p->there < bytes) {
        CHECK_EQ(device->ops->heap_grow(device, &p->heap, bytes, &piece), GSHMEM_OK);
        if (piece.fd >= 0)
            close(piece.fd);
        p->there += piece.bytes;
    }
}

static void open_pe(int me, enum transport_way way)
{
    struct pe *p = &pe[me];

    *p = (struct pe){.below = {&below_ops}, .memory = calloc(1, HOST_BYTES)};
    CHECK_EQ(device->ops->heap_open(device, NULL, LIMIT, 0, &p->heap), GSHMEM_OK);
    grow(p, 1);
    p->own = device->ops->allocate(device, DEVICE_MEMORY_OWN, HOST_BYTES);
    p->config = (struct transport_config){.size = sizeof p->config,
                                          .fail = complain,
                                          .info = be_silent,
                                          .pe = me,
                                          .n_pes = PES,
                                          .context = p,
                                          .find = find,
                                          .apply = apply,
                                          .lost = lost,
                                          .number = number,
                                          .text = text,
                                          .below = &p->below};
    CHECK_EQ(gshmem_transport.open(&p->config, &p->t), GSHMEM_OK);
    p->config.segments = SEGMENTS;
    p->config.segment[HOST] =
        (struct transport_segment){.base = p->memory, .bytes = HOST_BYTES};
    p->config.segment[GPU] = (struct transport_segment){
        .base = (char *)p->heap.base, .bytes = LIMIT, .of_device = 1, .there = &p->there};
    p->config.segment[COUNTERS] = (struct transport_segment){
        .base = (char *)p->counters, .bytes = sizeof p->counters, .by_nic = true};
    p->config.device = device;
    p->config.on_device = on_device;
    p->config.way = way;
    p->config.staging = pool;
    gshmem_transport.begin(p->t, &p->config);
}

static void begin_both(enum transport_way of_first, enum transport_way of_second)
{
    ok = posted = 0;
    failed = GSHMEM_OK;
    fake.atomics = true;
    open_pe(0, of_first);
    open_pe(1, of_second);
}

static void end(void)
{
    for (int i = 0; i < PES; i++) {
        gshmem_transport.close(pe[i].t);
        device->ops->release(device, DEVICE_MEMORY_OWN, pe[i].own);
        device->ops->heap_close(device, &pe[i].heap);
        free(pe[i].memory);
    }
    fake_end();
}

static bool drive(void)
{
    bool some = fake_run();
    int events;

    for (int i = 0; i < PES; i++) {
        int n = pe[i].notes;
        for (int k = 0; k < n; k++)
            gshmem_transport.hear(pe[1 - i].t, i, pe[i].note[k], pe[i].bytes[k]);
        CHECK_EQ(pe[i].notes, n);
        pe[i].notes = 0;
        CHECK_EQ(gshmem_transport.progress(pe[i].t, &events), GSHMEM_OK);
        some |= events > 0;
    }
    return some;
}

static void done(void *tag, gshmem_status_t status)
{
    (void)tag;
    ok++;
    failed = status ? status : failed;
}

static void settle(void)
{
    const time_t begun = time(NULL);

    while (ok < posted) {
        drive();
        if (stages)
            sched_yield(); /* the device copies by threads of its own */
        if (time(NULL) > begun + 100)
            CHECK_FAIL("%d of %d requests have ended", ok, posted);
    }
    CHECK_EQ(failed, GSHMEM_OK);
}

static void post(struct transport_request r)
{
    gshmem_status_t status;
    int rounds = 0;

    r.pe = 1;
    r.done = done;
    while ((status = gshmem_transport.post(pe[0].t, &r)) == TRANSPORT_FULL && rounds++ < 10000000)
        drive();
    CHECK_EQ(status, GSHMEM_OK);
    posted++;
}

static int disturbances;

static void copy(void *to, const void *from, size_t bytes)
{
    CHECK_EQ(device->ops->copy(device, to, from, bytes), GSHMEM_OK);
}

static void fill(char *at, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (char)(i * 31 + i / 4096 + seed);
}

/* ---- Tests ---- */

static char *at_of(int which, int segment, uint64_t offset)
{
    return pe[which].config.segment[segment].base + offset;
}

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
    const int before = pe[0].updates;

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
    CHECK_EQ(pe[0].updates - before, 2);
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

/* Puts and gets between memory of both kinds, anywhere; their first 64 bytes are for signals. */
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
        mend_watch((struct verbs *)pe[i].t);
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
        if (!landing[i].at)
            continue;
        copy(data, landing[i].at, landing[i].bytes);
        if (memcmp(data, landing[i].expected, landing[i].bytes) != 0)
            CHECK_FAIL("seed %u: request %d got something else", seed, i);
    }
}

/* Requests in order against a model: none is lost, none overtakes another, whatever paths do. */
static void nothing_is_lost(unsigned seed, int devices, bool breaks, enum transport_way way,
                            enum transport_way of_other)
{
    fake_begin(seed);
    fake.devices = devices;
    fake.loses_answers = seed % 2;
    fake.peermem = 1;
    begin_both(way, of_other);
    for (int i = 0; i < PES; i++)
        grow(&pe[i], 64 << 20);
    srand(seed);
    host_sources = malloc(SOURCES * PUT_MOST);
    host_landings = malloc(STEPS * GET_MOST);
    data = calloc(1, AREA);
    memset(model, 0, sizeof model);
    memset(landing, 0, sizeof landing);
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
    CHECK(breaks || pe[0].passed_down == 0);
    end();
    free(host_sources);
    free(host_landings);
    free(data);
}

int main(int argc, char **argv)
{
    const struct device_config config = {sizeof config,
                                         .fail = complain,
                                         .info = be_silent,
                                         .wanted = "",
                                         .add_module = add_module,
                                         .remove_module = remove_module};
    static struct device_ops ops;

    CHECK_EQ(argc, 2);
    CHECK_EQ(settings_load(), GSHMEM_OK);
    CHECK(!gshmem_initialized()); /* the library is linked: the simulation needs it, for kernels */
    void *module = dlopen(argv[1], RTLD_NOW);
    if (!module)
        CHECK_FAIL("%s", dlerror());
    ops = *(const struct device_ops *)dlsym(module, "gshmem_device");
    CHECK_EQ(ops.open(&config, &device), GSHMEM_OK);
    ops.update = update;
    const struct device_ops *real = device->ops;
    device->ops = &ops;
    fake_is_gpu = is_gpu;
    fake_export = export;

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
    device->ops = real;
    ops.close(device);
    return 0;
}
