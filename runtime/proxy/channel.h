/* A channel on the proxy's side: commands are taken from its ring in order, posted in order,
 * completed in any order, and reported as done in order.
 *
 *     finished ≤ taken ≤ ticket        [finished, taken): posted, each with a record of its own
 *
 * There are as many records as slots. A command for which the transport has no room, or for which
 * no record is free, stays in the ring. Knows nothing of jobs: struct proxy_way says how to reach a
 * PE. All fields belong to the holder of the network's lock. */
#ifndef GSHMEM_PROXY_CHANNEL_H
#define GSHMEM_PROXY_CHANNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gshmem/device/command.h"
#include "transport/transport.h"

/* The response that a kernel waits for, if it does. */
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
    /* The segment of nearly all commands: an address in it is resolved without `aim`. */
    uint64_t heap, heap_bytes;
    int heap_segment;
    _Atomic uint32_t
        *fences; /* that the PE has passed, on the host too; requests name their epoch by it */
    struct gshmem_response *response; /* [GSHMEM_RESPONSES] */
    /* Finds pe's copy of the bytes at `mine`, in the transport's terms; fails with a line that says
     * what is wrong with them. `call` is what the kernel called ("put"); pe is a PE of the job. */
    gshmem_status_t (*aim)(void *context, uint64_t mine, uint64_t bytes, int pe, const char *call,
                           int *segment, uint64_t *offset);
    /* Whether this process has memory there. */
    bool (*is_memory)(void *context, uint64_t address, uint64_t bytes);
    /* Writes a few bytes of a result to memory of this process, which may be a device's own. */
    gshmem_status_t (*store)(void *context, void *to, const void *from, size_t bytes);
    /* Like a transport's post, to the transport that reaches that PE. */
    gshmem_status_t (*post)(void *context, const struct transport_request *request);
    /* From now on kernels see what NICs have written to the device's memory. */
    gshmem_status_t (*flush)(void *context);
    /* Hands a failure to the error policy, with the text of the last error of this thread, and
     * sends the response after that: later, since the policy is the program's, and a lock is
     * held. */
    void (*raise)(void *context, gshmem_status_t status, const struct proxy_answer *then);
    void *context;
};

/* The record of a command from when it is taken until it and all before it are complete. */
struct passage {
    struct proxy_answer answer; /* also contains the value that it sends, or receives */
    uint8_t slots;
    bool plain;    /* no response; only a quiet waits for it */
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
    uint64_t published; /* the last `finished` that was published to kernels */
    uint64_t failures;
    gshmem_status_t failure; /* the last one */
    struct passage *passage; /* [slots], by position */
    struct transport_request plain; /* the common fields of requests of plain puts */
    struct proxy_channel
        *other[GSHMEM_FENCE_CHANNELS - 1]; /* the other channels of its context; missing ones are at
                                              the end */
    struct {                 /* for the watchdog: what was finished when it last checked */
        uint64_t finished;
        uint64_t since;      /* ns, since when it has not changed */
        bool reported;       /* whether it was reported */
    } watched;

    uint64_t *tail, *done, *failed; /* as in struct gshmem_device_channel; only the proxy writes
                                       them */
};

/* Call before the first channel_take, when all fields above are filled in. */
void channel_begin(struct proxy_channel *c);
/* Takes the commands that are there, up to a limit; returns whether it took any. */
bool channel_take(struct proxy_channel *c);
/* Publishes to kernels how far commands are complete, if that has changed. */
void channel_publish(struct proxy_channel *c);
/* Sends a response that raise has delayed. */
void channel_answer(const struct proxy_way *way, const struct proxy_answer *a);
/* Whether there is a command that could be taken: one that came after channel_take, or was beyond
 * its limit. */
bool channel_has_work(const struct proxy_channel *c);

/* For the watchdog: whether the commands in flight have not advanced for `limit` ns; true once for
 * each time that they stall. text then names the first command, and their number. */
bool channel_overdue(struct proxy_channel *c, uint64_t now, uint64_t limit, char *text, size_t size);

#endif
