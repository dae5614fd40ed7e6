/* The map of symmetric memory by itself, with addresses that are never touched. This is PE 1 of
 * four: PE 0 is on its node, PEs 2 and 3 are on another, and PE 3 runs another program. */
#include "../check.h"
#include "runtime/memory/map.h"

enum { PES = 4, ME = 1, NEIGHBOUR = 0, REMOTE = 2, STRANGER = 3, RESERVED = 0x1800 };

#define PAGE    UINT64_C(0x1000)
#define SYSTEM  UINT64_C(0x100000) /* where segments of this PE's begin, */
#define HEAP    UINT64_C(0x200000)
#define NICS    (HEAP + HEAP_BYTES) /* without a gap */
#define DEVICE  UINT64_C(0x800000)
#define DATA    UINT64_C(0x600000)
#define LIBRARY UINT64_C(0x500000)
#define AFAR    UINT64_C(0x10000000) /* and the neighbour's, so much further */

#define SYSTEM_BYTES  (3 * PAGE)
#define HEAP_BYTES    (7 * PAGE + 24) /* sizes need not be powers of two, nor pages */
#define NIC_BYTES     (5 * PAGE)
#define DEVICE_OWN  (9 * PAGE + 8)
#define DEVICE_BYTES  (40 * PAGE)
#define DATA_BYTES    (3 * PAGE)
#define LIBRARY_BYTES (1 * PAGE + 4)

/* Imported into the heap in the device's memory: two buffers that touch, and one by itself. */
static const struct {
    uint64_t offset, bytes;
} buffer[] = {{12 * PAGE, PAGE}, {13 * PAGE, 3 * PAGE}, {20 * PAGE, 40}};

static uint64_t there = 4 * PAGE;
static int asked; /* how often */

static bool imported(const void *context, uint64_t offset, uint64_t bytes)
{
    CHECK(context == buffer);
    asked++;
    for (size_t i = 0; i < sizeof buffer / sizeof buffer[0]; i++) {
        if (offset >= buffer[i].offset && offset - buffer[i].offset < buffer[i].bytes)
            return bytes <= buffer[i].bytes - (offset - buffer[i].offset);
    }
    return false;
}

static void add(struct memory_map *m, int number, uintptr_t base, uint64_t bytes,
                enum atomicity atomicity)
{
    const struct segment s = {.base = base,
                              .bytes = bytes,
                              .own_bytes = bytes,
                              .atomicity = atomicity,
                              .variables = number >= SEGMENT_DATA};

    CHECK_EQ(map_add(m, number, s, false), GSHMEM_OK);
    m->segment[number].mapped[ME] = base;
    m->segment[number].mapped[NEIGHBOUR] = base + AFAR;
}

/* Of the PEs that the device reaches, kernels reach only this one. */
static void add_device(struct memory_map *m)
{
    const struct segment s = {.base = DEVICE,
                              .bytes = DEVICE_BYTES,
                              .reserved = RESERVED,
                              .own_bytes = DEVICE_OWN,
                              .imported = imported,
                              .context = buffer,
                              .there = &there,
                              .atomicity = ATOMICITY_GPU};

    CHECK_EQ(map_add(m, SEGMENT_DEVICE, s, true), GSHMEM_OK);
    m->segment[SEGMENT_DEVICE].copied[ME] = m->segment[SEGMENT_DEVICE].loaded[ME] = DEVICE;
    m->segment[SEGMENT_DEVICE].copied[NEIGHBOUR] = DEVICE + AFAR;
}

static void fill(struct memory_map *m)
{
    CHECK_EQ(map_open(m, ME, PES), GSHMEM_OK);
    m->local[ME] = m->local[NEIGHBOUR] = true;
    add(m, SEGMENT_SYSTEM, SYSTEM, SYSTEM_BYTES, ATOMICITY_CPU);
    m->segment[SEGMENT_SYSTEM].reserved = SYSTEM_BYTES;
    add(m, SEGMENT_HEAP, HEAP, HEAP_BYTES, ATOMICITY_CPU);
    add_device(m);
    add(m, SEGMENT_NIC, NICS, NIC_BYTES, ATOMICITY_NIC);
    add(m, SEGMENT_DATA, DATA, DATA_BYTES, ATOMICITY_CPU);
    add(m, SEGMENT_DATA + 1, LIBRARY, LIBRARY_BYTES, ATOMICITY_CPU);
    map_learn_program(m, ME, true);
    map_learn_program(m, NEIGHBOUR, true);
    map_learn_program(m, STRANGER, false);
}

static struct location resolve(const struct memory_map *m, uint64_t address, uint64_t bytes, int pe)
{
    struct location l;

