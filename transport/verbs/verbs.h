/* What all links of the transport share.
 *
 * It stands on TCP (config.below), where each PE has proved to be of the job. TCP carries the
 * control messages that set up queue pairs, notices that a PE has failed, and takes the requests to
 * PEs that no NIC reaches. */
#ifndef GSHMEM_TRANSPORT_VERBS_VERBS_H
#define GSHMEM_TRANSPORT_VERBS_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/staging.h"
#include "transport/transport.h"
#include "transport/verbs/link.h"
#include "transport/verbs/nic.h"
#include "transport/verbs/op.h"

struct resolver;

enum {
    BELOW_ROUNDS = 64,   /* calls of progress from one poll of the transport below to the next */
    RETRY_ROUNDS = 1024, /* and from one look at paths that are down to the next */
};

/* ibv_reg_dmabuf_mr */
typedef struct ibv_mr *register_dma_buf(struct ibv_pd *pd, uint64_t offset, size_t bytes,
                                        uint64_t address, int fd, int access);

struct verbs {
    struct transport base;
    struct transport_config config;
    struct transport *below;
    const struct link_reports *report; /* who is above: link.h */

    /* NICs, and memory that they reach. */
    struct nic nic[NICS_MOST];
    int opened, nics;       /* those in use, of those opened; 0: everything goes below */
    enum transport_way way; /* to memory of a device */
    register_dma_buf *register_dma_buf; /* NULL: this libibverbs has none */
    bool gpu_below;                     /* NICs do not reach that memory: it is staged */
    bool refusal_said; /* it was logged that some memory cannot be registered: once is enough */
    struct staging staging;

    struct link **to;   /* [PE]: NULL until it is first talked to */
    bool *gone;         /* [PE]: it has failed */
    struct link *links; /* the list of those */
    char *slots;        /* SLOTS of SLOT_BYTES */
    int slot_free[SLOTS], slots_left;

    /* Settings. */
    uint32_t coalesce_from;      /* so many small puts go as one message; */
    uint32_t coalesce_signalled; /* with signals, so many bytes at most of each */
    uint64_t flight_most;        /* of each NIC, in bytes; 0: no limit */
    uint32_t works_most;         /* of each NIC, in work requests; 0: no limit */
    uint32_t share;              /* receives for each peer, of what each NIC has */
    int queue_pairs;             /* between two NICs */

    /* Progress. */
    int wait_fd;        /* epoll: of the transport below, and the NICs' channels */
    bool held_back;     /* the next call of progress has to look at all links */
    bool settled;       /* all links were active when they were last looked at */
    int events;         /* of this call */
    unsigned rounds;    /* calls of progress */
    int stopping;       /* paths that wait for their completions to be drained */
    uint64_t looked_at; /* ns: when it was last looked whether peers live */

    /* Set-up of queue pairs. */
    int connecting;            /* paths of iWARP */
    struct resolver *resolver; /* threads; NULL until one is needed */
    int resolving;             /* queue pairs that it has, and that have not been taken back */
};

extern const struct transport_ops gshmem_transport __attribute__((visibility("default")));

#endif
