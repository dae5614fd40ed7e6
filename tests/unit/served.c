/* A wait in which the network brings something at every step (runtime/network/wait.c): it looks at the clock and at
 * the PEs all the same, so it ends when its time is over. The network is played here. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "../check.h"
#include "runtime/network/network.h"

static uint64_t steps;

static bool played(struct network *n)
{
    CHECK(n);
    return ++steps;
}

#define network_drive played
#include "runtime/network/wait.c"
#undef network_drive

static const int *nobody(gshmem_team_t team, int *n)
{
    (void)team;
    *n = 0;
    return NULL;
}

static void none_missing(gshmem_team_t team, char *text, size_t size)
{
    (void)team, (void)size;
    text[0] = 0;
}

static gshmem_status_t no_departure(const struct wait *w, uint64_t now)
{
    (void)w, (void)now;
    return GSHMEM_OK;
}

static bool not_yet(void *context)
{
    (void)context;
    return false;
}

static gshmem_status_t step_on_a_word(void)
{
    _Atomic uint32_t word = 1, sleepers = 0;
    gshmem_status_t status = GSHMEM_OK;
    struct wait w;

    wait_begin(&w, "served", WAIT_FOR_NETWORK);
    w.limit = 100 * MS;
    while (!status)
        status = wait_step_on(&w, &word, 1, &sleepers);
    return status;
}

int main(void)
{
    const struct wait_hooks hooks = {nobody, none_missing, NULL, no_departure, NULL};
    struct node_control *control = calloc(1, sizeof *control + sizeof control->member[0]);
    struct node node = {.n = 1, .control = control};
    struct job j = {.n_pes = 1, .node = &node, .waits = &hooks, .network = (struct network *)control};

    CHECK(control);
    CHECK_EQ(settings_load(), GSHMEM_OK);
    job = &j;
    log_set_level(LOG_NONE);
    wait_calibrate(true, true, false);
    CHECK_EQ(network_await("served", WAIT_FOR_NETWORK, 100 * MS, not_yet, NULL), GSHMEM_ERR_TIMEOUT);
    CHECK(steps >= SERVED_STEPS);
    CHECK_EQ(step_on_a_word(), GSHMEM_ERR_TIMEOUT);
    job = NULL;
    free(control);
    return 0;
}
