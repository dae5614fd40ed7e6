/* Three PEs, and what a transport is lent: as little of a runtime as there can be. */
#define _GNU_SOURCE
#include "conform.h"

#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "runtime/base/atomic_type.h"
#include "runtime/base/clock.h"
#include "runtime/base/settings.h"

enum { GUARD = 4096, GUARD_BYTE = 0x6e };

struct pe pe[PES];
struct subject subject;
int ended, failed, aborted, posted;
gshmem_status_t last_failure;

/* What PEs tell each other before they have a transport. */
static struct published {
    int opened; /* how many PEs have */
    size_t bytes[PES];
    unsigned char address[PES][TRANSPORT_ADDRESS_MAX];
} * published;

/* ---- What a transport is lent ---- */

static gshmem_status_t complain(gshmem_status_t status, const char *format, ...)
{
    va_list args;

    if (getenv("CONFORM_VERBOSE")) {
        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
        fputc('\n', stderr);
    }
    return status;
}

static void say_nothing(const char *format, ...)
{
    (void)format;
}

/* As a runtime's, `find` and `key` ask the starter first, for a round or two. */
static gshmem_status_t find(void *context, int which, void *address, size_t capacity, size_t *bytes)
{
    struct pe *p = context;

    CHECK(which >= 0 && which < PES && published->bytes[which] <= capacity);
    if (p->asked[which]++ < 2)
        return TRANSPORT_FULL;
    memcpy(address, published->address[which], published->bytes[which]);
    *bytes = published->bytes[which];
    return GSHMEM_OK;
}

static gshmem_status_t key(void *context, int which, unsigned char out[TRANSPORT_KEY_BYTES])
{
    struct pe *p = context;

    if (p->asked[which]++ < 2)
        return TRANSPORT_FULL;
    memset(out, 7, TRANSPORT_KEY_BYTES); /* the same for all pairs */
    return GSHMEM_OK;
}

static uint64_t apply(void *context, enum gshmem_amo amo, int type, void *target, uint64_t operand,
                      uint64_t compare)
{
    const struct pe *p = context;
    const size_t bytes = atomic_type_bytes(type);

    CHECK(bytes && amo <= GSHMEM_AMO_XOR && (uintptr_t)target % bytes == 0);
    CHECK((uintptr_t)target - (uintptr_t)p->memory[0] <= SEGMENT - bytes ||
          (uintptr_t)target - (uintptr_t)p->memory[1] <= SMALL - bytes);
    return atomic_apply(amo, type, target, operand, compare);
}

/* A runtime passes on each loss, and lets the transport forget whom it has lost. */
static void lose(void *context, int which, gshmem_status_t status, const char *why)
{
    struct pe *p = context;

    CHECK(which >= 0 && which < PES && which != (int)(p - pe) && status && why);
    p->lost_by[which] = status;
    if (p->lost[which]++ == 0 && p->t) {
        transport_tell(p->t, which);
        transport_lose(p->t, which, GSHMEM_ERR_PEER_DEAD);
    }
}

static void be_refused(void *context, int which)
{
    CHECK(which >= 0 && which < PES);
    ((struct pe *)context)->refused[which]++;
}

static void be_told(void *context, int from, int which)
{
    CHECK(from >= 0 && from < PES && which >= 0 && which < PES);
    ((struct pe *)context)->notified[from][which]++;
}

static void receive(void *context, int from, const void *note, size_t bytes)
{
    struct pe *p = context;

    if (p->below) { /* of the subject's own */
        transport_receive(p->t, from, note, bytes);
        return;
    }
    CHECK(p->notes < LOG && bytes <= TRANSPORT_NOTE_MAX);
    p->received[p->notes].from = from;
    p->received[p->notes].bytes = bytes;
    memcpy(p->received[p->notes++].text, note, bytes);
}

/* A PE's own segments: others are on other hosts. */
static char *mapped(void *context, int which, int segment)
{
    struct pe *p = context;

    return which == (int)(p - pe) ? p->memory[segment] : NULL;
}

/* ---- The world ---- */

uint64_t deadline(int seconds)
{
    return clock_ns() + (uint64_t)seconds * 1000000000u;
}

bool is_past(uint64_t end)
{
    return clock_ns() > end;
}