    map_resolve(m, (const void *)(uintptr_t)address, bytes, pe, &l);
    CHECK_EQ(l.pe, pe);
    return l;
}

static void expect(const struct memory_map *m, uint64_t address, uint64_t bytes, int pe,
                   enum way way, int segment, uint64_t offset)
{
    const struct location l = resolve(m, address, bytes, pe);

    CHECK_EQ(l.way, way);
    CHECK_EQ(l.segment, segment);
    CHECK_EQ(l.offset, offset);
    if (way > WAY_DEVICE)
        CHECK(!l.at);
    else
        CHECK_EQ((uintptr_t)l.at, address + (pe == ME ? 0 : AFAR));
}

static void expect_nowhere(const struct memory_map *m, uint64_t address, uint64_t bytes)
{
    for (int pe = 0; pe < PES; pe++) {
        expect(m, address, bytes, pe, WAY_NOT_SYMMETRIC, SEGMENT_NONE, 0);
        CHECK(!location_is_reached(&(struct location){.way = WAY_NOT_SYMMETRIC}));
    }
}

/* The first byte, the last, all, and one too many at either end; `way`: for PEs of this node. */
static void check_ends(const struct memory_map *m, int number, enum way way,
                       enum atomicity atomicity)
{
    const struct segment *s = &m->segment[number];
    const enum way other = s->variables ? WAY_OTHER_PROGRAM : WAY_NETWORK;
    const uint64_t end = s->base + s->own_bytes;

    for (int pe = 0; pe < PES; pe++) {
        const enum way due = pe <= ME ? way : pe == STRANGER ? other : WAY_NETWORK;
        if (pe == REMOTE && s->variables)
            continue; /* check_programs */
        expect(m, s->base, 1, pe, due, number, 0);
        expect(m, s->base, s->own_bytes, pe, due, number, 0);
        expect(m, end - 1, 1, pe, due, number, s->own_bytes - 1);
        expect(m, s->base, 0, pe, due, number, 0);
        expect(m, end - 1, 0, pe, due, number, s->own_bytes - 1);
        expect(m, s->base, s->own_bytes + 1, pe, WAY_PAST_END, number, 0);
        expect(m, end - 1, 2, pe, WAY_PAST_END, number, s->own_bytes - 1);
        expect(m, s->base + 8, UINT64_MAX, pe, WAY_PAST_END, number, 8);
        CHECK_EQ(resolve(m, s->base, 1, pe).atomicity, atomicity);
        CHECK_EQ(resolve(m, end - 1, 2, pe).atomicity, atomicity);
    }
}

static void check_segments(const struct memory_map *m)
{
    check_ends(m, SEGMENT_SYSTEM, WAY_MAPPED, ATOMICITY_CPU);
    check_ends(m, SEGMENT_HEAP, WAY_MAPPED, ATOMICITY_CPU);
    check_ends(m, SEGMENT_NIC, WAY_MAPPED, ATOMICITY_NIC);
    check_ends(m, SEGMENT_DEVICE, WAY_DEVICE, ATOMICITY_GPU);
    check_ends(m, SEGMENT_DATA, WAY_MAPPED, ATOMICITY_CPU);
    check_ends(m, SEGMENT_DATA + 1, WAY_MAPPED, ATOMICITY_CPU);
}

/* One byte before and one behind; and where one segment follows another, that one's. */
static void check_outside(const struct memory_map *m)
{
    expect_nowhere(m, SYSTEM - 1, 1);
    expect_nowhere(m, SYSTEM - 1, 2);
    expect_nowhere(m, SYSTEM + SYSTEM_BYTES, 1);
    expect_nowhere(m, HEAP - 1, 1);
    expect_nowhere(m, HEAP - 1, HEAP_BYTES);
    expect(m, NICS - 1, 1, ME, WAY_MAPPED, SEGMENT_HEAP, HEAP_BYTES - 1);
    expect(m, HEAP + HEAP_BYTES, 1, ME, WAY_MAPPED, SEGMENT_NIC, 0);
    expect_nowhere(m, NICS + NIC_BYTES, 1);
    expect_nowhere(m, NICS + NIC_BYTES, 0);
    expect_nowhere(m, DEVICE - 1, 1);
    expect_nowhere(m, DEVICE + DEVICE_BYTES, 1);
    expect_nowhere(m, DATA - 1, 1);
    expect_nowhere(m, DATA + DATA_BYTES, 1);
    expect_nowhere(m, LIBRARY - 1, 1);
    expect_nowhere(m, LIBRARY + LIBRARY_BYTES, 1);
    expect_nowhere(m, 0, 0);
    expect_nowhere(m, 0, 1);
    expect_nowhere(m, UINT64_MAX, 1);
    expect_nowhere(m, UINT64_MAX, UINT64_MAX);
}

