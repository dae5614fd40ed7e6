/* What goes wrong, and how it ends. */
#define _GNU_SOURCE
#include "conform.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "runtime/base/settings.h"

enum { FLAG = 8, DATA = 4096, BYTES = 300000 };

/* Some transports learn that a PE is gone from its silence alone. A process of its own may stand still on a busy
 * machine, and is not to be lost before it dies. */
static void shorten_silence(void)
{
    setenv("GSHMEM_PEER_TIMEOUT", subject.in_one_process ? "1" : "8", 1);
    CHECK_EQ(settings_load(), GSHMEM_OK);
}

/* ---- Bad addresses ---- */

static void check_untouched(int which)
{
    for (size_t i = 0; i < SEGMENT; i += 8)
        CHECK_EQ(*(uint64_t *)(void *)at(which, i), 0);
    for (size_t i = 0; i < SMALL; i += 8)
        CHECK_EQ(*(uint64_t *)(void *)(pe[which].memory[1] + i), 0);
}

/* It is refused, or fails, changes nothing, and others go on. */
static void is_refused(struct transport_request r)
{
    static char data[BYTES];
    static uint64_t old;
    const bool is_atomic = r.kind == TRANSPORT_ATOMIC;

    begin_to_count();
    if (!is_atomic)
        r.local = data;
    else
        r.old = &old;
    memset(data, r.kind == TRANSPORT_GET ? 0 : 0x77, sizeof data);
    world_begin();
    if (is_taken(0, r)) {
        settle();
        CHECK_EQ(failed, posted);
    }
    check_untouched(1);
    for (unsigned i = 0; r.kind == TRANSPORT_GET && i < sizeof data; i++)
        CHECK_EQ(data[i], 0);
    CHECK_EQ(pe[2].lost[0], 0);
    begin_to_count(); /* whatever has become of these two, the third */
    post(2, put(1, &(uint64_t){5}, FLAG, 8));
    settle_well();
    CHECK_EQ(word(1, FLAG), 5);
    world_end();
}

static void bad_addresses(void)
{
    static const uint64_t offsets[] = {SEGMENT - 63, SEGMENT, 1ull << 40, UINT64_MAX - 7,
                                       UINT64_MAX - 63};
    struct transport_request r;

    shorten_silence();
    for (unsigned i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        is_refused(put(1, NULL, offsets[i], 64));
        is_refused(get(1, NULL, offsets[i], 64));
    }
    is_refused(add(1, UINT64_MAX - 7, 1, NULL));
    r = put(1, NULL, SMALL - 63, 64);
    r.segment = 1;
    is_refused(r);
    is_refused(add(1, FLAG + 4, 1, NULL)); /* not aligned */
}

/* Of a put whose data may be stored, and whose signal may not: neither is. */
static void bad_signals(void)
{
    static const uint64_t offsets[] = {SEGMENT - 7, SEGMENT, 1ull << 40, UINT64_MAX - 7, FLAG + 4};
    static const uint64_t sizes[] = {0, 8, DATA, BYTES};
    struct transport_request r;

    shorten_silence();
    for (unsigned i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        for (unsigned s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            is_refused(with_signal(put(1, NULL, DATA, sizes[s]),
                                   (i + s) % 2 ? GSHMEM_SIGNAL_SET : GSHMEM_SIGNAL_ADD, offsets[i],
                                   1));
        }
    }
    is_refused(with_signal(put(1, NULL, DATA, BYTES), GSHMEM_SIGNAL_SET, SEGMENT, 1));
    r = with_signal(put(1, NULL, DATA, DATA), GSHMEM_SIGNAL_ADD, SMALL, 1);
    r.signal_segment = 1;
    is_refused(r);
}

/* Segments that there are not, and atomics that there are not. */
static void bad_numbers(void)
{
    static const uint8_t segments[] = {2, TRANSPORT_SEGMENT_MAX, 255};
    struct transport_request r;

    shorten_silence();
    for (unsigned i = 0; i < sizeof segments; i++) {
        struct transport_request all[] = {
            put(1, NULL, DATA, 8), put(1, NULL, DATA, BYTES), get(1, NULL, DATA, 64),
            add(1, FLAG, 1, NULL)};
        for (unsigned k = 0; k < sizeof all / sizeof all[0]; k++) {
            all[k].segment = segments[i];
            is_refused(all[k]);
        }
        r = with_signal(put(1, NULL, DATA, DATA), GSHMEM_SIGNAL_ADD, FLAG, 1);
        r.signal_segment = segments[i];
        is_refused(r);
        r.signal_op = GSHMEM_SIGNAL_SET;
        is_refused(r);
    }
    r = add(1, FLAG, 1, NULL);
    r.amo = GSHMEM_AMO_XOR + 1;
    is_refused(r);
    r.amo = 255;
    is_refused(r);
    r = add(1, FLAG, 1, NULL);
    r.type = 255;
    is_refused(r);
}

