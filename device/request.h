/* What a device with streams and memory of its own is asked to do there: one operation of GSHMEM,
 * with arguments that have been checked. It is copied into the launch of a kernel
 * (device/cuda/kernels.cu), so that it is plain data, the same for all compilers, and names nothing
 * that may be gone by then. */
#ifndef GSHMEM_DEVICE_REQUEST_H
#define GSHMEM_DEVICE_REQUEST_H

#include <stdint.h>

/* What, and which of the arguments it has. The collectives are the last. */
enum device_call {
    DEVICE_UPDATE, /* dest: where kernels of this device find it; type, op (enum gshmem_amo),
                          value: operand, compare */
    DEVICE_PUT,    /* dest, source, n bytes, pe */
    DEVICE_GET,
    DEVICE_IPUT, /* dest, source, n elements of `element` bytes, dst and sst apart, pe */
    DEVICE_IGET,
    DEVICE_P,          /* dest, value, n bytes (1, 2, 4, 8 or 16), pe */
    DEVICE_PUT_SIGNAL, /* dest, source, n bytes, sig_addr, value[0], op (GSHMEM_SIGNAL_…), pe */
    DEVICE_SIGNAL,     /* sig_addr, value[0], op, pe */
    DEVICE_WAIT_ONE,   /* source, type, op (GSHMEM_CMP_…), value[0] */
    /* source, n variables, type, op, status, value[0] or (vector) the array at dest */
    DEVICE_WAIT_ALL,
    DEVICE_QUIET,
    DEVICE_FLUSH,
    DEVICE_SYNC, /* team; from here on all have one */
    DEVICE_BARRIER,
    DEVICE_BROADCAST, /* dest, source, n bytes, root: pe */
    DEVICE_FCOLLECT,
    DEVICE_ALLTOALL,
    DEVICE_REDUCE, /* dest, source, n elements, type, op (enum gshmem_op) */
    DEVICE_REDUCESCATTER,
    DEVICE_COLLECT,   /* dest, source, n bytes, which may differ */
    DEVICE_ALLTOALLS, /* dest, source, n elements of `element` bytes for each, dst and sst apart */
    DEVICE_INSCAN,    /* dest, source, n elements, type: sums */
    DEVICE_EXSCAN,
    DEVICE_CALLS
};

struct device_request {
    uint32_t call;
    int32_t pe;
    int32_t team;
    int32_t type;
    int32_t op;
    uint32_t vector;
    uint64_t dest, source; /* addresses */
    uint64_t n, element;
    int64_t dst, sst;
    uint64_t sig_addr;
    uint64_t status; /* [n]: not 0: left out; 0: none is */
    uint64_t value[2];
    uint64_t
        answer; /* where the struct device_answer goes; 0: a failure goes to the error policy */
};

/* In memory that the device shares with the CPU, which reads it when the request is done. */
struct device_answer {
    uint64_t old;     /* of an update */
    uint64_t outcome; /* the gshmem_status_t */
};

static inline int device_call_is_collective(uint32_t call)
{
    return call >= DEVICE_SYNC;
}

#endif
