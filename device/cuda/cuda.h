/* What the parts of the cuda device know of each other: device.c (which GPU, copies, small memory),
 * heap.c (the symmetric heap), multicast.c (addresses that stand for several heaps), buffer.c (memory of
 * the program's, and what NICs are given), kernel.c (the library's own kernel), work.c (updates by it, and
 * copies that are not waited for at once), elsewhere.c (updates on other GPUs), window.c (memory of the
 * program's as part of the heap), stream.c (requests on streams, and of the CPU's) and report.c (what
 * gshmem-info says of a GPU). */
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
    pthread_mutex_t lock; /* while it is loaded */
    bool loaded;
    pthread_mutex_t serve_lock; /* while it is told of the job */
    bool serves;
    struct cuda_code code;
};

/* A GPU that this one has no peer access to, which makes this PE's updates of its memory. */
struct cuda_elsewhere {
    cuda_gpu gpu;
    cuda_context context;
    cuda_stream stream;
    cuda_event event; /* behind the last update */
    struct cuda_code code;
    struct cuda_elsewhere *next;
};

enum { CUDA_UPDATES_MOST = 64 }; /* at one time; one more waits */

/* Work of the library's own, in the order in which it comes. */
struct cuda_updating {
    cuda_event event; /* behind it; NULL: not needed so far */
    cuda_gpu gpu;     /* which makes it */
    cuda_address at;
    uint64_t begun;   /* ns */
    bool forgotten;   /* its place is free when it is over */
};

struct cuda_work {
    pthread_mutex_t lock;
    cuda_stream stream;  /* copies, */
    cuda_stream updates; /* and updates, each behind the copies that were started before it */
    cuda_event event[DEVICE_COPIES_MOST]; /* by ticket; NULL: not needed so far */
    uint64_t last; /* the last ticket given; the first is 1 */
    uint64_t done; /* known to be done, and all before it */
    struct device_answer *answer; /* [CUDA_UPDATES_MOST] */
    struct cuda_updating updating[CUDA_UPDATES_MOST];
    uint64_t answers_free;        /* a bit for each */
    struct cuda_elsewhere *elsewhere;
    bool warned; /* that one waits for long */
};

/* The last collective of a team that has been asked for. */
struct cuda_order {
    cuda_event last;
    bool recorded;
};

/* A call of the CPU's that waits for a request, or could. */
struct cuda_errand {
    cuda_stream stream;
    cuda_event event;
    struct device_answer *answer;
    struct cuda_errand *next; /* of those that are free */
};

/* GPUs of several hosts that NVLink connects, and this PE's place among them. */
struct cuda_domain {
    bool member; /* and its memory can go to others of it */
    unsigned char uuid[16];
    uint32_t clique;
    int heaps; /* of PEs of other hosts that are open */
};

struct cuda {
    struct device base;
    struct cuda_driver driver;
    struct device_config config;
    cuda_gpu gpu;
    int gpus;
    cuda_context context;
    cuda_stream stream; /* for copies; waits for nothing else, and nothing else for it */
    enum cuda_share share;
    unsigned char uuid[16];
    struct cuda_domain domain;
    char text[160];
    struct cuda_kernel kernel;
    struct cuda_work work;
    struct heap *far_heaps; /* under work.lock: those that another GPU loads and stores in */
    pthread_mutex_t order_lock; /* of all that follow */
    struct cuda_order *order;   /* [team] */
    int orders;
    struct cuda_errand *errands;
};

static inline struct cuda *cuda_of(struct device *d)
{
    return (struct cuda *)d;
}

