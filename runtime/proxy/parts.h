/* What the parts of the kernels' view of the job share. */
#ifndef GSHMEM_PROXY_PARTS_H
#define GSHMEM_PROXY_PARTS_H

#include "gshmem/device/state.h"
#include "runtime/base/clock.h"
#include "runtime/teams/departures.h"
#include "runtime/proxy/channel.h"
#include "runtime/proxy/memory.h"
#include "runtime/network/lanes.h"
#include "runtime/proxy/service.h"

enum { CHANNEL_SLOTS_LOG2 = 10 };

/* What both sides see of a channel. */
struct channel_shared {
    _Alignas(KERNEL_LINE) uint64_t tail;
    _Alignas(KERNEL_LINE) uint64_t done;
    _Alignas(KERNEL_LINE) uint64_t failed; /* seldom written */
    uint32_t stream; /* as in struct proxy_channel; each post of a traced kernel reads it */
    _Alignas(KERNEL_LINE) uint64_t ring[(1 << CHANNEL_SLOTS_LOG2) * GSHMEM_SLOT_WORDS];
};

/* What the producers of a channel share. */
struct channel_of_device {
    _Alignas(KERNEL_LINE) uint64_t ticket;
    _Alignas(KERNEL_LINE) uint64_t tail_copy;
    uint64_t tail_traced; /* the copy of kernels that are traced, for which the other stays 0 */
    _Alignas(KERNEL_LINE) uint64_t done_copy;
    _Alignas(KERNEL_LINE) uint64_t failed_seen;
};

struct kernel_channel {
    struct proxy_channel proxy;
    int lane; /* that takes from it; 0 is the one of the host's requests */
    struct channel_shared *shared;
    struct channel_of_device *device;
    _Atomic uint64_t
        reported;           /* the value of `failed` that a quiet has returned, as far as the host
                               knows */
    _Atomic bool abandoned; /* what is not complete will never be */
};

struct kernel_context {
    struct device *device; /* the device that has the memory */
    struct network *network;
    struct gshmem_host_operations *host; /* as in struct gshmem_device_ctx */
    struct gshmem_device_ctx *view;
    struct gshmem_device_channel *channel; /* [channels], in the device's memory */
    int channels;
    struct pending *pending; /* the requests of the host on the context */
    bool crosses;            /* it has channels on a lane that is not the host's */
    struct kernel_channel own[];
};

/* What a kernel needs to reach the PEs of a team: [n_pes] each, where kernels can read it. */
struct kernel_tables {
    const uintptr_t *heap, *data, *system;
    const int32_t *world;
};

struct kernel_team {
    struct device *device; /* the device that has the memory */
    struct gshmem_device_team *view;
    struct gshmem_device_rounds *rounds;
    uint64_t *failure, *waiting; /* one allocation */
    uint64_t waited; /* the round that the proxy has found in *waiting, and for how long */
    struct clock_looks waited_looks;
    struct kernel_tables tables;
};

struct job_shared {
    _Alignas(KERNEL_LINE) uint64_t failure;
    struct proxy_asleep asleep[LANES_MOST];
    _Alignas(KERNEL_LINE) struct gshmem_response response[GSHMEM_RESPONSES];
};

struct job_of_device {
    struct gshmem_device_job job;
    uint32_t response_owner[GSHMEM_RESPONSES];
    const struct gshmem_device_team *team[TEAM_MAX];
};

struct kernels {
    struct gshmem_device_state state;
    atomic_bool complete; /* every team and context in the job's lists has a view; set under the
                             job's lock (kernels_of) */
    struct service service[LANES_MOST];
    atomic_uint contexts; /* made so far: their channels are on lanes in turn */
    struct job_shared *shared;
    struct job_of_device *device;
    struct kernel_context *context; /* the default one */
    struct kernel_pairs *pairs;     /* the tables of queue pairs, the newest first */
    uintptr_t *nowhere; /* [PE of the job]: 0, for kernels that must not find a PE mapped */
    bool mapped;
    int looked_at; /* the PE of this node whose liveness was tested last */
    bool *dead;    /* [PE of the job] */
    struct departures_watch left; /* the proxy's */
    bool any_left;
};

/* The PEs of a team, on the channels of a context. */
struct gshmem_device_ctx kernels_view(const struct job *j, const struct team *t,
                                      const struct kernel_context *on);

/* The kernels' view, once it is complete; NULL before, and where there is none. acquire: pairs with
 * the release in make_views */
static inline struct kernels *kernels_of(const struct job *j)
{
    struct kernels *k = j->kernels;

    return k && atomic_load_explicit(&k->complete, memory_order_acquire) ? k : NULL;
}

/* What a team, a context and the table of queue pairs have for kernels; the caller holds the job's
 * lock, or nobody else knows the team or context. */
bool kernels_make_view(struct job *j, struct team *t);
gshmem_status_t kernels_make_context_view(struct job *j, struct context *c);
gshmem_status_t kernels_fill_queue_pairs(struct job *j);

/* A context with that many channels, which the network takes from; its view is not filled in. */
gshmem_status_t kernels_make_context(struct job *j, int channels, struct pending *pending,
                                     struct kernel_context **out);
void kernels_free_context(struct job *j, struct kernel_context *k);
void kernels_free_queue_pairs(struct job *j);

#endif
