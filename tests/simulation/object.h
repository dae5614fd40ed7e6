/* What descriptors of the simulation stand for, and who waits for them. */
#ifndef TEST_SIMULATION_OBJECT_H
#define TEST_SIMULATION_OBJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct pe;

enum { DESCRIPTOR_FIRST = 1 << 16 }; /* above all real ones */

enum object_kind { OBJECT_SOCKET, OBJECT_EPOLL, OBJECT_EVENT, OBJECT_TIMER };

/* An object in an epoll set. */
struct watch {
    struct object *object;
    struct object *set;
    uint32_t events;
    epoll_data_t data;
    bool listed;           /* in the set's list of those that may be ready */
    struct watch *of_object; /* the next of the object's, */
    struct watch *next;      /* and of that list */
};

struct object {
    enum object_kind kind;
    struct pe *pe;
    int fd;
    struct watch *watches;
    /* of an epoll set */
    struct watch *ready, *ready_last;
    /* of an eventfd or a timer */
    uint64_t count;
    uint64_t period, generation;
    struct socket *socket;
};

/* A new descriptor of the PE that runs: the lowest that is free. */
struct object *object_new(enum object_kind kind);
/* NULL: not one of the simulation's. */
struct object *object_of(int fd);
/* What poll would report: POLLIN and so on. */
uint32_t object_events(struct object *o);
/* Something about it has changed: wakes who waits for that. */
void object_changed(struct object *o);
void object_close(struct object *o);

#endif
