/* The objects of the cuda device: the device, and the record of each of its parts. What each layer
 * does with them is declared by the layer, from the ground up: driver.h, context.h (with gpu.h),
 * memory.h, streams.h. device.c is on top. */
#ifndef GSHMEM_CUDA_H
#define GSHMEM_CUDA_H

#include <pthread.h>

#include "device/cuda/driver.h"
#include "device/device.h"

/* How pieces of a heap get to other processes, best first; device_card.share. */
enum cuda_share { SHARE_AUTO, SHARE_DESCRIPTOR, SHARE_FABRIC, SHARE_IPC };

/* The library's kernel as one GPU has it. */
struct cuda_code {
    cuda_module module;
    cuda_function function;
    cuda_address state; /* its struct gshmem_device_state */
};

/* The kernel that performs requests. */
struct cuda_kernel {
    pthread_mutex_t lock; /* held while it is loaded */
    bool loaded;
    pthread_mutex_t serve_lock; /* held while it is given the state of the job */
    bool serves;
    struct cuda_code code;
};

/* A GPU that this PE's GPU has no peer access to. It updates its own memory for this PE. */
struct cuda_elsewhere {
    cuda_gpu gpu;
    cuda_context context;
    cuda_stream stream;
    cuda_event event; /* behind the last update */
    struct cuda_code code;
    struct cuda_elsewhere *next;
};

enum { CUDA_UPDATES_MOST = 64 }; /* under way at one time; one more waits */

/* An update under way. */
struct cuda_updating {
    cuda_event event; /* behind it; NULL: this place was not used so far */
    cuda_gpu gpu;     /* which performs it */
    cuda_address at;
    uint64_t begun;   /* ns */
    bool forgotten;   /* nobody will ask for it: the place is free when the update is done */
};

/* Copies and updates that are started and polled. */
struct cuda_work {
    pthread_mutex_t lock;
    cuda_stream stream;  /* of copies */
    cuda_stream updates; /* of updates: each comes after the copies that were started before it */
    cuda_event event[DEVICE_COPIES_MOST]; /* [ticket, as a ring]; NULL: not used so far */
    uint64_t last; /* the last ticket given; the first is 1 */
    uint64_t done; /* this ticket and all before it are known to be done */
    struct device_answer *answer; /* [CUDA_UPDATES_MOST] */
    struct cuda_updating updating[CUDA_UPDATES_MOST];
    uint64_t answers_free;        /* a bit for each */
    struct cuda_elsewhere *elsewhere;
    bool warned; /* that an update waits for long */
};

/* A team's latest collective. */
struct cuda_order {
    cuda_event last;
    bool recorded;
};

/* A blocking request: a call of the CPU waits for it. */
struct cuda_blocking_request {
    cuda_stream stream;
    cuda_event event;
    struct device_answer *answer;
    struct cuda_blocking_request *next; /* in the list of free ones */
};

/* The GPUs that NVLink connects across nodes, and this PE's place among them. */
struct cuda_domain {
    bool member; /* this GPU is one, and its memory can go to the others */
    unsigned char uuid[16];
    uint32_t clique;
    int heaps; /* open heaps of PEs of other nodes */
};

struct cuda {
    struct device base;
    struct cuda_driver driver;
    struct device_config config;
    cuda_gpu gpu;
    int gpus;
    cuda_context context;
    cuda_stream
        /* of copies that are done on return; nothing else waits for it, nor it for anything */
        stream;
    enum cuda_share share;
    unsigned char uuid[16];
    struct cuda_domain domain;
    char text[160];
    struct cuda_kernel kernel;
    struct cuda_work work;
    struct heap *
        unreached; /* under work.lock: the heaps that another GPU loads and stores in for this PE */
    pthread_mutex_t order_lock; /* of all that follow */
    struct cuda_order *order;   /* [team] */
    int orders;
    struct cuda_blocking_request *free_requests;
};

static inline struct cuda *cuda_of(struct device *d)
{
    return (struct cuda *)d;
}

#endif
