#define _GNU_SOURCE
#include "pes.h"

#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "runtime/base/atomic_type.h"
#include "transport/batch.h"
#include "transport/verbs/resolve.h"

struct pe pe[PES_MOST];
bool with_counters, with_third;
char complaint[400];

static int pes_here(void)
{
    return PES + with_third;
}

/* ---- What the transport is lent ---- */

static gshmem_status_t complain(gshmem_status_t status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(complaint, sizeof complaint, format, args);
    va_end(args);
    return status;
}

/* One line after another, which PE's it is is not said: PE 0's, in what asks. */
static void be_told(const char *format, ...)
{
    size_t used = strlen(pe[0].notified);
    va_list args;

    va_start(args, format);
    vsnprintf(pe[0].notified + used, sizeof pe[0].notified - used, format, args);
    va_end(args);
}

static uint64_t apply(void *context, enum gshmem_amo amo, int type, void *target, uint64_t operand,
                      uint64_t compare)
{
    const struct pe *p = context;
    uint64_t old;

    /* what NICs update nobody else does */
    CHECK((uintptr_t)target - (uintptr_t)p->counters >= COUNTER_WORDS * sizeof *p->counters);
    if (with_counters)
        return atomic_apply(amo, type, target, operand, compare);
    old = *(uint64_t *)target;
    CHECK_EQ(type, GSHMEM_TYPE_UINT64);
    CHECK(amo == GSHMEM_AMO_ADD || amo == GSHMEM_AMO_SET);
    *(uint64_t *)target = amo == GSHMEM_AMO_ADD ? old + operand : operand;
    return old;
}

/* Of a PE itself: others are on other hosts. */
static char *mapped(void *context, int which, int segment)
{
    struct pe *p = context;

    (void)segment;
    return which == (int)(p - pe) ? p->memory : NULL;
}

static void lost(void *context, int which, gshmem_status_t status, const char *why)
{
    struct pe *p = context;

    CHECK(which != (int)(p - pe) && which < pes_here() && status);
    snprintf(p->why, sizeof p->why, "%s", why);
    p->lost++;
}

int flight_most, works_most;
int queue_pairs = 1, job_pes = PES, peer_timeout = 10, init_timeout = 60, turns[PES_MOST], distance[PES_MOST][FAKE_DEVICES];

static int distance_of(void *context, const char *device, const char **where)
{
    *where = "somewhere";
    return distance[(struct pe *)context - pe][device[4] - '0'];
}

static gshmem_status_t find(void *context, int which, void *address, size_t capacity, size_t *bytes)
{
    (void)context;
    *bytes = 0;
    return pe[which].says_nothing
               ? GSHMEM_OK
               : gshmem_transport.address(pe[which].t, address, capacity, bytes);
}

static int64_t number(const char *setting)
{
    if (strcmp(setting, SETTING_NAME(IB_QP_PER_PEER)) == 0)
        return queue_pairs;
    if (strcmp(setting, SETTING_NAME(IB_INFLIGHT)) == 0)
        return flight_most;
    if (strcmp(setting, SETTING_NAME(IB_INFLIGHT_REQUESTS)) == 0)
        return works_most;
    if (strcmp(setting, SETTING_NAME(PEER_TIMEOUT)) == 0)
        return peer_timeout;
    if (strcmp(setting, SETTING_NAME(INIT_TIMEOUT)) == 0)
        return init_timeout;
    return settings_number_of(setting);
}

/* ---- The transport below ---- */

static struct pe *owner(struct transport *t)
{
    return (struct pe *)(void *)((char *)t - offsetof(struct pe, below));
}

static void below_carry_out(const struct transport_request *r, char *object)
{
    const size_t bytes = r->element_bytes, step = BATCH_NUMBER_BYTES + bytes;

    CHECK(batch_is_sound(r->each, r->elements, bytes, r->bytes) && r->bytes <= TRANSPORT_COPIED);
    for (uint64_t i = 0; i < r->elements; i++) {
        const char *record = (const char *)r->local + i * step, *value = record + BATCH_NUMBER_BYTES;
        char *at = object + batch_number(record) * bytes;
        if (r->each == TRANSPORT_PUT)
            memcpy(at, value, bytes);
        else
            atomic_apply(r->amo, r->type, at, batch_operand(value, bytes), 0);
    }
}

/* Carries out a request at once, in order; that it is done is told then, or by progress, which tells
 * of one at a time. */
static gshmem_status_t below_post(struct transport *t, const struct transport_request *r)
{
    struct pe *p = owner(t);
    char *there = pe[r->pe].memory;
    uint64_t *word = (uint64_t *)(void *)(there + r->offset);
    uint64_t *signal = (uint64_t *)(void *)(there + r->signal_offset);
    if (p->full_below && ++p->calls_below % p->full_below == 0)
        return TRANSPORT_FULL;
    p->passed_down++;
    if (r->kind == TRANSPORT_BATCH) {
        below_carry_out(r, there + r->offset);
    } else if (r->kind == TRANSPORT_ATOMIC) {
        uint64_t old = *word;
        *word = r->amo == GSHMEM_AMO_SET ? r->operand : old + r->operand;
        if (r->old)
            *r->old = old;
    } else if (r->bytes) {
        memcpy(r->kind == TRANSPORT_PUT ? there + r->offset : r->local,
               r->kind == TRANSPORT_PUT ? r->local : there + r->offset, r->bytes);
    }
    if (r->signal_op)
        *signal = r->signal_op == GSHMEM_SIGNAL_ADD ? *signal + r->signal_value : r->signal_value;
    if (p->late_below && p->lates < LATE)
        p->late[p->lates++] = *r;
    else
        r->done(r->tag, GSHMEM_OK);
    return GSHMEM_OK;
}