static char *guarded(size_t bytes)
{
    char *memory =
        mmap(NULL, bytes + 2 * GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(memory != MAP_FAILED);
    memset(memory, GUARD_BYTE, GUARD);
    memset(memory + GUARD + bytes, GUARD_BYTE, GUARD);
    return memory + GUARD;
}

static void check_guards(char *memory, size_t bytes)
{
    for (int i = 0; i < GUARD; i++)
        CHECK(memory[i - GUARD] == GUARD_BYTE && memory[bytes + (size_t)i] == GUARD_BYTE);
    munmap(memory - GUARD, bytes + 2 * GUARD);
}

void world_share(void)
{
    published =
        mmap(NULL, sizeof *published, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(published != MAP_FAILED);
}

void world_open(int which)
{
    struct pe *p = &pe[which];
    char why[300] = "";

    *p = (struct pe){.memory = {guarded(SEGMENT), guarded(SMALL)}};
    p->config = (struct transport_config){.size = sizeof p->config,
                                          .fail = complain,
                                          .fail_handled = complain,
                                          .info = say_nothing,
                                          .pe = which,
                                          .n_pes = PES,
                                          .one_machine = 1,
                                          .context = p,
                                          .find = find,
                                          .key = key,
                                          .apply = apply,
                                          .lost = lose,
                                          .refused = be_refused,
                                          .notified = be_told,
                                          .received = receive,
                                          .mapped = mapped,
                                          .number = settings_number_of,
                                          .text = settings_string_of,
                                          .turn = which};
    if (subject.below) {
        CHECK(transport_usable(subject.below, &p->config, why, sizeof why) > 0);
        CHECK_EQ(subject.below->open(&p->config, &p->below), GSHMEM_OK);
        p->config.below = p->below;
    }
    if (transport_usable(subject.ops, &p->config, why, sizeof why) <= 0)
        CHECK_FAIL("%s cannot be used: %s", subject.ops->name, why);
    CHECK_EQ(subject.ops->open(&p->config, &p->t), GSHMEM_OK);
    CHECK(p->t && p->t->ops == subject.ops);
    CHECK_EQ(transport_address(p->t, published->address[which], TRANSPORT_ADDRESS_MAX,
                               &published->bytes[which]),
             GSHMEM_OK);
    CHECK(published->bytes[which] <= TRANSPORT_ADDRESS_MAX);
    __atomic_fetch_add(&published->opened, 1,
                       __ATOMIC_RELEASE); /* pairs with the acquire of world_start */
}

void world_start(int which)
{
    struct pe *p = &pe[which];

    for (uint64_t end = deadline(60);
         __atomic_load_n(&published->opened, __ATOMIC_ACQUIRE) < PES;) {
        CHECK(!is_past(end));
        usleep(100);
    }
    p->config.segments = 2;
    p->config.segment[0] = (struct transport_segment){.base = p->memory[0], .bytes = SEGMENT};
    p->config.segment[1] = (struct transport_segment){.base = p->memory[1], .bytes = SMALL};
    subject.ops->begin(p->t, &p->config);
}

void world_begin(void)
{
    world_share();
    for (int i = 0; i < PES; i++)
        world_open(i);
    for (int i = 0; i < PES; i++)
        world_start(i);
}

pid_t world_fork(int which)
{
    const pid_t child = fork();

    CHECK(child >= 0);
    if (child)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody else would end it */
    world_open(which);
    world_start(which);
    for (;;) {
        if (!drive())
            usleep(50);
    }
}

void close_pe(int which)
{
    struct pe *p = &pe[which];

    if (!p->t)
        return;
    subject.ops->close(p->t);
    p->t = NULL;
    for (int i = 0; i < 2; i++) {
        check_guards(p->memory[i], i ? SMALL : SEGMENT);
        p->memory[i] = NULL;
    }
}

void world_end(void)
{
    for (int i = 0; i < PES; i++)
        close_pe(i);
    CHECK_EQ(ended, posted);
    munmap(published, sizeof *published);
}

bool drive(void)
{
    struct transport *t[PES] = {NULL};
    bool some = false;

    for (int i = 0; i < PES; i++) {
        int events = 0;
        if (!pe[i].t || pe[i].stands_still)
            continue;
        t[i] = pe[i].t;
        CHECK_EQ(subject.ops->progress(t[i], &events), GSHMEM_OK);
        some |= events > 0;
    }
    return (subject.drive && subject.drive(t)) || some;
}

void drive_for(int ms)
{
    for (const uint64_t end = clock_ns() + (uint64_t)ms * 1000000u; !is_past(end);)
        drive();
}

/* ---- Requests ---- */

enum { REQUESTS = 1 << 17 };

static bool is_done[REQUESTS];

static void done(void *tag, gshmem_status_t status)
{
    const int n = (int)(intptr_t)tag;

    CHECK(n >= 0 && n <= posted && !is_done[n]); /* each of them, and once */
    CHECK(status >= GSHMEM_OK && status <= GSHMEM_ERR_SYSTEM);
    is_done[n] = true;
    ended++;
    failed += status != GSHMEM_OK;
    aborted += status == GSHMEM_ERR_ABORTED;
    last_failure = status ? status : last_failure;
}

void begin_to_count(void)
{
    CHECK_EQ(ended, posted);
    memset(is_done, 0, sizeof is_done);
    ended = failed = aborted = posted = 0;
}

gshmem_status_t try_post(int from, struct transport_request r)
{
    CHECK(posted < REQUESTS && pe[from].t);
    r.done = done;
    r.tag = (void *)(intptr_t)posted;
    const gshmem_status_t status = subject.ops->post(pe[from].t, &r);
    CHECK(status == GSHMEM_OK || !is_done[posted]);
    posted += status == GSHMEM_OK;
    return status;
}

bool is_taken(int from, struct transport_request r)
{
    const uint64_t end = deadline(60);
    gshmem_status_t status;

    while ((status = try_post(from, r)) == TRANSPORT_FULL) {
        CHECK(!is_past(end));
        drive();
    }
    return status == GSHMEM_OK;
}

void post(int from, struct transport_request r)
{
    if (!is_taken(from, r))
        CHECK_FAIL("PE %d does not take a request to PE %d", from, r.pe);
}

void settle(void)
{
    DRIVE_UNTIL(ended == posted);
}

void settle_well(void)
{
    settle();
    if (failed)
        CHECK_FAIL("%d of %d requests failed, one by status %d", failed, posted, last_failure);
}

struct transport_request put(int to, const void *source, uint64_t offset, uint64_t bytes)
{
    return (struct transport_request){.kind = TRANSPORT_PUT,
                                      .pe = to,
                                      .local = (void *)(uintptr_t)source,
                                      .offset = offset,
                                      .bytes = bytes};
}

struct transport_request get(int from, void *to, uint64_t offset, uint64_t bytes)
{
    return (struct transport_request){
        .kind = TRANSPORT_GET, .pe = from, .local = to, .offset = offset, .bytes = bytes};
}

struct transport_request add(int at_pe, uint64_t offset, uint64_t operand, uint64_t *old)
{
    return (struct transport_request){.kind = TRANSPORT_ATOMIC,
                                      .pe = at_pe,
                                      .offset = offset,
                                      .amo = GSHMEM_AMO_ADD,
                                      .type = GSHMEM_TYPE_UINT64,
                                      .operand = operand,
                                      .old = old};
}

struct transport_request with_signal(struct transport_request r, int op, uint64_t offset,
                                     uint64_t value)
{
    r.signal_op = (uint8_t)op;
    r.signal_offset = offset;
    r.signal_value = value;
    return r;
}

char *at(int which, uint64_t offset)
{
    return pe[which].memory[0] + offset;
}

uint64_t word(int which, uint64_t offset)
{
    /* acquire: pairs with the release of whoever stores a signal */
    return __atomic_load_n((uint64_t *)(void *)at(which, offset), __ATOMIC_ACQUIRE);
}

static unsigned char byte_of(size_t i, unsigned seed)
{
    return (unsigned char)(i * 31 + i / 253 + seed * 97 + 1);
}

void fill(void *to, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)to)[i] = byte_of(i, seed);
}

void check_filled(const void *from, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++) {
        if (((const unsigned char *)from)[i] != byte_of(i, seed))
            CHECK_FAIL("byte %zu of %zu is %d, expected %d", i, bytes,
                       ((const unsigned char *)from)[i], byte_of(i, seed));
    }
}
