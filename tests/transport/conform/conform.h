/* What every transport must do, whatever it is made of: transport/transport.h as a program.
 *
 * Each scenario runs in a process of its own, on three PEs that this process drives in turn
 * (world.c); where a scenario needs PEs that die, some of them live in children of it. */
#ifndef GSHMEM_TESTS_TRANSPORT_CONFORM_H
#define GSHMEM_TESTS_TRANSPORT_CONFORM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "check.h"
#include "gshmem/rma.h"
#include "gshmem/type.h"
#include "transport/optional.h"

enum { PES = 3, SEGMENT = 12 << 20, SMALL = 4096 /* bytes of the second segment */, LOG = 64 };

/* What is tested, and what it stands on. */
struct subject {
    const struct transport_ops *ops;
    const struct transport_ops *below; /* the transport below it, or NULL */
    /* Hardware that stands still unless it is driven; NULL: none. */
    void (*begin)(void);
    bool (*drive)(struct transport *t[PES]); /* whether anything moved */
    void (*end)(void);
    bool in_one_process; /* that hardware is within a process: no PE can be in another */
};

struct pe {
    struct transport *t;     /* NULL: not in this process, or not any more */
    struct transport *below; /* what it stands on, or NULL */
    struct transport_config config;
    char *memory[2];              /* of its two segments, between guards */
    bool stands_still;            /* it is not driven */
    int asked[PES];               /* how often it has asked for the address or key of each PE, */
    int lost[PES];                /* has lost it, */
    gshmem_status_t lost_by[PES]; /* the last time for that reason, */
    int refused[PES];             /* has been given up by each, */
    int notified[PES][PES];           /* and has been told by each of each */
    struct {
        int from;
        size_t bytes;
        unsigned char text[TRANSPORT_NOTE_MAX];
    } received[LOG];
    int notes;
};

extern struct pe pe[PES];
extern struct subject subject;
extern int ended, failed, aborted, posted; /* requests of this process: the aborted are failed */
extern gshmem_status_t last_failure;

/* ---- The world ---- */

/* Opens all PEs in this process and begins; or only some. A PE in another process publishes its
 * address to memory that they share, and all begin when all have. */
void world_begin(void);
void world_share(void); /* before a fork, by which PEs come into processes of their own */
void world_open(int which);
void world_start(int which); /* once all have been opened */
/* The process of one PE, which serves it until it is killed, or until *stop. */
pid_t world_fork(int which);
/* Closes what is here, and checks what lies around the segments. */
void world_end(void);
void close_pe(int which);

/* One round of all PEs; whether anything happened. */
bool drive(void);
/* Drives until it is true; fails the test, by that name, after a minute. */
#define DRIVE_UNTIL(condition)                                                                     \
    for (uint64_t drive_end = deadline(60); !(condition); drive()) {                               \
        if (is_past(drive_end))                                                                    \
            CHECK_FAIL("has not come in 60 s: %s; %d of %d requests have ended", #condition,       \
                       ended, posted);                                                             \
    }
uint64_t deadline(int seconds);
bool is_past(uint64_t end);
void drive_for(int ms);

void begin_to_count(void); /* from none, once all have ended */
gshmem_status_t try_post(int from, struct transport_request r);
bool is_taken(int from, struct transport_request r); /* drives while the queue is full */
void post(int from, struct transport_request r);     /* the same, and it must be taken */
void settle(void);                               /* until all requests have ended */
void settle_well(void);                          /* and none has failed */

struct transport_request put(int to, const void *source, uint64_t offset, uint64_t bytes);
struct transport_request get(int from, void *to, uint64_t offset, uint64_t bytes);
struct transport_request add(int at, uint64_t offset, uint64_t operand, uint64_t *old);
struct transport_request with_signal(struct transport_request r, int op, uint64_t offset,
                                     uint64_t value);

char *at(int which, uint64_t offset); /* in the first segment */
uint64_t word(int which, uint64_t offset);
void fill(void *to, size_t bytes, unsigned seed);
/* That the bytes are those of fill. */
void check_filled(const void *from, size_t bytes, unsigned seed);

/* ---- The scenarios ---- */

enum needs {
    NEEDS_PROCESSES = 1, /* of PEs of their own */
    NEEDS_TELL = 2,      /* the slot `tell` */
    NEEDS_LOSE = 4,      /* the slot `lose` */
    NEEDS_BATCHES = 8,   /* TRANSPORT_BATCH */
};

struct scenario {
    const char *name;
    void (*run)(void);
    int needs; /* some of enum needs */
};

extern const struct scenario data_scenarios[], flow_scenarios[],
    end_scenarios[]; /* each up to NULL */

int conform(const struct subject *what, int argc, char **argv);

#endif