static void check_reserved(const struct memory_map *m)
{
    const struct {
        uint64_t address;
        bool reserved;
    } at[] = {{SYSTEM, true}, {SYSTEM + SYSTEM_BYTES - 1, true}, {HEAP, false}, {DEVICE, true},
              {DEVICE + RESERVED - 1, true}, {DEVICE + RESERVED, false}, {DATA, false}};

    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        const struct location l = resolve(m, at[i].address, 1, ME);
        CHECK_EQ(l.reserved, at[i].reserved);
        CHECK_EQ(location_is_reached(&l), !at[i].reserved);
    }
}

/* Behind the heap in the device's memory are the buffers imported into it, and nothing else. */
static void check_imported(const struct memory_map *m)
{
    const uint64_t first = DEVICE + buffer[0].offset, alone = DEVICE + buffer[2].offset;

    expect(m, DEVICE + DEVICE_OWN, 1, ME, WAY_UNREGISTERED, SEGMENT_DEVICE, DEVICE_OWN);
    expect(m, first - 1, 1, ME, WAY_UNREGISTERED, SEGMENT_DEVICE, buffer[0].offset - 1);
    expect(m, first, 1, ME, WAY_DEVICE, SEGMENT_DEVICE, buffer[0].offset);
    expect(m, first, PAGE, NEIGHBOUR, WAY_DEVICE, SEGMENT_DEVICE, buffer[0].offset);
    expect(m, first, PAGE, REMOTE, WAY_NETWORK, SEGMENT_DEVICE, buffer[0].offset);
    expect(m, first, PAGE + 1, ME, WAY_UNREGISTERED, SEGMENT_DEVICE, buffer[0].offset);
    expect(m, first + PAGE, 3 * PAGE, ME, WAY_DEVICE, SEGMENT_DEVICE, buffer[1].offset);
    expect(m, alone, 40, ME, WAY_DEVICE, SEGMENT_DEVICE, buffer[2].offset);
    expect(m, alone, 41, ME, WAY_UNREGISTERED, SEGMENT_DEVICE, buffer[2].offset);
    expect(m, alone + 40, 1, ME, WAY_UNREGISTERED, SEGMENT_DEVICE, buffer[2].offset + 40);
    expect(m, DEVICE + DEVICE_BYTES - 1, 1, ME, WAY_UNREGISTERED, SEGMENT_DEVICE, DEVICE_BYTES - 1);
    expect(m, DEVICE + DEVICE_BYTES - 1, 2, ME, WAY_PAST_END, SEGMENT_DEVICE, DEVICE_BYTES - 1);
    asked = 0;
    expect(m, DEVICE + DEVICE_OWN - 8, 8, ME, WAY_DEVICE, SEGMENT_DEVICE, DEVICE_OWN - 8);
    CHECK_EQ(map_atomicity(m, (void *)(uintptr_t)(DEVICE + DEVICE_OWN)), ATOMICITY_GPU);
    CHECK_EQ(asked, 0); /* it takes a lock */
}

/* What a PE runs is learned once; a PE that runs another program has no variables, and all else. */
static void check_programs(struct memory_map *m)
{
    expect(m, DATA, 8, REMOTE, WAY_UNKNOWN_PROGRAM, SEGMENT_DATA, 0);
    expect(m, LIBRARY, 4, REMOTE, WAY_UNKNOWN_PROGRAM, SEGMENT_DATA + 1, 0);
    expect(m, DATA, DATA_BYTES + 1, REMOTE, WAY_PAST_END, SEGMENT_DATA, 0);
    map_learn_program(m, REMOTE, true);
    expect(m, DATA, 8, REMOTE, WAY_NETWORK, SEGMENT_DATA, 0);
    expect(m, LIBRARY, 4, REMOTE, WAY_NETWORK, SEGMENT_DATA + 1, 0);
    expect(m, DATA, 8, STRANGER, WAY_OTHER_PROGRAM, SEGMENT_DATA, 0);
    expect(m, HEAP, 8, STRANGER, WAY_NETWORK, SEGMENT_HEAP, 0);
    map_learn_program(m, NEIGHBOUR, false);
    m->segment[SEGMENT_DATA].mapped[NEIGHBOUR] = 0;
    expect(m, DATA, 8, NEIGHBOUR, WAY_OTHER_PROGRAM, SEGMENT_DATA, 0);
    expect(m, DATA, 8, ME, WAY_MAPPED, SEGMENT_DATA, 0);
}

