/* A wait in which the network brings something at every step (runtime/network/wait.c): it looks at the clock and at
 * the PEs all the same, so it ends when its time is over. The network is played here. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "../check.h"
#include "runtime/network/network.h"

static uint64_t steps;

static enum network_purpose purpose = NETWORK_FOR_REQUESTS;

static bool played(struct network *n, enum network_purpose for_what)
{
    CHECK(n);
    CHECK_EQ(for_what, purpose);
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

/* The transport is told that the thread waits for a variable. */
static void wait_for_update(void)
{
    const uint64_t before = steps;
    struct wait w;

    wait_begin(&w, "served", WAIT_FOR_NETWORK);
    wait_without_spin(&w);
    w.only = WAIT_FOR_UPDATE;
    purpose = NETWORK_FOR_UPDATE;
    CHECK_EQ(wait_step(&w), GSHMEM_OK);
    CHECK_EQ(steps, before + 1);
    purpose = NETWORK_FOR_REQUESTS;
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
    wait_for_update();
    job = NULL;
    free(control);
    return 0;
}
