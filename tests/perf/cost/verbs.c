/* The transport's part of a small put over verbs, or of a fetch-add that the NIC makes, up to its
 * completion, over the fake of libibverbs that the unit tests have: posting, and polling of the PE
 * that posts. For tests/perf/instructions, which counts within `measured`. */
#include <stdlib.h>
#include <string.h>

#include "../../transport/verbs/pes.h"
#include "pair.h"

static uint64_t value = 7, old;
static bool fetches;

static struct transport_request fetch_add(void)
{
    return (struct transport_request){.kind = TRANSPORT_ATOMIC,
                                      .pe = 1,
                                      .segment = 1,
                                      .offset = 64,
                                      .amo = GSHMEM_AMO_ADD,
                                      .type = GSHMEM_TYPE_UINT64,
                                      .operand = value,
                                      .old = &old};
}

void measured(int batch);

__attribute__((noinline)) void measured(int batch)
{
    int events;

    for (int i = 0; i < batch; i++) {
        struct transport_request r = fetches ? fetch_add() : put(&value, 64, 8);
        if (!fetches)
            r.flags = TRANSPORT_MORE | TRANSPORT_LOOSE; /* as the proxy has it */
        post(0, r);
    }
    while (ok + not_ok < posted) {
        aside();
        CHECK_EQ(gshmem_transport.progress(pe[0].t, &events), GSHMEM_OK);
    }
}

int main(int argc, char **argv)
{
    const int puts = argc >= 3 ? atoi(argv[1]) : 0, batch = argc >= 3 ? atoi(argv[2]) : 0;

    CHECK(puts > 0 && batch > 0 && puts % batch == 0);
    CHECK_EQ(settings_load(), GSHMEM_OK);
    fetches = argc == 4 && strcmp(argv[3], "fetch_add") == 0;
    prepare(1);
    fake.atomics = with_counters = fetches;
    open_both();
    warm_up();
    post(0, fetches ? fetch_add() : put(&value, 64, 8)); /* the key is known from here on */
    settle();
    for (int done = 0; done < puts; done += batch)
        measured(batch);
    CHECK_EQ(old, fetches ? (uint64_t)puts * value : 0);
    end();
    return 0;
}
