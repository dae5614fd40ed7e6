#include "gshmem.h" /* first: its arguments have the name of what is here */

#include "gpu_pes.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "device/cuda/driver.h"
#include "runtime/base/settings.h"
#include "transport/verbs/resolve.h"

struct pe pe[PES];
bool stages, flushes;
struct device *device;
struct device_ops ops;
uint64_t pool = 4 << 20;
int ok, posted;
gshmem_status_t failed;
static const struct device_ops *real_ops;

/* ---- The device, and what it and the transport are lent ---- */

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

uint64_t update_word(const struct device_update *u)
{
    uint64_t value, next;

    CHECK((u->op == GSHMEM_AMO_ADD || u->op == GSHMEM_AMO_FETCH || u->op == GSHMEM_AMO_SET) &&
          u->type == GSHMEM_TYPE_UINT64);
    copy(&value, u->at, 8);
    next = u->op == GSHMEM_AMO_SET ? u->operand : value + u->operand;
    if (u->op != GSHMEM_AMO_FETCH)
        copy(u->at, &next, 8);
    return value;
}

/* As atomic as those of messages. */
static uint64_t below_update(int segment, const struct device_update *u)
{
    uint64_t old;

    if (segment != GPU)
        return update_word(u);
    CHECK_EQ(device->ops->update(device, u, &old), GSHMEM_OK);
    return old;
}

/* Carries out any request at once. */
static gshmem_status_t below_post(struct transport *t, const struct transport_request *r)
{
    struct pe *p = owner(t), *other = &pe[1 - (int)(p - pe)];
    char *there = other->config.segment[r->segment].base + r->offset;
    char *signal = other->config.segment[r->signal_segment].base + r->signal_offset;

    p->passed_down++;
    if (r->kind == TRANSPORT_ATOMIC) {
        const uint64_t old = below_update(
            r->segment,
            &(struct device_update){.op = r->amo, .type = r->type, .at = there, .operand = r->operand});
        if (r->old)
            *r->old = old;
    } else if (r->bytes) {
        copy(r->kind == TRANSPORT_PUT ? there : r->local, r->kind == TRANSPORT_PUT ? r->local : there, r->bytes);
    }
    if (r->signal_op == GSHMEM_SIGNAL_SET)
        copy(signal, &r->signal_value, 8);
    else if (r->signal_op == GSHMEM_SIGNAL_ADD)
        below_update(r->signal_segment, &(struct device_update){.op = GSHMEM_AMO_ADD,
                                                                .type = GSHMEM_TYPE_UINT64,
                                                                .at = signal,
                                                                .operand = r->signal_value});
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

static void below_lose(struct transport *t, int which, gshmem_status_t status)
{
    (void)t, (void)which, (void)status;
}

static int below_busy(struct transport *t)
{
    (void)t;
    return 0;
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
                                               .lose = below_lose,
                                               .busy = below_busy,
                                               .close = below_close};

/* ---- Two PEs ---- */

void grow(struct pe *p, uint64_t bytes)
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
                                          .fail_handled = complain,
                                          .info = be_silent,
                                          .pe = me,
                                          .n_pes = PES,
                                          .context = p,
                                          .find = find,
                                          .apply = apply,
                                          .lost = lost,
                                          .number = settings_number_of,
                                          .text = settings_string_of,
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
    p->config.flushes = flushes;
    gshmem_transport.begin(p->t, &p->config);
}

void begin_both(enum transport_way of_first, enum transport_way of_second)
{
    ok = posted = 0;
    failed = GSHMEM_OK;
    fake.atomics = true;
    open_pe(0, of_first);
    open_pe(1, of_second);
}

void close_both(void)
{
    for (int i = 0; i < PES; i++) {
        if (pe[i].t)
            gshmem_transport.close(pe[i].t);
        pe[i].t = NULL;
    }
}

void end(void)
{
    close_both();
    for (int i = 0; i < PES; i++) {
        device->ops->release(device, DEVICE_MEMORY_OWN, pe[i].own);
        device->ops->heap_close(device, &pe[i].heap);
        free(pe[i].memory);
    }
    fake_end();
}

bool drive(void)
{
    bool some = fake_run();
    int events;

    for (int i = 0; i < PES; i++) {
        int n = pe[i].notes;
        for (int k = 0; k < n; k++)
            gshmem_transport.receive(pe[1 - i].t, i, pe[i].note[k], pe[i].bytes[k]);
        CHECK_EQ(pe[i].notes, n);
        pe[i].notes = 0;
        CHECK_EQ(gshmem_transport.progress(pe[i].t, &events), GSHMEM_OK);
        if (!fake_holds_ways()) /* in rounds, whatever other threads do */
            resolve_wait((struct verbs *)pe[i].t);
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

void settle(void)
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

void post_from(int from, struct transport_request r)
{
    gshmem_status_t status;
    int rounds = 0;

    r.pe = 1 - from;
    r.done = done;
    while ((status = gshmem_transport.post(pe[from].t, &r)) == TRANSPORT_FULL && rounds++ < 10000000)
        drive();
    CHECK_EQ(status, GSHMEM_OK);
    posted++;
}

void post(struct transport_request r)
{
    post_from(0, r);
}

void copy(void *to, const void *from, size_t bytes)
{
    CHECK_EQ(device->ops->copy(device, to, from, bytes), GSHMEM_OK);
}

void fill(char *at, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (char)(i * 31 + i / 4096 + seed);
}

char *at_of(int which, int segment, uint64_t offset)
{
    return pe[which].config.segment[segment].base + offset;
}

/* ---- The simulation ---- */

static bool (*simulated_look)(void *to, cuda_address at, size_t bytes);
static void (*simulated_write)(cuda_address at, const void *data, size_t bytes);

void look(void *to, const void *from, size_t bytes)
{
    CHECK(simulated_look(to, (uintptr_t)from, bytes));
}

static void write_to_gpu(void *at, const void *data, size_t bytes)
{
    simulated_write((uintptr_t)at, data, bytes);
}

static void find_simulation(void)
{
    void *simulation = dlopen("libcuda.so.1", RTLD_NOW);
    void *entry[] = {dlsym(simulation, "sim_look"), dlsym(simulation, "sim_nic_write"),
                     dlsym(simulation, "sim_nic_flush")};

    CHECK(entry[0] && entry[1] && entry[2]);
    memcpy(&simulated_look, &entry[0], sizeof simulated_look);
    memcpy(&simulated_write, &entry[1], sizeof simulated_write);
    memcpy(&fake_gpu_read, &entry[2], sizeof fake_gpu_read);
    fake_gpu_write = write_to_gpu;
}

/* ---- The device ---- */

void open_device(const char *path)
{
    const struct device_config config = {sizeof config,
                                         .fail = complain,
                                         .info = be_silent,
                                         .warn = be_silent,
                                         .stall_seconds = 60,
                                         .wanted = "",
                                         .add_module = add_module,
                                         .remove_module = remove_module};

    CHECK_EQ(settings_load(), GSHMEM_OK);
    CHECK(!gshmem_initialized()); /* the library is linked: the simulation needs it, for kernels */
    void *module = dlopen(path, RTLD_NOW);
    if (!module)
        CHECK_FAIL("%s", dlerror());
    ops = *(const struct device_ops *)dlsym(module, "gshmem_device");
    CHECK_EQ(ops.open(&config, &device), GSHMEM_OK);
    real_ops = device->ops;
    device->ops = &ops;
    fake_is_gpu = is_gpu;
    fake_export = export;
    find_simulation();
}

void close_device(void)
{
    device->ops = real_ops;
    device->ops->close(device);
}
