/* The verbs transport without a NIC and without a runtime: two PEs in one process over the fake of
 * libibverbs, with a transport below that carries notes and keeps count of requests. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdlib.h>

#include "check.h"
#include "fake.h"
#include "gshmem/rma.h"
#include "gshmem/type.h"
#include "runtime/base/settings.h"
#include "transport/verbs/verbs.h"

enum { PES = 2, SEGMENT = 40 << 20, NOTES = 64 };

struct pe {
    struct transport *t;
    struct transport_config config;
    struct transport below;
    int lost;
    char why[400];
    int passed_down;
    struct {
        int to;
        size_t bytes;
        unsigned char text[TRANSPORT_NOTE_MAX];
    } note[NOTES];
    int notes;
    int says_nothing; /* where it publishes its address */
    int full; /* so many calls of say are answered with TRANSPORT_FULL */
    char *memory;
};

static struct pe pe[PES];
static char complaint[400];

/* ---- What the transport is lent ---- */

static gshmem_status_t complain(gshmem_status_t status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(complaint, sizeof complaint, format, args);
    va_end(args);
    return status;
}

static void be_silent(const char *format, ...)
{
    (void)format;
}

static uint64_t apply(void *context, enum gshmem_amo amo, int type, void *target, uint64_t operand,
                      uint64_t compare)
{
    uint64_t old = *(uint64_t *)target;

    (void)context, (void)compare;
    CHECK_EQ(type, GSHMEM_TYPE_UINT64);
    CHECK_EQ(amo, GSHMEM_AMO_ADD);
    *(uint64_t *)target = old + operand;
    return old;
}

static void lost(void *context, int which, gshmem_status_t status, const char *why)
{
    struct pe *p = context;

    CHECK(which == 1 - (int)(p - pe) && status);
    snprintf(p->why, sizeof p->why, "%s", why);
    p->lost++;
}