/* Fails with a line that says what was tried: "…: out of memory (CUDA_ERROR_OUT_OF_MEMORY, 2)". */
gshmem_status_t cuda_fail(const struct cuda *c, cuda_result result, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* Calls of the driver are about the GPU of the thread's context: between these it is ours. Also what a
 * thread that captures a stream may not do otherwise can be done then: it is beside the capture. */
gshmem_status_t cuda_enter(const struct cuda *c);
void cuda_leave(const struct cuda *c);
/* The same of another GPU's context. */
gshmem_status_t cuda_enter_context(const struct cuda *c, cuda_context context, cuda_gpu gpu);

/* The one that a PE takes, and of how many; or why it can take none. */
bool cuda_find_gpu_for(const struct cuda_driver *d, const struct device_config *config, int *gpus,
                       cuda_gpu *gpu, char *why, size_t why_size);
/* The GPU with that uuid among those this process sees, or -1. */
cuda_gpu cuda_find_gpu(const struct cuda *c, const unsigned char uuid[16]);

/* Whether this PE's GPU says so of itself. */
bool cuda_has(const struct cuda *c, enum cuda_attribute which);
/* Whether all of it is memory of a GPU that this process has, without a hole; between enter and leave. */
bool cuda_is_gpu_memory(const struct cuda *c, cuda_address at, size_t bytes);

/* Chooses how pieces are shared, as far as the GPU can and the setting allows. */
gshmem_status_t cuda_choose_share(struct cuda *c);
const char *cuda_share_name(enum cuda_share share);

/* A piece of memory, or what stands for several, to other processes of the host and back. The descriptor
 * that is given is not closed. */
cuda_result cuda_export(struct cuda *c, cuda_piece piece, struct device_piece *out);
cuda_result cuda_import(struct cuda *c, const struct device_piece *given, cuda_piece *piece);
int cuda_handle_type(const struct cuda *c);
/* The same for PEs of other hosts, where this one is in a domain: memory of the heap, which is made for it. */
cuda_result cuda_export_remote(struct cuda *c, cuda_piece piece, struct device_piece *out);
cuda_result cuda_import_remote(struct cuda *c, const struct device_piece *given, cuda_piece *piece);
/* How memory is made that the heap consists of. */
struct cuda_allocation cuda_allocation_of(const struct cuda *c);

/* The heap's slots of device_ops. */
gshmem_status_t cuda_describe(struct device *d, uint64_t most, struct device_card *card);
gshmem_status_t cuda_heap_open(struct device *d, const struct device_card *card, uint64_t limit,
                               uint64_t window, struct device_heap_map *map);
gshmem_status_t cuda_heap_grow(struct device *d, struct device_heap_map *map, uint64_t bytes,
                               struct device_piece *piece);
gshmem_status_t cuda_heap_follow(struct device *d, struct device_heap_map *map,
                                 const struct device_piece *piece);
uint64_t cuda_heap_shrink(struct device *d, struct device_heap_map *map, uint64_t bytes);
void cuda_heap_close(struct device *d, struct device_heap_map *map);

gshmem_status_t cuda_heap_open_remote(struct device *d, const struct device_card *card, uint64_t limit,
                                    uint64_t window, struct device_heap_map *map);

/* Whether this PE's GPU is in a domain, where there are PEs on other hosts; else c->domain stays empty. */
void cuda_find_domain(struct cuda *c);

uint64_t cuda_heap_piece(struct device *d, const struct device_heap_map *map, uint64_t offset);

/* The GPU that loads and stores in the heap with that address, this one if it is in none; with work.lock. */
cuda_gpu cuda_heap_reader(const struct cuda *c, cuda_address at);
/* Those of what the heap is lent. */
gshmem_status_t cuda_window_take(struct device *d, struct device_heap_map *map, const void *at,
                                 uint64_t bytes, uint64_t offset, struct device_piece *piece);
gshmem_status_t cuda_window_follow(struct device *d, struct device_heap_map *map,
                                   const struct device_piece *piece);
void cuda_window_drop(struct device *d, struct device_heap_map *map, uint64_t offset, uint64_t bytes);

/* And those of multicast. */
bool cuda_can_multicast(const struct cuda *c);
gshmem_status_t cuda_multicast_open(struct device *d, uint64_t limit, struct device_multicast *m);
gshmem_status_t cuda_multicast_offer(struct device *d, struct device_multicast *m, int n,
                                     struct device_piece *piece);
gshmem_status_t cuda_multicast_join(struct device *d, struct device_multicast *m,
                                    const struct device_piece *piece);
gshmem_status_t cuda_multicast_bind(struct device *d, struct device_multicast *m,
                                    const struct device_heap_map *mine);
void cuda_multicast_shrink(struct device *d, struct device_multicast *m, uint64_t bytes);
void cuda_multicast_close(struct device *d, struct device_multicast *m);

/* What gshmem-info says of a GPU. */
void cuda_report(const struct device_config *config, struct device_report *r);

/* Those of the program's memory, and of NICs. */
bool cuda_owns(struct device *d, const void *at, size_t bytes);
gshmem_status_t cuda_pin(struct device *d, void *at, size_t bytes, bool *pinned);
void cuda_unpin(struct device *d, void *at);
gshmem_status_t cuda_export_range(struct device *d, const void *at, size_t bytes, int *fd,
                                  uint64_t *offset);
enum device_nic_order cuda_nic_order(const struct cuda *c);
gshmem_status_t cuda_flush(struct device *d);

/* Puts a request on a stream. The GPU is ours; the first that needs the state of the job takes its time. */
gshmem_status_t cuda_kernel_launch(struct cuda *c, const struct device_request *r, cuda_stream stream);
gshmem_status_t cuda_kernel_open(struct cuda *c);
void cuda_kernel_close(struct cuda *c);
/* The kernel for another GPU, whose context is current. */
gshmem_status_t cuda_kernel_load(const struct cuda *c, cuda_gpu gpu, struct cuda_code *code);
gshmem_status_t cuda_kernel_launch_code(const struct cuda *c, cuda_gpu gpu, const struct cuda_code *code,
                                        const struct device_request *r, cuda_stream stream);

/* An update on that GPU, after all work so far (`before`, or NULL) and before what is put on the work's
 * stream later; with work.lock and the GPU ours. */
gshmem_status_t cuda_update_elsewhere(struct cuda *c, cuda_gpu gpu, const struct device_request *r,
                                      cuda_event before);
void cuda_elsewhere_close(struct cuda *c);

/* Slots of device_ops, and the stream that they are on. */
gshmem_status_t cuda_work_open(struct cuda *c);
void cuda_work_close(struct cuda *c);
gshmem_status_t cuda_update(struct device *d, const struct device_update *u, uint64_t *old);
gshmem_status_t cuda_update_start(struct device *d, const struct device_update *u, uint64_t *ticket);
bool cuda_update_done(struct device *d, uint64_t ticket, uint64_t *old, gshmem_status_t *status);
void cuda_update_forget(struct device *d, uint64_t ticket);
/* With the GPU ours: until those are over that were forgotten, before memory that they touch is given back. */
void cuda_work_await_forgotten(struct cuda *c);
gshmem_status_t cuda_copy_start(struct device *d, void *to, const void *from, size_t bytes,
                                uint64_t *ticket);
bool cuda_copy_done(struct device *d, uint64_t ticket, gshmem_status_t *status);

gshmem_status_t cuda_stream_copy(struct device *d, void *stream, void *to, const void *from,
                                 size_t bytes);
gshmem_status_t cuda_stream_request(struct device *d, void *stream, const struct device_request *r);
gshmem_status_t cuda_find_state(struct device *d, void *module, bool library, size_t bytes, void **state);
bool cuda_kernels_see(struct device *d, const void *at, size_t bytes);
gshmem_status_t cuda_streams_wait(struct device *d);
bool cuda_streams_busy(struct device *d);
gshmem_status_t cuda_request_start(struct device *d, const struct device_request *r, void **errand);
bool cuda_request_done(struct device *d, void *errand, gshmem_status_t *status);
void cuda_streams_close(struct cuda *c);

#endif
