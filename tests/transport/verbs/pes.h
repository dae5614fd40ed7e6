/* Two PEs in one process, or three (with_third), each with a verbs transport, over the fake of libibverbs; and
 * between them a transport below, which carries notes and carries out requests at once. */
#ifndef VERBS_PES_H
#define VERBS_PES_H

#include "check.h"
#include "fake.h"
#include "gshmem/rma.h"
#include "gshmem/type.h"
#include "runtime/base/settings.h"
#include "transport/verbs/coalesced.h"
#include "transport/verbs/failover.h"
#include "transport/verbs/links.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/post.h"
#include "transport/verbs/stripes.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/watch.h"

enum { COUNTER_WORDS = 512, PES = 2, PES_MOST = 8 /* in pairs: tests/perf */, SEGMENT = 40 << 20, NOTES = 64, LATE = 1024 };

struct pe {
    struct transport *t;
    struct transport_config config;
    struct transport below;
    int lost;
    char why[400], notified[4000];
    int passed_down;
    int looks; /* at the transport below */
    struct {
        int to;
        size_t bytes;
        unsigned char text[TRANSPORT_NOTE_MAX];
    } note[NOTES];
    int notes;
    int says_nothing; /* where it publishes its address */
    bool refused; /* the other PE has given this one up, and takes nothing: say fails */
    int full; /* so many calls of say are answered with TRANSPORT_FULL */
    int full_below, calls_below; /* and every so manyth call of post, unless it is 0 */
    bool late_below; /* what has been posted there ends in progress, one after the other */
    struct transport_request late[LATE];
    int lates;
    char *memory;
    uint64_t *counters; /* a segment that NICs update, or NULL */
};

extern bool with_counters;   /* of PEs that are opened from now on */
extern bool with_third;      /* PE 2, to which the others' requests go by try_post_to */
extern struct pe pe[PES_MOST];
extern char complaint[400];  /* the last failure that was logged */
extern int flight_most, works_most; /* GSHMEM_IB_INFLIGHT, GSHMEM_IB_INFLIGHT_REQUESTS */
extern int queue_pairs;      /* GSHMEM_IB_QP_PER_PEER */
extern int peer_timeout;     /* GSHMEM_PEER_TIMEOUT */
extern int init_timeout;     /* GSHMEM_INIT_TIMEOUT */
extern int job_pes;          /* of which two are here */
extern int turns[PES_MOST];      /* their numbers on their hosts, */
extern int distance[PES_MOST][FAKE_DEVICES]; /* and how far NICs are from them */
extern int ok, not_ok, posted; /* requests */
extern gshmem_status_t last_status; /* of those that failed */

/* Opens both PEs' transports; what NICs are like is said between the first two (see fake.h). */
void prepare(unsigned seed);
void open_pe(int me, bool device);
void open_both(void);
void begin(unsigned seed);
void begin_strict(unsigned seed); /* NICs keep the order of writes, whatever the environment says of them */
void begin_with(unsigned seed, int devices);
void end(void);

void carry_notes(int from);
bool drive(void); /* one round of all; whether anything happened */
gshmem_status_t try_post(int from, struct transport_request r);
gshmem_status_t try_post_to(int from, int to, struct transport_request r); /* to itself, too */
void post(int from, struct transport_request r); /* drives while the queue is full */
void settle(void);                               /* drives until all requests have ended */

struct transport_request put(void *from, uint64_t offset, uint64_t bytes);
struct transport_request get(void *to, uint64_t offset, uint64_t bytes);
struct transport_request add(uint64_t offset, uint64_t operand, uint64_t *old);
struct transport_request with_signal(struct transport_request r, int op, uint64_t offset, uint64_t value);
/* A request of any kind, at random, on the first `words` words of the other PE's memory, and what it does
 * to a model of them; *old: what is to become *expected. */
struct transport_request draw(int i, int words, uint64_t *model, uint64_t *value, uint64_t *old,
                              uint64_t *expected);
uint64_t *word(int which, uint64_t offset); /* of a PE's memory */
void fill(char *at, size_t bytes, unsigned seed);
void warm_up(void); /* both have talked */

#endif
