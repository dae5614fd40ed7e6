/* What is going to happen, by virtual time. Events of one time fire in an order that the seed
 * draws. */
#ifndef TEST_SIMULATION_EVENTS_H
#define TEST_SIMULATION_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event {
    uint64_t at; /* ns */
    uint64_t tie;
    void (*fire)(void *object, uint64_t number);
    void *object;
    uint64_t number;
};

void events_begin(uint64_t seed);
void events_add(uint64_t at, void (*fire)(void *object, uint64_t number), void *object,
                uint64_t number);
/* The time of the next event; UINT64_MAX: there is none. */
uint64_t events_next(void);
bool events_take(struct event *out);
/* For explore.c, which picks by itself: all of them, in no order, until one is added or removed. */
const struct event *events_all(size_t *n);
void events_remove(size_t at);

#endif
