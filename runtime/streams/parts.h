/* What the parts of operations on streams share: stream.c, with the calls; perform.c, where the CPU
 * performs them when a stream has reached them; device.c, where the device performs them. */
#ifndef GSHMEM_RUNTIME_STREAMS_PARTS_H
#define GSHMEM_RUNTIME_STREAMS_PARTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/request.h"
#include "gshmem/stream.h"

/* The collectives of a team that are on streams and that the CPU performs. */
struct queue {
    uint64_t put; /* under put_lock */
    _Atomic uint64_t done;
};

/* The arguments of any operation. */
struct request {
    enum device_call what;
    gshmem_status_t (*run)(const struct request *r);
    void *dest;
    const void *source;
    size_t n; /* bytes, elements or variables */
    size_t element;
    ptrdiff_t dst, sst;
    int pe; /* or a root */
    gshmem_team_t team;
    enum gshmem_type type;
    enum gshmem_op op;
    uint64_t *sig_addr;
    uint64_t signal;
    int signal_op; /* or a comparison */
    const int *status;
    int vector;
    struct queue *queue; /* of a collective: where it takes its turn */
    uint64_t turn;
    _Alignas(16) unsigned char value[16];
    bool captured; /* in a graph: performed at each launch of the graph, or never */
    bool came;     /* its stream has reached it */
    uint64_t job;  /* the job in which it was put on the stream */
};

/* Puts the request on a stream of a device that takes requests. */
gshmem_status_t stream_put_request(gshmem_stream_t stream, const char *call,
                                   const struct request *r);

/* Puts what is wanted on the stream, to be performed when the stream reaches it. collective: of
 * wanted->team. */
gshmem_status_t stream_put_on(gshmem_stream_t stream, const char *call,
                              const struct request *wanted);
gshmem_status_t stream_put_collective_on(gshmem_stream_t stream, const char *call,
                                         const struct request *wanted);

#endif
