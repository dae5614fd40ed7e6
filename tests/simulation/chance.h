/* Random numbers from a seed (SplitMix64): the same on every machine. Each purpose has a sequence
 * of its own, so that a workload stays the same when another fault is tried. */
#ifndef TEST_SIMULATION_CHANCE_H
#define TEST_SIMULATION_CHANCE_H

#include <stdbool.h>
#include <stdint.h>

struct chance {
    uint64_t state;
    bool fixed; /* 0 each time: explore.c tries what chance would choose from */
};

static inline uint64_t chance_next(struct chance *c)
{
    if (c->fixed)
        return 0;
    uint64_t x = c->state += 0x9e3779b97f4a7c15;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static inline struct chance chance_begin(uint64_t seed, uint64_t purpose)
{
    struct chance c = {.state = seed * 0xd1342543de82ef95 + purpose};

    c.state = chance_next(&c);
    return c;
}

/* 0 … n-1; n > 0. */
static inline uint64_t chance_below(struct chance *c, uint64_t n)
{
    return chance_next(c) % n;
}

/* least … most */
static inline uint64_t chance_between(struct chance *c, uint64_t least, uint64_t most)
{
    return least + chance_below(c, most - least + 1);
}

static inline bool chance_one_in(struct chance *c, uint64_t n)
{
    return n && chance_below(c, n) == 0;
}

#endif
