/* A channel as the proxy sees it: commands come off its ring in order, are posted in order, end in any
 * order, and are done in order again.
 *
 *     finished ≤ taken ≤ ticket        [finished, taken): posted, each with a record of its own
 *
 * There are as many records as slots. A command for which the transport has no room, or no record is
 * free, stays in the ring. Knows nothing of jobs: how to reach a PE is in struct proxy_way. All of it
 * belongs to who holds the network's lock. */
#ifndef GSHMEM_PROXY_CHANNEL_H
#define GSHMEM_PROXY_CHANNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gshmem/device/command.h"
#include "transport/transport.h"

/* What a kernel waits for, if it does. */
struct proxy_answer {
    uint64_t value[2];
    uint16_t response;
    uint8_t tag;
    uint8_t status;
    bool wanted;
};

/* How commands reach PEs. */
struct proxy_way {
    int n_pes; /* of the job */
    /* The segment that nearly all commands are about: what lies in it is found without `aim`. */
    uint64_t heap, heap_bytes;
    int heap_segment;
    _Atomic uint32_t
        *fences; /* that the PE has passed, on the node too: what requests name their epoch by */
    struct gshmem_response *response; /* [GSHMEM_RESPONSES] */
    /* Where pe's copy of the bytes at `mine` is, as a transport names it; fails with a line that says
     * what is wrong with them. `call` is what the kernel called ("put"); pe is one of the job's. */
    gshmem_status_t (*aim)(void *context, uint64_t mine, uint64_t bytes, int pe, const char *call,
                           int *segment, uint64_t *offset);
    /* Whether this process has memory there. */
    bool (*is_memory)(void *context, uint64_t address, uint64_t bytes);
    /* Writes a few bytes of a result to memory of this process, which may be a device's own. */
    gshmem_status_t (*store)(void *context, void *to, const void *from, size_t bytes);
    /* As a transport's post; to whichever transport that PE is reached by. */
    gshmem_status_t (*post)(void *context, const struct transport_request *request);
    /* What NICs have written to the device's memory is seen by kernels from here on. */
    gshmem_status_t (*flush)(void *context);
    /* Hands a failure to the error policy, with the text of the last error of this thread, and then
     * gives the answer: not at once, since the policy is the program's, and a lock is held. */
    void (*raise)(void *context, gshmem_status_t status, const struct proxy_answer *then);
    void *context;
};

/* A command that has been taken, until it and all before it are done. */
struct passage {
    struct proxy_answer answer; /* also has the value that it sends, or brings */
    uint8_t slots;
    bool plain;    /* nobody is to be told of its end but who waits for quiet */
    bool landed;
    bool raises;
    bool signals;  /* a signal is its second part */
    uint8_t bytes; /* of the value or result */
    struct proxy_channel *channel;
    uint64_t word; /* the command's first, for messages */
    void *result;  /* where an atomic's old value goes in memory; NULL: nowhere */
};

struct proxy_channel {
    const struct proxy_way *way;
    const uint64_t *ring;
    uint32_t slots_log2;
    uint64_t mask; /* slots - 1 */
    uint64_t taken;
    uint64_t finished;
    bool stuck; /* a command is there, but no record or no room in its transport */
    uint64_t published; /* the last `finished` that kernels have been told */
    uint64_t failures;
    gshmem_status_t failure; /* the last */
    struct passage *passage; /* [slots], by position */
    struct transport_request plain; /* what requests of plain puts have in common */
    struct proxy_channel
        *other[GSHMEM_FENCE_CHANNELS - 1]; /* of its context; fewer are the last of these */
    struct {                 /* for the watchdog: what had been finished when it looked, */
        uint64_t finished;
        uint64_t since;      /* ns, since when that is so, */
        bool reported;       /* and whether it has said so */
    } watched;

    uint64_t *tail, *done, *failed; /* as in struct gshmem_device_channel; written here alone */
};

/* Before the first channel_take, when all above is filled in. */
void channel_begin(struct proxy_channel *c);
/* Takes what is there, up to a bound; whether it took anything. */
bool channel_take(struct proxy_channel *c);
/* Tells kernels how far the commands have come, if that has changed. */
void channel_publish(struct proxy_channel *c);
/* Gives an answer that raise has put off. */
void channel_answer(const struct proxy_way *way, const struct proxy_answer *a);
/* Whether a command has come since channel_take, or was more than it took at a time, and could be
 * taken. */
bool channel_has_work(const struct proxy_channel *c);

/* For the watchdog, now and then: whether what is under way has not moved for `limit` ns; once for each
 * time that it stops. text then says what the first command is, and how many there are. */
bool channel_overdue(struct proxy_channel *c, uint64_t now, uint64_t limit, char *text, size_t size);

#endif
