/* The proxy's part of a small put: a command is taken from a channel and handed to a transport, which
 * keeps it; it ends, and that is published. For tests/perf/instructions, which counts within
 * `measured`. */
#define FAKE_LOG2 8
#include "../../proxy/fake.h"

void measured(void);

__attribute__((noinline)) void measured(void)
{
    channel_take(&fake_channel);
    for (int i = 0; i < fake_requests; i++)
        fake_request[i].done(fake_request[i].tag, GSHMEM_OK);
    fake_requests = 0;
    channel_publish(&fake_channel);
}

int main(int argc, char **argv)
{
    const struct gshmem_command put = {.kind = GSHMEM_COMMAND_VALUE,
                                       .type = 8,
                                       .pe = 1,
                                       .address = (uintptr_t)fake_heap + 8,
                                       .local = 7};
    const int puts = argc == 3 ? atoi(argv[1]) : 0, batch = argc == 3 ? atoi(argv[2]) : 0;

    CHECK(puts > 0 && batch > 0 && batch <= FAKE_SLOTS / 2 && puts % batch == 0);
    fake_begin();
    for (int done = 0; done < puts; done += batch) {
        for (int i = 0; i < batch; i++)
            fake_write(&put);
        measured();
    }
    CHECK_EQ(fake_done_position(), puts);
    return 0;
}