/* A heap grows within its addresses, PEs may agree on a lower limit, and one may become mapped. */
static void check_growth(struct memory_map *m)
{
    struct segment *s = &m->segment[SEGMENT_DEVICE];
    void *last = (void *)(uintptr_t)(DEVICE + there - 1);
    void *in_buffer = (void *)(uintptr_t)(DEVICE + buffer[0].offset);

    CHECK(map_has_memory(m, last, 1));
    CHECK(!map_has_memory(m, last, 2));
    CHECK(!map_has_memory(m, (char *)last + 1, 1));
    CHECK(map_has_memory(m, in_buffer, PAGE));
    CHECK(!map_has_memory(m, in_buffer, PAGE + 1));
    CHECK(map_has_memory(m, (void *)(uintptr_t)HEAP, HEAP_BYTES));
    CHECK(!map_has_memory(m, (void *)(uintptr_t)HEAP, HEAP_BYTES + 1));
    there += 3;
    CHECK(map_has_memory(m, last, 4));
    CHECK(!map_has_memory(m, last, 5));
    s->own_bytes = 8 * PAGE;
    expect(m, DEVICE + 8 * PAGE - 1, 1, ME, WAY_DEVICE, SEGMENT_DEVICE, 8 * PAGE - 1);
    expect(m, DEVICE + 8 * PAGE, 1, ME, WAY_UNREGISTERED, SEGMENT_DEVICE, 8 * PAGE);
    s->copied[REMOTE] = DEVICE + AFAR;
    expect(m, DEVICE + RESERVED, 8, REMOTE, WAY_DEVICE, SEGMENT_DEVICE, RESERVED);
    s->copied[REMOTE] = s->copied[NEIGHBOUR] = 0;
    expect(m, DEVICE + RESERVED, 8, REMOTE, WAY_NETWORK, SEGMENT_DEVICE, RESERVED);
    expect(m, DEVICE + RESERVED, 8, NEIGHBOUR, WAY_UNREACHABLE, SEGMENT_DEVICE, RESERVED);
}

static void check_overlap(const struct memory_map *m)
{
    CHECK(!map_overlaps_heap(m, HEAP - 8, 8));
    CHECK(map_overlaps_heap(m, HEAP - 8, 9));
    CHECK(map_overlaps_heap(m, HEAP + 8, 1));
    CHECK(map_overlaps_heap(m, NICS + NIC_BYTES - 1, 100));
    CHECK(!map_overlaps_heap(m, NICS + NIC_BYTES, 100));
    CHECK(!map_overlaps_heap(m, DATA, DATA_BYTES)); /* no heap */
    CHECK(!map_overlaps_heap(m, SYSTEM, SYSTEM_BYTES));
    CHECK(!map_overlaps_heap(m, DEVICE, RESERVED));
    CHECK(map_overlaps_heap(m, DEVICE, RESERVED + 1));
    CHECK(map_overlaps_heap(m, DEVICE + DEVICE_BYTES - 1, 1));
    CHECK(!map_overlaps_heap(m, DEVICE + DEVICE_BYTES, 1));
}

/* Most jobs have no device with memory of its own, and no NICs; some programs have no variables. */
static void check_few(void)
{
    const struct segment heap = {HEAP, 24, .own_bytes = 24}, none = {.variables = true};
    struct memory_map m;

    CHECK_EQ(map_open(&m, 0, 1), GSHMEM_OK);
    CHECK_EQ(map_add(&m, SEGMENT_HEAP, heap, false), GSHMEM_OK);
    CHECK_EQ(map_add(&m, SEGMENT_DATA, none, false), GSHMEM_OK);
    CHECK_EQ(map_mapped(&m, SEGMENT_HEAP, 0), 0);
    m.segment[SEGMENT_HEAP].mapped[0] = HEAP;
    CHECK_EQ(map_mapped(&m, SEGMENT_HEAP, 0), HEAP);
    CHECK_EQ(map_mapped(&m, SEGMENT_NIC, 0), 0);
    CHECK_EQ(resolve(&m, HEAP + 16, 8, 0).way, WAY_MAPPED);
    CHECK_EQ(resolve(&m, HEAP + 24, 1, 0).way, WAY_NOT_SYMMETRIC);
    CHECK_EQ(resolve(&m, 0, 1, 0).way, WAY_NOT_SYMMETRIC);
    CHECK_EQ(map_atomicity(&m, NULL), ATOMICITY_CPU);
    CHECK(!map_overlaps_heap(&m, 0, 8));
    map_close(&m);
    map_close(&m);
}

int main(void)
{
    struct memory_map m;

    fill(&m);
    check_segments(&m);
    check_outside(&m);
    check_reserved(&m);
    check_imported(&m);
    check_programs(&m);
    check_growth(&m);
    check_overlap(&m);
    map_close(&m);
    check_few();
    return 0;
}
