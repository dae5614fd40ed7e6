/* PEs and their threads, as fibers of one process on virtual time.
 *
 * A fiber has a clock of its own, which moves on as it calls the system. It runs until something
 * else happens earlier; so fibers of different PEs run side by side in virtual time, and all that
 * happens between them happens in its order. */
#ifndef TEST_SIMULATION_FIBER_H
#define TEST_SIMULATION_FIBER_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "chance.h"
#include "device/host/fibers/context.h"

enum {
    US = 1000,
    MS = 1000 * US,
};
#define SECOND UINT64_C(1000000000)
#define NEVER  UINT64_MAX

struct pe;

struct fiber {
    struct pe *pe;
    int number; /* within its PE: 0 is the program's main thread */
    struct stack *stack;
    void *image; /* the library's variables of this thread */
    int error;   /* errno, while it does not run */
    uint64_t now;
    uint64_t turn; /* counts its sleeps: an event that would end an earlier one is void */
    bool blocked, timed_out, ended;
    bool of_library; /* the library has started this thread */
    bool idle, productive; /* see explore.h: it polls; it has done more than that since then */
    uint64_t seen, own;
    uint32_t after;  /* the step that lets it run */
    uint32_t points; /* since it has polled or slept */
    const void *word; /* of a futex or a mutex for which it waits */
    struct pollfd *fds; /* that it polls */
    nfds_t n_fds;
    struct fiber *joiner;
    void *(*main)(void *argument);
    void *argument, *result;
    struct fiber *next; /* of its PE */
};

/* A process. */
struct pe {
    int number, node;
    void *image; /* the library's variables */
    struct fiber *fibers;
    int n_fibers;
    struct chance random; /* what the system gives it as random bytes */
    uint64_t clock_offset, /* what its clock shows at virtual time 0, */
        clock_ppm;         /* and by how many millionths it is fast */
    uint64_t paused_until;
    bool dead, machine_dead, ended;
    uint64_t died_at;
    int exit_status;
    struct object **object; /* its descriptors, from DESCRIPTOR_FIRST on */
    int objects;
    uint64_t messages, bytes; /* that it has sent */
    uint64_t progress; /* see explore.h */
    void *program; /* the workload's */
};

/* How fast things are, by the seed. */
struct pace {
    uint64_t call_ns, pause_ns, yield_ns, wake_ns; /* each: at most twice as long */
    bool yields_count; /* the system says that a yield let others run */
};

extern struct world {
    uint64_t seed, now;
    int n_pes, cpus; /* CPUs: of each machine */
    struct pe *pe;
    struct pace pace;
    struct chance schedule; /* who is slow, who is woken */
    uint32_t first_count; /* where counters begin that wrap at 32 bits: runtime/base/count.h */
    bool over;
    bool explored; /* explore.c says who runs next, and not the time */
    char failure[400]; /* why the run has failed; "": it has not */
} world;

extern struct fiber *fiber_current; /* NULL: an event fires */

void fibers_begin(void);
/* From now on a child of fork has no more free stacks than that: each costs it two mappings. */
void fibers_spare(int stacks);
struct fiber *fiber_new(struct pe *pe, uint64_t at, void *(*main)(void *), void *argument);
/* Runs events until the world is over, or until a time. */
void fibers_run(uint64_t until);

/* The time of the fiber that runs, or of the event that fires. */
uint64_t fiber_time(void);
/* Moves this fiber's clock on; what happens earlier happens first. */
void fiber_pass(uint64_t ns);
/* One call of the system. */
void fiber_call(void);
/* Where explore.c may let others run. */
void fiber_point(void);
/* The same for a thread that polls, and has found nothing. */
void fiber_pause(uint64_t ns);
/* For explore.c: whether an event continues a fiber; NULL: it does not, or is void. */
struct fiber *fiber_of_event(void (*fire)(void *, uint64_t), void *object, uint64_t number,
                             bool *by_time);
/* Sleeps until it is woken, or until that time: false. */
bool fiber_block(uint64_t until);
void fiber_wake(struct fiber *f);
/* Wakes up to `most` of a PE's fibers that wait for that word; returns how many. */
int fiber_wake_word(struct pe *pe, const void *word, int most);
_Noreturn void fiber_end(void);
/* The end of the process of the fiber that runs. */
_Noreturn void fiber_exit(int status);
/* The same for any process, from outside; machine: its machine vanishes with it. */
void process_kill(struct pe *pe, bool machine, const char *why);

/* A failure of the run: the first is kept, and ends it. */
void world_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
