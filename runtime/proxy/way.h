/* What channels and the translation of commands share: how commands reach PEs, and the record of a
 * command in flight. */
#ifndef GSHMEM_RUNTIME_PROXY_WAY_H
#define GSHMEM_RUNTIME_PROXY_WAY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gshmem/device/command.h"
#include "transport/transport.h"

struct proxy_channel;

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
    /* GSHMEM_CHECK=memory: whether these bytes, which a kernel's operation reads or writes here,
     * are in an object, if they are in a heap. NULL: that is not checked. */
    gshmem_status_t (*check_local)(void *context, uint64_t address, uint64_t bytes,
                                   const char *call);
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
    /* The signal at this address of a put_signal has not been sent, and no kernel waits for a
     * response that says so: a round of a collective may wait for what comes back. */
    void (*unsent)(void *context, uint64_t signal, gshmem_status_t status);
    void *context;
};

/* The record of a command from when it is taken until it and all before it are complete. */
struct passage {
    struct proxy_answer answer; /* also contains the value that it sends, or receives */
    uint8_t slots;
    bool plain;    /* no response; only a quiet waits for it */
    bool landed;
    bool sent;     /* it has no source, or its source may be reused */
    bool raises;
    bool signals;  /* it is a put with a signal */
    uint8_t bytes; /* of the value or result */
    struct proxy_channel *channel;
    uint64_t word; /* the command's first, for messages */
    uint64_t signal; /* with `signals`: this PE's address of it */
    void *result;  /* where an atomic's old value goes in memory; NULL: nowhere */
};

#endif
