/* What the host device tells of the kernels that it runs, while somebody listens: the trace
 * (GSHMEM_TRACE). libgshmem_host.so has the kernels, and libgshmem the trace. */
#ifndef GSHMEM_DEVICE_KERNEL_EVENTS_H
#define GSHMEM_DEVICE_KERNEL_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/kernel_place.h"

enum kernel_event {
    KERNEL_BEGINS, /* value: its blocks */
    KERNEL_ENDS,
    KERNEL_BLOCK_BEGINS, /* value: its threads */
    KERNEL_BLOCK_ENDS,
    KERNEL_BLOCK_IDLE, /* all threads of the block wait, some of them for other PEs */
    KERNEL_BLOCK_BUSY, /* and one goes on */
    KERNEL_WAIT_ENDS, /* one that was told while it lasted */
    KERNEL_RANGE_BEGINS, /* of the program's own */
    KERNEL_RANGE_ENDS,
    KERNEL_HOST_WAITS, /* a thread of the host waits for kernels, copies or calls */
    KERNEL_HOST_GOES_ON,
};

/* A wait of a thread. A short one is told when it is over. Times are ticks. */
struct kernel_wait {
    uint64_t place;      /* as for tell */
    uint64_t address;    /* that is polled; 0: other blocks are waited for */
    uint64_t by;         /* awaited_by, of when the wait began */
    uint64_t begin, end; /* end: 0 if the wait lasts, and KERNEL_WAIT_ENDS follows */
    uint64_t idle; /* since when the block had been idle, and it is not told; 0: it was not */
};

struct kernel_events {
    /* ticks: when it was; 0: now. place: of the thread, as kernel_place; 0: of the host. name: the
     * kernel's, or the range's; it is copied. */
    void (*tell)(enum kernel_event what, uint64_t ticks, uint64_t place, const char *name,
                 uint64_t value);
    /* Of a short one: in place of KERNEL_BLOCK_IDLE and its end, too. */
    void (*waited)(const struct kernel_wait *w);
    uint64_t (*ticks)(void);
    /* Who may write to this address, as a number of the listener's own; 0: no other PE, nor the
     * proxy. Asked when a wait begins, and not when it is told: then the program may have freed the
     * team. */
    uint64_t (*awaited_by)(uint64_t address);
};

/* From now on the host device, where this process has it, tells these functions what its kernels
 * do; NULL: nobody. Called again when the process may have got the device. Launches that have begun
 * are not told. */
void device_listen(const struct kernel_events *to);
/* Of the caller, as kernel_place; 0: it is not a thread of a kernel that is told. */
uint64_t device_kernel_place(void);

#endif