/* ---- A PE that is given up ---- */

/* The same of PEs that have never talked to each other. */
static void given_up_unmet(void)
{
    uint64_t value = 6;
    int expected = 0;

    begin_to_count();
    world_begin();
    transport_lose(pe[0].t, 1, GSHMEM_ERR_PEER_DEAD);
    for (int round = 0; round < 3; round++) {
        expected += is_taken(0, put(1, &value, FLAG, 8));
        drive();
        CHECK_EQ(ended, posted); /* at once */
        CHECK_EQ(failed, expected);
        drive_for(5);
    }
    CHECK_EQ(word(1, FLAG), 0);
    post(0, put(2, &value, FLAG, 8));
    post(2, put(0, &value, FLAG, 8));
    post(1, put(2, &value, FLAG, 8));
    settle();
    CHECK_EQ(failed, expected);
    expected += is_taken(1, put(0, &value, DATA, 8)); /* ends before close, or by it */
    DRIVE_UNTIL(pe[1].refused[0]);
    drive_for(5);
    CHECK_EQ(word(0, DATA), 0);
    CHECK_EQ(pe[0].lost[2] + pe[2].lost[0] + pe[2].lost[1], 0);
    world_end();
    CHECK_EQ(failed, expected);
}

/* Requests to a PE that this one has lost end, and that PE learns of it; a third notices
 * nothing. */
static void given_up(void)
{
    static char data[BYTES];

    shorten_silence();
    world_begin();
    for (int from = 0; from < PES; from++) {
        for (int to = 0; to < PES; to++) {
            if (to != from)
                post(from, put(to, data, DATA, 8));
        }
    }
    settle_well();
    pe[1].stands_still = true;
    post(0, get(1, data, DATA, BYTES));
    transport_lose(pe[0].t, 1, GSHMEM_ERR_PEER_DEAD);
    DRIVE_UNTIL(ended == posted);
    CHECK_EQ(failed, 1);
    CHECK_EQ(last_failure, GSHMEM_ERR_PEER_DEAD);
    if (is_taken(0, put(1, data, DATA, 8))) {
        DRIVE_UNTIL(ended == posted);
        CHECK_EQ(failed, 2);
    }
    pe[1].stands_still = false;
    const int before = failed;
    if (is_taken(1, put(0, data, DATA, 8))) {
        settle();
        CHECK_EQ(failed, before + 1);
    }
    DRIVE_UNTIL(pe[1].refused[0]);
    post(2, put(0, data, DATA, 8));
    post(2, put(1, data, DATA, 8));
    post(0, put(2, data, DATA, 8));
    post(1, put(2, data, DATA, 8));
    const int so_far = failed;
    settle();
    CHECK_EQ(failed, so_far);
    CHECK_EQ(pe[2].lost[0] + pe[2].lost[1], 0);
    world_end();
    given_up_unmet();
}

/* A loss is told to those this PE has talked to, and to those it talks to later, once. */
static void notified(void)
{
    uint64_t value = 3;

    world_begin();
    post(0, put(1, &value, FLAG, 8));
    settle_well();
    transport_tell(pe[0].t, 2);
    DRIVE_UNTIL(pe[1].notified[0][2] == 1);
    CHECK_EQ(pe[2].notified[0][2], 0);
    CHECK_EQ(pe[2].notified[0][1], 0);
    transport_tell(pe[1].t, 0); /* to PE 2 it has not talked yet */
    post(1, put(2, &value, FLAG, 8));
    DRIVE_UNTIL(pe[2].notified[1][0] == 1);
    settle_well();
    drive_for(50);
    CHECK_EQ(pe[1].notified[0][2], 1);
    CHECK_EQ(pe[2].notified[1][0], 1);
    transport_tell(pe[1].t, 1); /* its own */
    DRIVE_UNTIL(pe[0].notified[1][1] + pe[2].notified[1][1] > 0);
    settle_well();
    CHECK_EQ(pe[2].notified[1][1], 1); /* PE 1 has requested something of PE 2 alone */
    world_end();
}

