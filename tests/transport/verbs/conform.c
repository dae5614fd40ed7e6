/* The verbs transport as any other: over the fake of libibverbs, and over TCP for what is below
 * it. */
#include "../conform/conform.h"

#include "fake.h"
#include "transport/verbs/resolve.h"
#include "transport/verbs/verbs.h"

static bool have_moved;

static void begin(void)
{
    fake_begin(1);
    fake.devices = 2;
}

/* What NICs do, and what threads of the kernel's would have done by now. */
static bool drive_nics(struct transport *t[PES])
{
    const bool some = fake_run();

    for (int i = 0; i < PES; i++) {
        if (t[i])
            resolve_wait((struct verbs *)t[i]);
    }
    have_moved |= some;
    return some;
}

/* Else all has gone by the transport below. */
static void end(void)
{
    CHECK(have_moved);
    fake_end();
}

int main(int argc, char **argv)
{
    static const struct subject verbs = {.ops = &gshmem_transport,
                                         .below = &transport_tcp,
                                         .begin = begin,
                                         .drive = drive_nics,
                                         .end = end,
                                         .in_one_process = true};

    return conform(&verbs, argc - 1, argv + 1);
}
