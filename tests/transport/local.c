/* The transport to PEs of this host: what is large takes turns, in order and whole. */
#include <stdlib.h>
#include <string.h>

#include "gshmem/rma.h"

#include "check.h"
#include "transport/transport.h"

enum { SEGMENT = 6 << 20, GUARD = 64 };

static char *memory; /* guard, segment, guard: of the one other PE */
static int ended;
static gshmem_status_t ended_with;

static gshmem_status_t complain(gshmem_status_t status, const char *format, ...)
{
    (void)format;
    return status;
}

static char *mapped(void *context, int pe, int segment)
{
    (void)context;
    return pe == 1 && segment == 0 ? memory + GUARD : NULL;
}

static void done(void *tag, gshmem_status_t status)
{
    (void)tag;
    ended++;
    ended_with = status;
}

static struct transport *open_it(void)
{
    struct transport_config config = {
        .size = sizeof config, .fail = complain, .fail_handled = complain, .n_pes = 2, .mapped = mapped};
    struct transport *t;

    ended = 0;
    CHECK_EQ(transport_local.open(&config, &t), GSHMEM_OK);
    transport_local.begin(t, &config);
    return t;
}

/* How many turns it takes; meanwhile nothing else is taken. */
static int move(struct transport *t, struct transport_request r)
{
    struct transport_request other = {
        .kind = TRANSPORT_PUT, .pe = 1, .local = "x", .bytes = 1, .done = done};
    int turns = 1, events, before = ended;

    r.pe = 1;
    r.done = done;
    CHECK_EQ(transport_local.post(t, &r), GSHMEM_OK);
    for (; ended == before; turns++) {
        CHECK(transport_local.busy(t));
        CHECK_EQ(transport_local.post(t, &other), TRANSPORT_FULL);
        CHECK_EQ(transport_local.progress(t, &events), GSHMEM_OK);
        CHECK_EQ(events, 1);
    }
    CHECK_EQ(ended, before + 1);
    CHECK_EQ(ended_with, GSHMEM_OK);
    CHECK(!transport_local.busy(t));
    CHECK_EQ(transport_local.progress(t, &events), GSHMEM_OK);
    CHECK_EQ(events, 0);
    return turns;
}

static void sizes(void)
{
    static const size_t size[] = {1, 4096, 1 << 20, (1 << 20) + 1, 3 << 20, 5000001};
    char *here = malloc(SEGMENT), *back = malloc(SEGMENT);
    struct transport *t = open_it();
    uint64_t *flag = (uint64_t *)(void *)(memory + GUARD);

    CHECK(here && back);
    for (size_t s = 0; s < sizeof size / sizeof size[0]; s++) {
        int wanted = (int)((size[s] + (1 << 20) - 1) >> 20);
        for (size_t i = 0; i < size[s]; i++)
            here[i] = (char)(i * 7 + i / 251 + s);
        *flag = 0;
        CHECK_EQ(move(t, (struct transport_request){
                             .kind = TRANSPORT_PUT, .offset = 64, .local = here, .bytes = size[s],
                             .signal_op = GSHMEM_SIGNAL_ADD, .signal_value = 5}), wanted);
        CHECK_EQ(*flag, 5); /* once */
        CHECK(memcmp(memory + GUARD + 64, here, size[s]) == 0);
        memset(back, 0, size[s]);
        CHECK_EQ(move(t, (struct transport_request){.kind = TRANSPORT_GET, .offset = 64,
                                                    .local = back, .bytes = size[s]}), wanted);
        CHECK(memcmp(back, here, size[s]) == 0);
    }
    transport_local.close(t);
    free(here);
    free(back);
}

/* The signal of a put is set with its last part; a put that is cut off ends all the same. */
static void signal_last(void)
{
    struct transport *t = open_it();
    uint64_t *flag = (uint64_t *)(void *)(memory + GUARD);
    char *here = calloc(1, 3 << 20);
    struct transport_request r = {.kind = TRANSPORT_PUT, .pe = 1, .offset = 64, .local = here,
                                  .bytes = 3 << 20, .signal_op = GSHMEM_SIGNAL_SET,
                                  .signal_value = 9, .done = done};
    int events;

    CHECK(here);
    *flag = 0;
    CHECK_EQ(transport_local.post(t, &r), GSHMEM_OK);
    CHECK_EQ(transport_local.progress(t, &events), GSHMEM_OK);
    CHECK_EQ(*flag, 0);
    transport_local.close(t);
    CHECK_EQ(ended, 1);
    CHECK_EQ(ended_with, GSHMEM_ERR_ABORTED);
    CHECK_EQ(*flag, 0);
    free(here);
}

int main(void)
{
    CHECK((memory = calloc(1, SEGMENT + 2 * GUARD)) != NULL);
    sizes();
    signal_last();
    for (int i = 0; i < GUARD; i++)
        CHECK(!memory[i] && !memory[GUARD + SEGMENT + i]);
    free(memory);
    return 0;
}
