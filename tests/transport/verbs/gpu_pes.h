/* Two PEs in one process, each with a heap in memory of a simulated GPU (the module of the cuda device, and
 * tests/cuda/driver below it) and a verbs transport over the fake of libibverbs; and between them a transport
 * below, which carries notes and carries out requests at once. */
#ifndef VERBS_GPU_PES_H
#define VERBS_GPU_PES_H

#include "check.h"
#include "device/device.h"
#include "fake.h"
#include "gshmem/rma.h"
#include "gshmem/type.h"
#include "transport/verbs/coalesced.h"
#include "transport/verbs/failover.h"
#include "transport/verbs/links.h"
#include "transport/verbs/memory.h"
#include "transport/verbs/post.h"
#include "transport/verbs/stripes.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/watch.h"

enum { HOST, GPU, COUNTERS /* which NICs update */, SEGMENTS };
enum { PES = 2, HOST_BYTES = 4 << 20, LIMIT = 128 << 20, NOTES = 64 };

struct pe {
    struct transport *t;
    struct transport_config config;
    struct transport below;
    struct device_heap_map heap;
    uint64_t there;
    char *memory, *own; /* host memory; GPU memory that is not in the heap */
    uint64_t counters[512];
    int passed_down, notes;
    size_t bytes[NOTES];
    unsigned char note[NOTES][TRANSPORT_NOTE_MAX];
};

extern struct pe pe[PES];
extern bool stages;           /* one of the two does */
extern struct device *device; /* of both, */
extern struct device_ops ops; /* whose calls a test may replace */
extern uint64_t pool;         /* of pinned buffers */
extern bool flushes;          /* kernels see late what NICs write */
extern int ok, posted;        /* requests */
extern gshmem_status_t failed; /* of those that did, the last */

/* The device of this module. */
void open_device(const char *module);
void close_device(void);

void begin_both(enum transport_way of_first, enum transport_way of_second);
void close_both(void); /* their transports, before the end */
void end(void);
bool drive(void); /* one round of all; whether anything happened */
/* Requests of PE 0 to PE 1, or of either to the other; drives while the queue is full. */
void post(struct transport_request r);
void post_from(int from, struct transport_request r);
void settle(void); /* drives until all have ended, without a failure */

void grow(struct pe *p, uint64_t bytes);
char *at_of(int which, int segment, uint64_t offset);
void copy(void *to, const void *from, size_t bytes); /* of any memory */
void fill(char *at, size_t bytes, unsigned seed);
/* What a kernel that runs sees of a GPU's memory. */
void look(void *to, const void *from, size_t bytes);
/* Adds to a word of either memory, or fetches it; as copies. */
uint64_t update_word(const struct device_update *u);

#endif