/* ---- The end ---- */

/* One that has been opened, and no more, is closed; and in the middle of a job another is
 * opened. */
static void opened_and_closed(void)
{
    uint64_t value = 4;

    world_share();
    for (int i = 0; i < PES; i++)
        world_open(i);
    world_end();
    for (int round = 0; round < 5; round++) {
        world_begin();
        post(0, put(1, &value, FLAG, 8));
        if (round % 2)
            settle_well();
        world_end();
        failed = 0; /* what was under way */
    }
}

/* An open that fails, as no descriptor is left, leaves *out as it was. */
static void open_fails(void)
{
    struct transport *const none = (struct transport *)(void *)pe, *t = none;
    struct rlimit before;

    world_begin();
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &(struct rlimit){.rlim_max = before.rlim_max}), 0);
    const gshmem_status_t status = subject.ops->open(&pe[0].config, &t);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    if (status)
        CHECK(t == none);
    else
        subject.ops->close(t); /* it needs none */
    post(2, put(1, &(uint64_t){1}, FLAG, 8));
    settle_well();
    world_end();
}

/* Whoever closes with requests under way is told the end of each, and nothing changes
 * afterwards. */
static void closes_under_way(void)
{
    char *back = calloc(1, BYTES), *then = malloc(BYTES + sizeof(uint64_t[20]));
    uint64_t old[20] = {0};

    CHECK(back && then);
    for (int rounds = 0; rounds < 6; rounds++) {
        begin_to_count();
        world_begin();
        for (int i = 0; i < 20; i++) {
            try_post(0, get(1, back, DATA, BYTES));
            try_post(0, put(2, back, DATA, BYTES));
            try_post(0, add(1, FLAG, 1, &old[i]));
            try_post(1, get(0, at(1, DATA + BYTES), DATA, BYTES));
        }
        for (int i = 0; i < rounds * rounds; i++)
            drive();
        const int others = posted - ended, before = failed - aborted;
        close_pe(0);
        CHECK(ended + 20 >= posted && posted - ended <= others); /* PE 1 has at most 20 */
        CHECK_EQ(failed - aborted, before);
        memcpy(then, back, BYTES);
        memcpy(then + BYTES, old, sizeof old);
        settle(); /* those of PE 1 fail, or were done */
        drive_for(5);
        CHECK(memcmp(then, back, BYTES) == 0 && memcmp(then + BYTES, old, sizeof old) == 0);
        CHECK(pe[1].lost[0] <= 1);
        world_end();
    }
    free(back);
    free(then);
}

/* A PE that leaves in good order is no death; what is asked of it later fails. */
static void leaves(void)
{
    uint64_t value = 4;

    shorten_silence();
    world_begin();
    for (int to = 1; to < PES; to++)
        post(0, put(to, &value, FLAG, 8));
    post(1, put(0, &value, FLAG, 8));
    settle_well();
    DRIVE_UNTIL(!transport_busy(pe[0].t) && !transport_busy(pe[1].t));
    close_pe(0);
    drive_for(50);
    CHECK_EQ(pe[2].lost[0], 0); /* it had nothing to do with it */
    if (pe[1].lost[0])
        CHECK_EQ(pe[1].lost_by[0], GSHMEM_ERR_UNREACHABLE);
    if (is_taken(1, put(0, &value, FLAG, 8))) {
        settle();
        CHECK_EQ(failed, 1);
    }
    const int before = failed;
    post(1, put(2, &value, FLAG, 8));
    settle();
    CHECK_EQ(failed, before);
    world_end();
}

/* ---- Death ---- */

/* The process of a PE; or, where hardware keeps it here, what its death is to others. */
static pid_t start_victim(int which)
{
    world_share();
    const pid_t child = subject.in_one_process ? 0 : world_fork(which);

    for (int i = 0; i < PES; i++) {
        if (i != which || !child)
            world_open(i);
    }
    for (int i = 0; i < PES; i++) {
        if (i != which || !child)
            world_start(i);
    }
    return child;
}

static void die(int which, pid_t child)
{
    if (child) {
        kill(child, SIGKILL);
        CHECK_EQ(waitpid(child, NULL, 0), child);
        return;
    }
    transport_leave_parent(pe[which].t);
    pe[which].stands_still = true;
}

/* As end, but for the one that is dead, which cannot be closed. */
static void end_without(int which)
{
    pe[which].t = NULL;
    world_end();
    if (subject.in_one_process)
        _exit(0); /* hardware of the dead is left open */
}

