/* More batches than may be open at a time (runtime/network/open_batches.h): what finds no room is a request of its own, and
 * all of it arrives. PE 1, of another node, is stopped meanwhile, so that nothing completes and no batch is posted. */
#include <signal.h>
#include <unistd.h>

#include "runtime/job/job.h"
#include "runtime/network/open_batches.h"
#include "runtime/network/parts.h"

#include "pe.h"

enum { CONTEXTS = OPEN_BATCHES_MOST + 100 };

static int64_t process; /* symmetric: of this PE */
static long sum;        /* symmetric */

static char state_of(pid_t pid)
{
    char path[40], state = 0;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    CHECK(f);
    CHECK_EQ(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
    fclose(f);
    return state;
}

static uint32_t open_now(void)
{
    struct network *network = job->network;

    mutex_take(&network->lock);
    const uint32_t open = network->open_batches;
    mutex_give(&network->lock);
    return open;
}

static void add_to_stopped(void)
{
    static gshmem_ctx_t ctx[CONTEXTS];
    int64_t other;

    CHECK_OK(gshmem_getmem(&other, &process, sizeof other, 1));
    for (int i = 0; i < CONTEXTS; i++)
        CHECK_OK(gshmem_ctx_create(0, &ctx[i]));
    CHECK_EQ(kill((pid_t)other, SIGSTOP), 0);
    while (state_of((pid_t)other) != 'T')
        usleep(1000);
    for (int i = 0; i < CONTEXTS; i++) /* requests of their own, since nothing is in flight */
        CHECK_OK(gshmem_ctx_long_atomic_add(ctx[i], &sum, 1, 1));
    for (int i = 0; i < CONTEXTS; i++) {
        CHECK_OK(gshmem_ctx_long_atomic_add(ctx[i], &sum, 100, 1));
        /* a request posts those that are open to its PE */
        CHECK_EQ(open_now(), i < OPEN_BATCHES_MOST ? i + 1 : i - OPEN_BATCHES_MOST);
    }
    CHECK_EQ(kill((pid_t)other, SIGCONT), 0);
    for (int i = 0; i < CONTEXTS; i++)
        CHECK_OK(gshmem_ctx_destroy(ctx[i]));
    CHECK_EQ(open_now(), 0);
}

int main(void)
{
    begin();
    CHECK_EQ(n, 2);
    process = getpid();
    barrier();
    if (me == 0)
        add_to_stopped();
    barrier();
    CHECK_EQ(sum, me ? CONTEXTS * 101L : 0);
    end();
    return 0;
}
