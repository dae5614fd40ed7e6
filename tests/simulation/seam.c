/* Time, chance, and the sleeps of threads: the part of runtime/base/system.h that needs no
 * descriptors. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <string.h>

#include "explore.h"
#include "fiber.h"
#include "machine.h"
#include "nth.h"
#include "process.h"
#include "record.h"
#include "runtime/base/count.h"
#include "runtime/base/system.h"

uint64_t process_clock(const struct pe *pe, uint64_t time)
{
    return pe->clock_offset + time + time / 1000 * pe->clock_ppm / 1000;
}

uint64_t process_time_at(const struct pe *pe, uint64_t clock)
{
    const uint64_t passed = clock > pe->clock_offset ? clock - pe->clock_offset : 0;

    return passed - passed / 1000 * pe->clock_ppm / (1000 + pe->clock_ppm / 1000) + US;
}

uint64_t clock_ns(void)
{
    struct fiber *f = fiber_current;

    fiber_pass(chance_between(&world.schedule, 15, 40));
    return process_clock(f->pe, f->now);
}

void clock_pause(void)
{
    fiber_pause(chance_between(&world.schedule, world.pace.pause_ns, 2 * world.pace.pause_ns));
}

void clock_yield(void)
{
    fiber_pause(chance_between(&world.schedule, world.pace.yield_ns, 2 * world.pace.yield_ns));
}

void clock_sleep(uint64_t ns)
{
    if (world.explored)
        fiber_pause(ns + world.pace.wake_ns);
    else
        fiber_block(fiber_current->now + ns + world.pace.wake_ns);
}

uint32_t count_first(void)
{
    return world.first_count;
}

bool system_random(void *to, size_t bytes)
{
    if (NTH(random))
        return false;
    unsigned char *at = to;

    for (size_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)chance_next(&fiber_current->pe->random);
    return true;
}

void system_futex(void *word, int op, uint32_t value, const struct timespec *most)
{
    struct fiber *f = fiber_current;
    uint32_t now;

    const void *key = op & FUTEX_PRIVATE_FLAG ? word : machine_word(f->pe, word);

    fiber_call();
    explore_touch(f->pe, key, (op & FUTEX_CMD_MASK) == FUTEX_WAKE);
    if ((op & FUTEX_CMD_MASK) == FUTEX_WAKE) {
        const int n = machine_is_shared(key) ? world.n_pes : 1;
        for (int i = 0, left = (int)value; i < n && left > 0; i++)
            left -= fiber_wake_word(n == 1 ? f->pe : &world.pe[i], key, left);
        return;
    }
    memcpy(&now, word, sizeof now);
    if (now != value)
        return;
    f->word = key;
    fiber_block(most ? f->now + (uint64_t)most->tv_sec * SECOND + (uint64_t)most->tv_nsec : NEVER);
    f->word = NULL;
}