static gshmem_status_t find(void *context, int which, void *address, size_t capacity, size_t *bytes)
{
    (void)context;
    *bytes = 0;
    return pe[which].says_nothing
               ? GSHMEM_OK
               : gshmem_transport.address(pe[which].t, address, capacity, bytes);
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

static gshmem_status_t below_post(struct transport *t, const struct transport_request *r)
{
    owner(t)->passed_down++;
    r->done(r->tag, GSHMEM_OK);
    return GSHMEM_OK;
}

static gshmem_status_t below_say(struct transport *t, int to, const void *note, size_t bytes)
{
    struct pe *p = owner(t);

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
    (void)t;
    *events = 0;
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

static void open_pe(int me, bool device)
{
    struct pe *p = &pe[me];

    *p = (struct pe){.below = {&below_ops}, .memory = calloc(1, SEGMENT)};
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
    p->config.segments = 1;
    p->config.segment[0].base = p->memory;
    p->config.segment[0].bytes = SEGMENT;
    if (device)
        p->config.device = (struct device *)p; /* some */
    gshmem_transport.begin(p->t, &p->config);
}

static void carry_notes(int from)
{
    int n = pe[from].notes;

    for (int i = 0; i < n; i++)
        gshmem_transport.hear(pe[1 - from].t, from, pe[from].note[i].text, pe[from].note[i].bytes);
    pe[from].notes -= n;
    memmove(pe[from].note, pe[from].note + n, (size_t)pe[from].notes * sizeof pe[from].note[0]);
}

static bool drive(void)
{
    bool some = fake_run();
    int events;

    for (int i = 0; i < PES; i++) {
        carry_notes(i);
        CHECK_EQ(gshmem_transport.progress(pe[i].t, &events), GSHMEM_OK);
        some |= events > 0;
    }
    return some;
}

static int ok, not_ok, posted, last_tag;
static bool any_order; /* both PEs post */
static gshmem_status_t last_status;

static void done(void *tag, gshmem_status_t status)
{
    CHECK((intptr_t)tag > last_tag || any_order); /* as they were posted, of one PE */
    last_tag = (int)(intptr_t)tag;
    *(status ? &not_ok : &ok) += 1;
    last_status = status ? status : last_status;
}

static gshmem_status_t try_post(int from, struct transport_request r)
{
    r.pe = 1 - from;
    r.done = done;
    r.tag = (void *)(intptr_t)(posted + 1);
    posted++;
    gshmem_status_t status = gshmem_transport.post(pe[from].t, &r);
    posted -= status != GSHMEM_OK;
    return status;
}

static void post(int from, struct transport_request r)
{
    gshmem_status_t status;
    int rounds = 0;

    while ((status = try_post(from, r)) == TRANSPORT_FULL && rounds++ < 10000)
        drive();
    CHECK_EQ(status, GSHMEM_OK);
}

static void settle(void)
{
    for (int rounds = 0; ok + not_ok < posted; rounds++) {
        drive();
        if (rounds == 100000)
            CHECK_FAIL("%d of %d requests have ended", ok + not_ok, posted);
    }
}

static void begin(unsigned seed)
{
    ok = not_ok = posted = last_tag = 0;
    last_status = GSHMEM_OK;
    complaint[0] = 0;
    fake_begin(seed);
    open_pe(0, false);
    open_pe(1, false);
}

static void end(void)
{
    for (int i = 0; i < PES; i++) {
        gshmem_transport.close(pe[i].t);
        free(pe[i].memory);
    }
    CHECK_EQ(fake.registered, 0);
    fake_end();
}

static struct transport_request put(void *from, uint64_t offset, uint64_t bytes)
{
    return (struct transport_request){
        .kind = TRANSPORT_PUT, .local = from, .offset = offset, .bytes = bytes};
}

static struct transport_request get(void *to, uint64_t offset, uint64_t bytes)
{
    return (struct transport_request){
        .kind = TRANSPORT_GET, .local = to, .offset = offset, .bytes = bytes};
}

static struct transport_request add(uint64_t offset, uint64_t operand, uint64_t *old)
{
    return (struct transport_request){.kind = TRANSPORT_ATOMIC,
                                      .offset = offset,
                                      .amo = GSHMEM_AMO_ADD,
                                      .type = GSHMEM_TYPE_UINT64,
                                      .operand = operand,
                                      .old = old};
}

static struct transport_request with_signal(struct transport_request r, int op, uint64_t offset,
                                            uint64_t value)
{
    r.signal_op = op;
    r.signal_offset = offset;
    r.signal_value = value;
    return r;
}

static uint64_t *word(int which, uint64_t offset)
{
    return (uint64_t *)(void *)(pe[which].memory + offset);
}

/* ---- Data ---- */

static void fill(char *at, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (char)(i * 31 + seed);
}

/* All ways that data can take: in the work request, by a slot, from the heap and from the program's
 * own memory, across chunks; there and back. */
static void sizes(unsigned seed)
{
    static const uint64_t all[] = {1,    7,    8,       128,      129, 192,
                                   4096, 4097, 1 << 20, 33 << 20, 0};
    static char own[33 << 20], back[33 << 20];

    begin(seed);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const uint64_t offset = 5 + i;
        char *source = i % 2 ? own : pe[0].memory + 3;
        fill(source, all[i], (unsigned)i);
        post(0, put(source, offset, all[i]));
        settle();
        CHECK(memcmp(pe[1].memory + offset, source, all[i]) == 0);
        memset(back, 0, all[i]);
        post(0, get(back, offset, all[i]));
        settle();
        CHECK(memcmp(back, source, all[i]) == 0);
        post(1, get(pe[1].memory + (1 << 20) * (i < 8), 3, i < 8 ? all[i] : 64));
        settle();
    }
    /* from chunks to chunks that end elsewhere */
    fill(pe[0].memory + 3, 33 << 20, seed);
    post(0, put(pe[0].memory + 3, 77, 33 << 20));
    settle();
    CHECK(memcmp(pe[1].memory + 77, pe[0].memory + 3, 33 << 20) == 0);
    CHECK_EQ(not_ok + pe[0].lost + pe[1].lost, 0);
    end();
}

/* The source of a small put may be used again at once. */
static void sources_are_copied(void)
{
    begin(1);
    for (uint64_t i = 0, value; i < 600; i++) {
        char large[3000];
        value = i;
        fill(large, sizeof large, (unsigned)i);
        post(0, put(&value, 8 * i, 8));
        post(0, put(large, 100000 + 3000 * i, sizeof large));
        value = ~0ull;
        memset(large, -1, sizeof large);
    }
    settle();
    for (uint64_t i = 0; i < 600; i++) {
        char large[3000];
        fill(large, sizeof large, (unsigned)i);
        CHECK_EQ(*word(1, 8 * i), i);
        CHECK(memcmp(pe[1].memory + 100000 + 3000 * i, large, sizeof large) == 0);
    }
    end();
}

/* ---- Order ---- */

/* Random requests both ways, of both kinds of path, against a model that does them in order. */
static void in_order(unsigned seed)
{
    enum { WORDS = 16, STEPS = 3000 };
    static uint64_t model[2][WORDS], old[STEPS], expected[STEPS], value[STEPS];

    begin(seed);
    memset(model, 0, sizeof model);
    srand(seed);
    for (int i = 0; i < STEPS; i++) {
        const int from = rand() % 8 == 0, at = rand() % WORDS, other = rand() % WORDS;
        uint64_t *there = model[1 - from];
        struct transport_request r;

        value[i] = (uint64_t)i * 1000003 + 1;
        expected[i] = old[i] = 0;
        switch (rand() % 5) {
        case 0:
            r = put(&value[i], 8 * (uint64_t)at, 8);
            there[at] = value[i];
            break;
        case 1:
            r = with_signal(put(&value[i], 8 * (uint64_t)at, 8), GSHMEM_SIGNAL_SET,
                            8 * (uint64_t)other, (uint64_t)i);
            there[at] = value[i];
            there[other] = (uint64_t)i;
            break;
        case 2:
            r = with_signal(put(&value[i], 8 * (uint64_t)at, 8), GSHMEM_SIGNAL_ADD,
                            8 * (uint64_t)other, 3);
            there[at] = value[i];
            there[other] += 3;
            break;
        case 3:
            r = add(8 * (uint64_t)at, 7, rand() % 2 ? &old[i] : NULL);
            expected[i] = r.old ? there[at] : 0;
            there[at] += 7;
            break;
        default:
            r = get(&old[i], 8 * (uint64_t)at, 8);
            expected[i] = there[at];
        }
        r.flags = rand() % 2 ? TRANSPORT_MORE : 0;
        if (from != 0) /* the order between both PEs' requests is nobody's */
            settle();
        post(from, r);
        if (from != 0)
            settle();
        if (rand() % 4 == 0)
            drive();
    }
    settle();
    for (int i = 0; i < STEPS; i++)
        CHECK_EQ(old[i], expected[i]);
    for (int which = 0; which < 2; which++) {
        for (int i = 0; i < WORDS; i++)
            CHECK_EQ(*word(which, 8 * (uint64_t)i), model[which][i]);
    }
    CHECK_EQ(not_ok + pe[0].lost + pe[1].lost, 0);
    end();
}

/* ---- What it costs ---- */

static void warm_up(void)
{
    uint64_t value = 1;

    post(0, put(&value, 0, 8));
    settle();
}

/* A put with a signal is one work request more than a put, posted together; many small puts are few
 * posts, and few completions. */
static void economy(void)
{
    static char data[1 << 20];
    uint64_t value = 1;

    begin(1);
    warm_up();
    struct fake_count before = fake;
    post(0, put(data, 4096, 3000));
    settle();
    CHECK_EQ(fake.works - before.works, 1);
    before = fake;
    post(0, with_signal(put(data, 4096, 3000), GSHMEM_SIGNAL_SET, 0, 1));
    settle();
    CHECK_EQ(fake.works - before.works, 2);
    CHECK_EQ(fake.posts - before.posts, 1);
    CHECK_EQ(fake.signalled - before.signalled, 1);
    before = fake;
    for (int i = 0; i < 64; i++) {
        struct transport_request r = put(&value, 8 * (uint64_t)i, 8);
        r.flags = TRANSPORT_MORE;
        post(0, r);
    }
    settle();
    CHECK_EQ(fake.works - before.works, 64);
    CHECK(fake.posts - before.posts <= 3);
    CHECK(fake.signalled - before.signalled <= 3);
    end();
}

/* ---- Connecting ---- */

static void both_at_once(unsigned seed)
{
    uint64_t value = 5;

    begin(seed);
    for (int i = 0; i < 2; i++) { /* by turns: tags must rise */
        struct transport_request r = put(&value, 8 * (uint64_t)i, 8);
        r.flags = TRANSPORT_MORE;
        r.pe = 1 - i;
        r.done = done;
        r.tag = (void *)(intptr_t)++posted;
        if (i)
            last_tag = -1;
        CHECK_EQ(gshmem_transport.post(pe[i].t, &r), GSHMEM_OK);
    }
    pe[0].full = pe[1].full = 2;
    for (int rounds = 0; ok < 2 && rounds < 1000; rounds++) {
        last_tag = -1;
        drive();
    }
    CHECK_EQ(ok, 2);
    CHECK(*word(1, 0) == 5 && *word(0, 8) == 5);
    end();
}

static void without_nic_on_one_side(void)
{
    static char data[8192];

    ok = not_ok = posted = last_tag = 0;
    fake_begin(1);
    open_pe(0, false);
    open_pe(1, true);
    post(0, put(data, 0, 8));
    post(0, put(data, 0, 8192));
    settle();
    CHECK_EQ(pe[0].passed_down, 2);
    post(0, add(0, 1, NULL));
    CHECK_EQ(pe[0].passed_down, 3);
    post(1, put(data, 0, 8));
    CHECK_EQ(pe[1].passed_down, 1);
    CHECK_EQ(not_ok, 0);
    end();
}

/* Requests of both to the other, posted before anything has been heard. */
static void post_both(void)
{
    static uint64_t value = 5;

    any_order = true;
    for (int i = 0; i < 2; i++) {
        post(i, put(&value, 8, 8));
        post(i, add(16, 1, NULL));
    }
    settle();
    any_order = false;
    CHECK_EQ(ok, 4);
    CHECK_EQ(pe[0].lost + pe[1].lost, 0);
}

static void go_below(void)
{
    post_both();
    CHECK_EQ(pe[0].passed_down, 2);
    CHECK_EQ(pe[1].passed_down, 2);
    CHECK(*word(0, 8) == 0 && *word(1, 8) == 0); /* nothing went both ways */
    end();
}

/* One that says nothing of verbs is told nothing: it would not listen. */
static void other_uses_one_below_alone(void)
{
    uint64_t value = 5;

    begin(1);
    pe[1].says_nothing = 1;
    post(0, put(&value, 0, 8));
    CHECK_EQ(pe[0].passed_down, 1);
    CHECK_EQ(fake.works, 0);
    end();
}

static void of_other_kind(void)
{
    ok = not_ok = posted = last_tag = 0;
    fake_begin(1);
    open_pe(0, false);
    fake.infiniband = 1;
    open_pe(1, false);
    go_below();
}

/* Found out when the queue pairs are told of each other, by either or both. */
static void no_way(unsigned seed)
{
    begin(seed);
    fake_refuse_way(seed % 2 ? 1 : 2);
    go_below();
}

/* Or only by the first message, of either. */
static void nothing_gets_through(unsigned seed)
{
    begin(seed);
    fake_fail(1 + (int)seed % 2, IBV_WC_RETRY_EXC_ERR);
    go_below();
}

static void nonsense_in_notes(void)
{
    uint64_t value = 1;

    for (unsigned what = 0; what < 200; what++) {
        begin(what);
        CHECK_EQ(try_post(0, put(&value, 0, 8)), GSHMEM_OK);
        CHECK_EQ(pe[0].notes, 1);
        carry_notes(0);
        CHECK(pe[1].notes >= 1);
        unsigned char *note = pe[1].note[0].text;
        if (what < 12)
            note[what] ^= 0x55;
        else if (what < 40)
            pe[1].note[0].bytes = what - 12;
        else if (what < 56)
            note[8] = (unsigned char)(what - 40 + (what - 40 > 0) * 3);
        else
            note[what % 56] = (unsigned char)(what * 7);
        for (int i = 0; i < 50; i++)
            drive();
        CHECK(pe[0].lost <= 1 && not_ok == (pe[0].lost ? 1 : not_ok));
        end();
    }
}

/* ---- Errors ---- */

static void every_status(void)
{
    static char data[8192];

    for (int status = IBV_WC_SUCCESS + 1; status <= IBV_WC_GENERAL_ERR; status++) {
        begin((unsigned)status);
        warm_up();
        post(0, put(data, 0, 8192));
        post(0, get(data, 0, 8192));
        fake_fail(1, (enum ibv_wc_status)status);
        for (int i = 0; i < 5; i++)
            post(0, put(data, 0, 64));
        settle();
        CHECK_EQ(not_ok, 7);
        CHECK_EQ(pe[0].lost, 1);
        CHECK(strstr(pe[0].why, "fake0 port 1, 0.0.0.1") && strstr(pe[0].why, "status"));
        CHECK_EQ(last_status, status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR
                                  ? GSHMEM_ERR_PEER_DEAD
                                  : GSHMEM_ERR_TRANSPORT);
        CHECK(try_post(0, put(data, 0, 8)) == last_status);
        end();
    }
}

static void posting_fails_in_the_middle(void)
{
    uint64_t value = 1;

    begin(1);
    warm_up();
    fake_refuse_post(1, ENOMEM);
    for (int i = 0; i < 8; i++) {
        struct transport_request r = put(&value, 0, 8);
        r.flags = TRANSPORT_MORE;
        post(0, r);
    }
    settle();
    CHECK_EQ(not_ok, 8);
    CHECK_EQ(pe[0].lost, 1);
    end();
}

static void memory_that_cannot_be_registered(void)
{
    static char data[100000];

    begin(1);
    warm_up();
    fake_refuse_memory(1); /* the program's own: that put fails, and no other */
    post(0, put(data, 0, sizeof data));
    post(0, put(data, 0, 100));
    settle();
    CHECK_EQ(not_ok, 1);
    CHECK_EQ(ok, 2);
    CHECK_HAS(complaint, "ulimit -l");
    fake_refuse_memory(1); /* the peer's: nothing can be put there any more */
    post(0, put(data, 33 << 20, 100));
    settle();
    CHECK_EQ(not_ok, 2);
    CHECK_EQ(pe[0].lost, 1);
    end();
}

static void beyond_the_end(void)
{
    char data[64] = {0};

    begin(1);
    warm_up();
    post(0, put(data, SEGMENT - 63, 64));
    settle();
    CHECK_EQ(not_ok, 1);
    CHECK_HAS(pe[0].why, "ends before");
    end();
}

static void lost_by_others(void)
{
    static char data[8192];

    begin(1);
    warm_up();
    post(0, put(data, 0, 8192));
    gshmem_transport.lose(pe[0].t, 1, GSHMEM_ERR_PEER_DEAD);
    CHECK_EQ(not_ok, 1);
    CHECK_EQ(last_status, GSHMEM_ERR_PEER_DEAD);
    CHECK_EQ(pe[0].lost, 0);
    end();
}

/* ---- Hostile messages ---- */

static void bad_message(struct message m)
{
    struct verbs *v;
    uint64_t value = 1;

    begin(1);
    warm_up();
    v = (struct verbs *)pe[0].t;
    post(1, put(&value, 0, 8));
    settle();
    m.from = 0;
    m.number = m.number ? m.number : v->to[1]->said + 1;
    CHECK(issue_message(v, v->to[1], &m));
    issue_batched(v, v->to[1]);
    for (int i = 0; i < 100; i++)
        drive();
    CHECK_EQ(pe[1].lost, 1);
    CHECK_HAS(pe[1].why, "makes no sense");
    end();
}

static void hostile(void)
{
#define BAD(...) bad_message((struct message){__VA_ARGS__})
    BAD(.kind = MESSAGE_PUT, .segment = 1, .bytes = 8, .data = "12345678");
    BAD(.kind = MESSAGE_PUT, .offset = SEGMENT - 7, .bytes = 8, .data = "12345678");
    BAD(.kind = MESSAGE_PUT, .offset = UINT64_MAX - 3, .bytes = 8, .data = "12345678");
    BAD(.kind = MESSAGE_PUT, .signal_op = 3);
    BAD(.kind = MESSAGE_PUT, .signal_op = GSHMEM_SIGNAL_ADD, .a = 4);
    BAD(.kind = MESSAGE_PUT, .signal_op = GSHMEM_SIGNAL_SET, .a = SEGMENT);
    BAD(.kind = MESSAGE_ATOMIC, .type = GSHMEM_TYPE_UINT64, .offset = 4);
    BAD(.kind = MESSAGE_ATOMIC, .type = GSHMEM_TYPE_UINT64, .offset = SEGMENT);
    BAD(.kind = MESSAGE_ATOMIC, .type = 200);
    BAD(.kind = MESSAGE_ATOMIC, .type = GSHMEM_TYPE_UINT64, .amo = (enum gshmem_amo)200);
    BAD(.kind = MESSAGE_REPLY);
    BAD(.kind = MESSAGE_PUT, .number = 7);
}

/* Places where messages go: none is lost or used twice, however many come. */
static void many_messages(void)
{
    begin(3);
    for (int i = 0; i < 5000; i++) {
        struct transport_request r = add(0, 1, NULL);
        r.flags = i % 7 ? TRANSPORT_MORE : 0;
        post(0, r);
    }
    settle();
    CHECK_EQ(*word(1, 0), 5000);
    end();
}

int main(void)
{
    CHECK_EQ(settings_load(), GSHMEM_OK);
    for (unsigned seed = 1; seed <= 3; seed++)
        sizes(seed);
    sources_are_copied();
    for (unsigned seed = 1; seed <= 40; seed++)
        in_order(seed);
    economy();
    for (unsigned seed = 1; seed <= 20; seed++)
        both_at_once(seed);
    without_nic_on_one_side();
    other_uses_one_below_alone();
    of_other_kind();
    for (unsigned seed = 1; seed <= 20; seed++) {
        no_way(seed);
        nothing_gets_through(seed);
    }
    nonsense_in_notes();
    every_status();
    posting_fails_in_the_middle();
    memory_that_cannot_be_registered();
    beyond_the_end();
    lost_by_others();
    hostile();
    many_messages();
    return 0;
}
