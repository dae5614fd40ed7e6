/* The staging pool on its own, with a device whose copies are over when the test says: what one stream may
 * take, what is left for others and for what comes in, and that buffers come back only when nothing is
 * copied from or to them. */
#include <stdarg.h>
#include <stdlib.h>

#include "check.h"
#include "../../device/device.h"
#include "transport/staging.h"

static uint64_t started, over; /* copies */
static int complaints, allocations, looks_until_over;
static bool no_memory;

static gshmem_status_t complain(gshmem_status_t status, const char *format, ...)
{
    (void)format;
    complaints++;
    return status;
}

static void be_silent(const char *format, ...)
{
    (void)format;
}

static void *allocate(struct device *d, enum device_memory kind, size_t bytes)
{
    (void)d;
    CHECK_EQ(kind, DEVICE_MEMORY_SHARED);
    if (no_memory)
        return NULL;
    allocations++;
    return calloc(1, bytes);
}

static void release(struct device *d, enum device_memory kind, void *at)
{
    (void)d, (void)kind;
    CHECK_EQ(over, started); /* no copy needs it */
    allocations--;
    free(at);
}

static gshmem_status_t copy_start(struct device *d, void *to, const void *from, size_t bytes,
                                  uint64_t *ticket)
{
    (void)d;
    if (!to)
        return GSHMEM_ERR_DEVICE;
    memcpy(to, from, bytes);
    *ticket = ++started;
    return GSHMEM_OK;
}

/* Every seventh fails. */
static bool copy_done(struct device *d, uint64_t ticket, gshmem_status_t *status)
{
    (void)d;
    if (looks_until_over && --looks_until_over == 0)
        over = started;
    *status = ticket % 7 ? GSHMEM_OK : GSHMEM_ERR_DEVICE;
    return ticket <= over;
}

static const struct device_ops ops = {.size = sizeof ops, .allocate = allocate, .release = release,
                                      .copy_start = copy_start, .copy_done = copy_done};
static struct device device = {&ops};
static struct transport_config config = {
    .size = sizeof config, .fail = complain, .fail_handled = complain, .info = be_silent, .device = &device};
static struct staging pool;

static void begin(uint64_t bytes)
{
    config.staging = bytes;
    started = over = 0;
    complaints = 0;
    staging_open(&pool, &config);
}

static void end(void)
{
    over = started;
    staging_close(&pool);
    CHECK_EQ(allocations, 0);
}

/* All that can be taken, by streams that each take what they may. */
static int take_all(enum staging_way way, uint64_t bytes, struct staged_list *all, uint32_t held[64])
{
    struct staged *b;
    int n = 0;

    for (int stream = 0; stream < 64; stream++) {
        while ((b = staging_take(&pool, way, bytes, &held[stream]))) {
            CHECK(b->room >= (bytes < STAGING_SMALL ? bytes : STAGING_SMALL));
            memset(b->at, 1, b->room);
            staged_append(all, b);
            n++;
        }
    }
    return n;
}

static void shares(uint64_t bytes)
{
    struct staged_list out = {NULL, NULL}, in = {NULL, NULL};
    uint32_t held[64] = {0}, none[64] = {0};

    begin(bytes);
    CHECK_EQ(allocations, 0); /* at first use, and not before */
    int large = take_all(STAGING_OUT, 1 << 20, &out, held);
    CHECK(large >= STAGING_LARGE_FEW - 1 && held[0] >= 2);
    CHECK(held[0] * 2 <= (uint32_t)large); /* one leaves others half of it, or more */
    CHECK(!staging_take(&pool, STAGING_OUT, STAGING_SMALL + 1, &none[0]));
    CHECK(take_all(STAGING_IN, 1 << 20, &in, none) == large); /* that is kept for what comes in */
    CHECK(staging_take(&pool, STAGING_OUT, 8, &none[63]) && none[63] == 1);
    uint64_t given = pool.given;
    staging_abandon(&out);
    CHECK_EQ(pool.given, given + (uint64_t)large);
    for (int i = 0; i < 64; i++)
        CHECK_EQ(held[i], 0);
    CHECK_EQ(take_all(STAGING_OUT, 1 << 20, &out, held), large);
    staging_abandon(&out);
    staging_abandon(&in);
    end();
}

/* They are over in their order, each with its own status; no more than so many are under way. */
static void copies(void)
{
    char source[64] = "what is copied";
    struct staged *b[STAGING_COPIES];
    uint32_t held[STAGING_COPIES] = {0};

    begin(16 << 20);
    for (int i = 0; i < STAGING_COPIES; i++) {
        CHECK((b[i] = staging_take(&pool, STAGING_OUT, sizeof source, &held[i])));
        CHECK_EQ(staging_begin(b[i], b[i]->at, source, sizeof source), GSHMEM_OK);
    }
    CHECK(!staging_take(&pool, STAGING_IN, 8, NULL));
    CHECK(staging_busy(&pool) && !staging_look(&pool));
    for (int n = 1; n <= STAGING_COPIES; n++) {
        over = (uint64_t)n;
        CHECK(staging_look(&pool));
        CHECK(!b[n - 1]->copying && (n == STAGING_COPIES || b[n]->copying));
        CHECK_EQ(b[n - 1]->copied, n % 7 ? GSHMEM_OK : GSHMEM_ERR_DEVICE);
        CHECK(strcmp(b[n - 1]->at, source) == 0);
        staging_give(b[n - 1]);
    }
    CHECK(!staging_busy(&pool));
    CHECK((b[0] = staging_take(&pool, STAGING_IN, 8, NULL)));
    CHECK_EQ(staging_begin(b[0], NULL, source, 8), GSHMEM_ERR_DEVICE);
    CHECK(!staging_busy(&pool) && !b[0]->copying);
    staging_give(b[0]);
    end();
}

/* Buffers of a stream that ends are not given to others while the device is at them. */
static void abandoned(void)
{
    struct staged_list list = {NULL, NULL};
    char source[8] = "";

    begin(1 << 20);
    for (int i = 0; i < 4; i++) {
        struct staged *b = staging_take(&pool, STAGING_IN, 8, NULL);
        CHECK(b && !staging_begin(b, b->at, source, 8));
        staged_append(&list, b);
    }
    looks_until_over = 3;
    staging_abandon(&list);
    CHECK(!staging_busy(&pool) && !list.first && pool.given == 4);
    end();
}

static void without_memory(void)
{
    no_memory = true;
    begin(1 << 20);
    CHECK(!staging_ready(&pool) && !staging_take(&pool, STAGING_OUT, 8, &(uint32_t){0}));
    CHECK(pool.failed);
    CHECK_EQ(complaints, 1); /* said once */
    no_memory = false;
    end();
}

int main(void)
{
    shares(64 << 10);
    shares(1 << 20);
    shares(16 << 20);
    copies();
    abandoned();
    without_memory();
    return 0;
}
