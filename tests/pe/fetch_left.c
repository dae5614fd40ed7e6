/* A get for the library's own use whose wait is cut short, since the job has ended: the response comes later, and does
 * not reach memory that the caller may have freed. PE 1, of another node, is stopped until then. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "runtime/job/job.h"
#include "runtime/memory/map.h"
#include "runtime/network/network.h"
#include "runtime/node/node.h"

#include "pe.h"

enum { BYTES = 64 };

static uint64_t other; /* symmetric: the process of PE 1 */

static char state_of(pid_t pid)
{
    char path[40], state = 0;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    CHECK(f);
    CHECK_EQ(fscanf(f, "%*d %*s %c", &state), 1);
    fclose(f);
    return state;
}

static void fetch_from_stopped(void)
{
    char to[BYTES], before[BYTES];
    struct transport_request get = {.pe = 1, .segment = SEGMENT_SYSTEM, .bytes = BYTES};

    memset(before, 0x5a, BYTES);
    memcpy(to, before, BYTES);
    CHECK_EQ(kill((pid_t)other, SIGSTOP), 0);
    while (state_of((pid_t)other) != 'T')
        usleep(1000);
    node_abort(job->node, 0, 0, "of a test");
    CHECK_EQ(network_fetch(job->network, &get, to, "a test"), GSHMEM_ERR_ABORTED);
    CHECK_EQ(kill((pid_t)other, SIGCONT), 0);
    for (int i = 0; i < 100; i++) { /* the response comes meanwhile, most likely */
        usleep(2000);
        CHECK(memcmp(to, before, BYTES) == 0);
    }
}

int main(void)
{
    begin();
    CHECK_EQ(n, 2);
    if (me == 1)
        gshmem_uint64_p(&other, (uint64_t)getpid(), 0);
    barrier();
    if (me == 0) {
        fetch_from_stopped();
        gshmem_global_exit(0);
    }
    for (;;)
        pause();
}