static gshmem_status_t below_say(struct transport *t, int to, const void *note, size_t bytes)
{
    struct pe *p = owner(t);

    if (p->refused)
        return GSHMEM_ERR_PEER_DEAD;
    if (p->full && p->full--)
        return TRANSPORT_FULL;
    CHECK(p->notes < NOTES && bytes <= TRANSPORT_NOTE_MAX);
    p->note[p->notes].to = to;
    p->note[p->notes].bytes = bytes;
    memcpy(p->note[p->notes++].text, note, bytes);
    return GSHMEM_OK;
}

static gshmem_status_t below_progress(struct transport *t, int *events)
{
    struct pe *p = owner(t);

    p->looks++;
    *events = p->lates > 0;
    if (p->lates) {
        const struct transport_request first = p->late[0];
        memmove(p->late, p->late + 1, (size_t)--p->lates * sizeof first);
        first.done(first.tag, GSHMEM_OK);
    }
    return GSHMEM_OK;
}

static void below_begin(struct transport *t, const struct transport_config *config)
{
    (void)t, (void)config;
}

static void below_lose(struct transport *t, int which, gshmem_status_t status)
{
    (void)t, (void)which, (void)status;
}

static int below_no(struct transport *t)
{
    (void)t;
    return 0;
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

static gshmem_status_t below_address(struct transport *t, void *address, size_t capacity,
                                     size_t *bytes)
{
    (void)t, (void)address, (void)capacity;
    *bytes = 0;
    return GSHMEM_OK;
}

static const struct transport_ops below_ops = {.name = "below",
                                               .address = below_address,
                                               .begin = below_begin,
                                               .post = below_post,
                                               .progress = below_progress,
                                               .say = below_say,
                                               .lose = below_lose,
                                               .arm = below_no,
                                               .busy = below_no,
                                               .wait_fd = below_fd,
                                               .close = below_close};

/* ---- Two PEs ---- */

void open_pe(int me, bool device)
{
    struct pe *p = &pe[me];

    *p = (struct pe){.below = {&below_ops},
                     .memory = mmap(NULL, SEGMENT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};
    CHECK(p->memory != MAP_FAILED);
    p->config = (struct transport_config){.size = sizeof p->config,
                                          .fail = complain,
                                          .fail_handled = complain,
                                          .info = be_told,
                                          .pe = me,
                                          .n_pes = job_pes,
                                          .context = p,
                                          .find = find,
                                          .apply = apply,
                                          .lost = lost,
                                          .mapped = mapped,
                                          .number = number,
                                          .text = settings_string_of,
                                          .below = &p->below,
                                          .distance = distance_of,
                                          .turn = turns[me]};
    CHECK_EQ(gshmem_transport.open(&p->config, &p->t), GSHMEM_OK);
    p->config.segments = 1;
    p->config.segment[0].base = p->memory;
    p->config.segment[0].bytes = SEGMENT;
    if (with_counters) {
        p->counters = aligned_alloc(4096, COUNTER_WORDS * sizeof *p->counters);
        memset(p->counters, 0, COUNTER_WORDS * sizeof *p->counters);
        p->config.segments = 2;
        p->config.segment[1] =
            (struct transport_segment){.base = (char *)p->counters,
                                       .bytes = COUNTER_WORDS * sizeof *p->counters,
                                       .by_nic = true};
    }
    if (device)
        p->config.device = (struct device *)p; /* some */
    gshmem_transport.begin(p->t, &p->config);
}

void carry_notes(int from)
{
    int n = pe[from].notes;

    for (int i = 0; i < n; i++)
        gshmem_transport.receive(pe[pe[from].note[i].to].t, from, pe[from].note[i].text, pe[from].note[i].bytes);
    pe[from].notes -= n;
    memmove(pe[from].note, pe[from].note + n, (size_t)pe[from].notes * sizeof pe[from].note[0]);
}

bool drive(void)
{
    bool some = fake_run();
    int events;

    for (int i = 0; i < pes_here(); i++) {
        carry_notes(i);
        CHECK_EQ(gshmem_transport.progress(pe[i].t, &events), GSHMEM_OK);
        if (!fake_holds_ways()) /* in rounds, whatever other threads do */
            resolve_wait((struct verbs *)pe[i].t);
        some |= events > 0;
    }
    return some;
}

int ok, not_ok, posted;
static int last_tag[PES_MOST * PES_MOST];
gshmem_status_t last_status;

static void done(void *tag, gshmem_status_t status)
{
    int *last = &last_tag[(intptr_t)tag % (PES_MOST * PES_MOST)];

    CHECK((intptr_t)tag > *last); /* in the order in which they were posted, of this PE to that one */
    *last = (int)(intptr_t)tag;
    *(status ? &not_ok : &ok) += 1;
    last_status = status ? status : last_status;
}

gshmem_status_t try_post_to(int from, int to, struct transport_request r)
{
    r.pe = to;
    r.done = done;
    r.tag = (void *)(intptr_t)((posted + 1) * PES_MOST * PES_MOST + from * PES_MOST + to);
    posted++;
    gshmem_status_t status = gshmem_transport.post(pe[from].t, &r);
    posted -= status != GSHMEM_OK;
    return status;
}

gshmem_status_t try_post(int from, struct transport_request r)
{
    return try_post_to(from, 1 - from, r);
}

void post(int from, struct transport_request r)
{
    gshmem_status_t status;
    int rounds = 0;

    while ((status = try_post(from, r)) == TRANSPORT_FULL && rounds++ < 100000)
        drive();
    if (status)
        CHECK_FAIL("a request is refused with %d: PE 0: %s; PE 1: %s; %s", status, pe[0].why, pe[1].why,
                   complaint);
}

void settle(void)
{
    for (int rounds = 0; ok + not_ok < posted; rounds++) {
        drive();
        if (rounds == 100000)
            CHECK_FAIL("%d of %d requests have ended", ok + not_ok, posted);
    }
}

/* What NICs are like is still to be said: see fake.h. */
void prepare(unsigned seed)
{
    ok = not_ok = posted = 0;
    memset(last_tag, 0, sizeof last_tag);
    last_status = GSHMEM_OK;
    complaint[0] = 0;
    fake_begin(seed);
    fake.soft = seed % 3 == 0;
}

void open_both(void)
{
    for (int i = 0; i < pes_here(); i++)
        open_pe(i, false);
}

void begin(unsigned seed)
{
    prepare(seed);
    open_both();
}

void begin_strict(unsigned seed)
{
    prepare(seed);
    fake.reorders = false;
    open_both();
}

/* So many NICs each. */
void begin_with(unsigned seed, int devices)
{
    prepare(seed);
    fake.devices = devices;
    open_both();
}

void end(void)
{
    for (int i = 0; i < pes_here(); i++) {
        gshmem_transport.close(pe[i].t);
        munmap(pe[i].memory, SEGMENT);
        free(pe[i].counters);
    }
    CHECK_EQ(fake.registered, 0);
    fake_end();
}

struct transport_request put(void *from, uint64_t offset, uint64_t bytes)
{
    return (struct transport_request){
        .kind = TRANSPORT_PUT, .local = from, .offset = offset, .bytes = bytes};
}

struct transport_request get(void *to, uint64_t offset, uint64_t bytes)
{
    return (struct transport_request){
        .kind = TRANSPORT_GET, .local = to, .offset = offset, .bytes = bytes};
}

struct transport_request add(uint64_t offset, uint64_t operand, uint64_t *old)
{
    return (struct transport_request){.kind = TRANSPORT_ATOMIC,
                                      .offset = offset,
                                      .amo = GSHMEM_AMO_ADD,
                                      .type = GSHMEM_TYPE_UINT64,
                                      .operand = operand,
                                      .old = old};
}

struct transport_request with_signal(struct transport_request r, int op, uint64_t offset,
                                            uint64_t value)
{
    r.signal_op = op;
    r.signal_offset = offset;
    r.signal_value = value;
    return r;
}

struct transport_request draw(int i, int words, uint64_t *model, uint64_t *value, uint64_t *old,
                              uint64_t *expected)
{
    const int at = rand() % words, other = rand() % words;
    struct transport_request r;

    *value = (uint64_t)i * 1000003 + 1;
    *expected = *old = 0;
    switch (rand() % 5) {
    case 0:
        r = put(value, 8 * (uint64_t)at, 8);
        model[at] = *value;
        break;
    case 1:
        r = with_signal(put(value, 8 * (uint64_t)at, 8), GSHMEM_SIGNAL_SET, 8 * (uint64_t)other,
                        (uint64_t)i);
        model[at] = *value;
        model[other] = (uint64_t)i;
        break;
    case 2:
        r = with_signal(put(value, 8 * (uint64_t)at, 8), GSHMEM_SIGNAL_ADD, 8 * (uint64_t)other, 3);
        model[at] = *value;
        model[other] += 3;
        break;
    case 3:
        r = add(8 * (uint64_t)at, 7, rand() % 2 ? old : NULL);
        *expected = r.old ? model[at] : 0;
        model[at] += 7;
        break;
    default:
        r = get(old, 8 * (uint64_t)at, 8);
        *expected = model[at];
    }
    r.flags = rand() % 2 ? TRANSPORT_MORE : 0;
    return r;
}

uint64_t *word(int which, uint64_t offset)
{
    return (uint64_t *)(void *)(pe[which].memory + offset);
}

void fill(char *at, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (char)(i * 31 + seed);
}

void warm_up(void)
{
    uint64_t value = 1;

    post(0, put(&value, 0, 8));
    settle();
}
