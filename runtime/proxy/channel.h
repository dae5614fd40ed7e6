/* A channel on the proxy's side: commands are taken from its ring in order, posted in order,
 * completed in any order, and reported as done in order.
 *
 *     finished ≤ taken ≤ ticket        [finished, taken): posted, each with a record of its own
 *
 * There are as many records as slots. A command for which the transport has no room, or for which
 * no record is free, stays in the ring. Knows nothing of jobs: struct proxy_way says how to reach a
 * PE. All fields belong to the holder of the network's lock, or of the lane's. */
#ifndef GSHMEM_PROXY_CHANNEL_H
#define GSHMEM_PROXY_CHANNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gshmem/device/command.h"
#include "gshmem/device/state.h"
#include "runtime/proxy/way.h"

struct proxy_channel {
    const struct proxy_way *way;
    const uint64_t *ring;
    uint32_t slots_log2;
    uint64_t mask; /* slots - 1 */
    uint64_t taken;
    uint64_t finished;
    bool carries; /* while a command that is traced is posted whose end the way tells, if it is
                     complete when post returns: then false again */
    bool stuck; /* a command is there, but no record or no room in its transport */
    uint64_t published; /* the last `finished` that was published to kernels */
    uint64_t sent; /* the position before which sources may be reused, when last looked at */
    uint32_t asking; /* commands that wait for that */
    uint32_t sessions; /* regions of kernels that have begun and not ended */
    uint8_t held;      /* TRANSPORT_HELD while there are some: further flags of requests */
    uint64_t failures;
    gshmem_status_t failure; /* the last one */
    struct passage *passage; /* [slots], by position */
    struct transport_request plain, signalled; /* the common fields of requests of plain puts, and
                                                  of those with a signal */
    struct proxy_channel
        *other[GSHMEM_FENCE_CHANNELS - 1]; /* the other channels of its context; NULL: none, or it
                                              is on another lane */
    /* Where a PE has several lanes (network/lanes.h), a fence waits until what is before it and is
     * posted on other lanes is complete: this holds for channels of other lanes, which are not in
     * `other`, but here by their `done`, and for requests of the host. */
    bool crosses; /* whether there is any of the two */
    const uint64_t *far[GSHMEM_FENCE_CHANNELS - 1];
    const struct gshmem_host_operations *host; /* of its context; NULL: posted on this lane */
    struct {              /* the fence that waits for these now: */
        bool waits;       /* whether one does */
        uint64_t issued;  /* what the host had issued when the fence was first reached */
    } crossing;
    struct {                 /* for the counts: since somebody has last looked */
        uint32_t full;       /* how often the channel was full when commands were taken */
        uint32_t no_room;    /* how often a command stayed for lack of room */
    } found;
    struct {                 /* for the watchdog: what was finished when it last checked */
        uint64_t finished;
        uint64_t since;      /* ns, since when it has not changed; 0: nobody has looked yet */
        bool reported;       /* whether it was reported */
    } watched;

    uint32_t stream; /* its number in ids of the trace, from 1 */
    uint64_t *tail, *done, *failed; /* as in struct gshmem_device_channel; only the proxy writes
                                       them */
};

/* A job begins: failures of its kernels have lines from the first one on. */
void channel_failures_forget(void);
/* Call before the first channel_take, when all fields above are filled in. */
void channel_begin(struct proxy_channel *c);
/* Takes the commands that are there, up to a limit; returns whether it took any. */
bool channel_take(struct proxy_channel *c);
/* Whether its first command is a fence that waits for another lane: nobody says when channel_take
 * is to be called again. */
static inline bool channel_waits_for_lane(const struct proxy_channel *c)
{
    return c->crossing.waits;
}
/* Whether a command that was taken is not complete, as of the last channel_publish. */
static inline bool channel_pending(const struct proxy_channel *c)
{
    return c->finished != c->taken;
}
/* Publishes to kernels how far commands are complete, if that has changed. */
void channel_publish(struct proxy_channel *c);
/* The position before which the sources of all puts may be reused. Answers the commands that have
 * waited for it. */
uint64_t channel_sent(struct proxy_channel *c);
/* Sends a response that raise has delayed. */
void channel_answer(const struct proxy_way *way, const struct proxy_answer *a);
/* Whether there is a command that could be taken: one that came after channel_take, or was beyond
 * its limit. */
bool channel_has_work(const struct proxy_channel *c);
/* Whether the command at this position has been written, both slots of one that has two. Without
 * the lock: of a position that is taken meanwhile it says anything. */
bool channel_is_written(const struct proxy_channel *c, uint64_t position);

/* For how many ns nothing has been completed although something is due; 0: nothing is due. */
uint64_t channel_stalled(struct proxy_channel *c, uint64_t now);
/* The first command that is due, and the number of positions; returns its PE. */
int channel_describe(const struct proxy_channel *c, char *text, size_t size);

/* For the watchdog: whether the commands in flight have not advanced for `limit` ns; true once for
 * each time that they stall. text then names the first command, and their number. */
bool channel_overdue(struct proxy_channel *c, uint64_t now, uint64_t limit, char *text,
                     size_t size);

#endif