/* Requests to a PE that dies end with a failure, each once. The PE that posted them loses it, and
 * tells the third; later requests fail. */
static void dies(void)
{
    static char data[BYTES], back[BYTES];
    shorten_silence();
    const pid_t child = start_victim(1);

    post(0, put(1, data, DATA, BYTES));
    post(0, put(2, data, DATA, 8));
    post(2, put(0, data, DATA, 8));
    settle_well();
    for (int i = 0; i < 10; i++) {
        try_post(0, get(1, back, DATA, BYTES));
        try_post(0, put(1, data, DATA, BYTES));
        try_post(0, add(1, FLAG, 1, NULL));
        if (i == 5)
            drive();
    }
    die(1, child);
    settle();
    CHECK(failed > 0);
    DRIVE_UNTIL(pe[0].lost[1]);
    CHECK(pe[0].lost_by[1] == GSHMEM_ERR_PEER_DEAD || pe[0].lost_by[1] == GSHMEM_ERR_TRANSPORT);
    if (subject.ops->tell)
        DRIVE_UNTIL(pe[2].notified[0][1]);
    const int before = failed;
    if (is_taken(0, put(1, data, DATA, 8))) {
        settle();
        CHECK_EQ(failed, before + 1);
    }
    const int so_far = failed;
    post(2, put(0, data, DATA, BYTES));
    settle();
    CHECK_EQ(failed, so_far);
    drive_for(20);
    CHECK(pe[0].lost[1] >= 1);
    CHECK_EQ(pe[2].notified[0][1], subject.ops->tell ? 1 : 0);
    if (!subject.ops->tell)
        printf("  (it has no `tell`)\n");
    CHECK_EQ(pe[0].lost[2] + pe[2].lost[0], 0);
    end_without(1);
}

/* A PE that has talked to one that dies loses it, though nothing is under way between them. A PE
 * that has never talked to it fails when it first does. */
static void dies_at_rest(void)
{
    static char data[64];
    shorten_silence();
    const pid_t child = start_victim(1);

    post(0, put(1, data, DATA, 8));
    settle_well();
    drive_for(20);
    die(1, child);
    DRIVE_UNTIL(pe[0].lost[1]);
    CHECK_EQ(pe[2].lost[1], 0);
    if (is_taken(2, put(1, data, DATA, 8))) {
        settle();
        CHECK_EQ(failed, 1);
    }
    end_without(1);
}

/* The death of a PE is seen though a child of it lives on, with all its descriptors. */
static void dies_with_a_child(void)
{
    static char data[64];
    int ready[2];
    pid_t *grandchild = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(grandchild != MAP_FAILED && pipe(ready) == 0);
    world_share();
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        char byte;
        alarm(180);
        world_open(1);
        world_start(1);
        while (!*(volatile uint64_t *)(void *)at(1, FLAG))
            drive();
        drive_for(300);
        const pid_t own = fork();
        if (own == 0) {
            transport_leave_parent(pe[1].t);
            CHECK_EQ(write(ready[1], "", 1), 1);
            alarm(180);
            for (;;)
                pause();
        }
        CHECK_EQ(read(ready[0], &byte, 1), 1);
        *grandchild = own;
        raise(SIGKILL);
    }
    world_open(0);
    world_open(2);
    world_start(0);
    world_start(2);
    post(0, put(1, &(uint64_t){1}, FLAG, 8));
    settle_well();
    fill(data, sizeof data, 1);
    DRIVE_UNTIL(pe[0].lost[1]);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    CHECK(*grandchild > 0 && kill(*grandchild, SIGKILL) == 0);
    end_without(1);
}

const struct scenario end_scenarios[] = {
    {"addresses", bad_addresses, 0},
    {"bad-signals", bad_signals, 0},
    {"bad-numbers", bad_numbers, 0},
    {"given-up", given_up, NEEDS_LOSE},
    {"told", notified, NEEDS_TELL},
    {"opened", opened_and_closed, 0},
    {"open-fails", open_fails, NEEDS_PROCESSES}, /* simulated hardware needs descriptors */
    {"closes", closes_under_way, 0},
    {"leaves", leaves, 0},
    {"dies", dies, 0},
    {"dies-at-rest", dies_at_rest, 0},
    {"dies-with-child", dies_with_a_child, NEEDS_PROCESSES},
    {NULL, NULL, 0},
};
