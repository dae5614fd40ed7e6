/* A kernel by hand: what gshmem_device.h would write into channels, for tests of who reads them. */
#ifndef GSHMEM_TESTS_KERNEL_H
#define GSHMEM_TESTS_KERNEL_H

#include <sched.h>
#include <stdbool.h>
#include <string.h>

#include "gshmem.h"
#include "gshmem/device/command.h"
#include "gshmem/device/state.h"
#include "../check.h"

static struct gshmem_device_state state; /* n_pes 0: there is no job */

static int keep_state(const struct gshmem_device_state *given)
{
    memcpy(&state, given, sizeof state);
    return 0;
}

static struct gshmem_device_module module = {
    .size = sizeof module,
    .version = GSHMEM_DEVICE_STATE_VERSION,
    .device = "host",
    .fill = keep_state,
};

/* After a command was written, as gshmem_kernel_post_slots does. */
static inline void wake_proxy(const struct gshmem_device_channel *c)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (gshmem_load_relaxed_32(c->asleep))
        gshmem_device_wake(c->asleep);
}

/* Writes n commands one after another into the ring; the position after them. */
static inline uint64_t issue(const struct gshmem_device_channel *c,
                             const struct gshmem_command *command, uint32_t n)
{
    uint64_t first = gshmem_channel_take(&c->ring, n);

    for (uint32_t i = 0; i < n; i++) {
        while (!gshmem_channel_has_room(&c->ring, first + i + 1)) {
            gshmem_device_help();
            sched_yield();
        }
        gshmem_channel_write(&c->ring, first + i, gshmem_command_encode(&command[i]), 1);
    }
    wake_proxy(c);
    return first + n;
}

/* The same for a command with a second part, packed into one slot if it fits. */
static inline uint64_t issue_pair(const struct gshmem_device_channel *c,
                                  struct gshmem_command command[2])
{
    struct gshmem_slot slot[2];

    command[0].more = 1;
    const uint32_t n = gshmem_command_slots(&command[0], &command[1], slot);
    const uint64_t first = gshmem_channel_take(&c->ring, n);
    for (uint32_t i = 0; i < n; i++) {
        while (!gshmem_channel_has_room(&c->ring, first + i + 1)) {
            gshmem_device_help();
            sched_yield();
        }
        gshmem_channel_write(&c->ring, first + i, slot[i], 1);
    }
    wake_proxy(c);
    return first + n;
}

/* What quiet does; whether anything failed on the channel. */
static inline bool wait_done(const struct gshmem_device_channel *c, uint64_t position)
{
    uint64_t done;

    while (((done = gshmem_load_acquire(c->done)) & ~GSHMEM_DONE_FAILED) < position) {
        gshmem_device_help();
        sched_yield();
    }
    return done & GSHMEM_DONE_FAILED;
}

/* The status that comes with the tag, or -1 when the job is over before it comes. */
static inline int wait_answer(const struct gshmem_device_job *job, uint32_t response, uint32_t tag,
                              uint64_t value[2])
{
    const struct gshmem_response *r = &job->response[response];
    uint64_t answer;

    while (((answer = gshmem_load_acquire(&r->answer)) >> 8) != tag) {
        if (gshmem_load_relaxed(job->failure))
            return -1;
        gshmem_device_help();
        sched_yield();
    }
    if (value)
        memcpy(value, r->value, 2 * sizeof *value);
    return (int)(answer & 255);
}

#endif
