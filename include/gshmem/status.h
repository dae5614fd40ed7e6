/* The status of a call: one table, from which the enum, the names and the texts follow.
 *
 * Most functions that can fail return one of these. The others return a value. After a failure some
 * return NULL or -1 (gshmem_malloc, gshmem_ptr, gshmem_test_lock); the others hand the failure to
 * the error policy (g, fetching atomics, gshmem_signal_wait_until). The function that decides on a
 * failure logs one line with the numbers a person needs. Its callers pass the status on and log
 * nothing. */
#ifndef GSHMEM_STATUS_H
#define GSHMEM_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/*      name           value  what it means */
#define GSHMEM_STATUS_TABLE(X)                                                                     \
    X(OK,                0, "success")                                                             \
    X(ERR_ARGUMENT,      1, "bad argument")                                                        \
    X(ERR_NOT_SYMMETRIC, 2, "address is not symmetric")                                            \
    X(ERR_MEMORY,        3, "out of memory")                                                       \
    X(ERR_UNSUPPORTED,   4, "not supported")                                                       \
    X(ERR_UNREACHABLE,   5, "PE cannot be reached")                                                \
    X(ERR_PEER_DEAD,     6, "peer is dead")                                                        \
    X(ERR_TIMEOUT,       7, "timed out")                                                           \
    X(ERR_ABORTED,       8, "job was aborted")                                                     \
    X(ERR_TRANSPORT,     9, "transport failed")                                                    \
    X(ERR_DEVICE,       10, "device failed")                                                       \
    X(ERR_BOOTSTRAP,    11, "start-up failed")                                                     \
    X(ERR_STATE,        12, "not allowed in this state")                                           \
    X(ERR_MISMATCH,     13, "PEs disagree")                                                        \
    X(ERR_SYSTEM,       14, "system call failed")

typedef enum gshmem_status {
#define X(name, value, text) GSHMEM_##name = value,
    GSHMEM_STATUS_TABLE(X)
#undef X
} gshmem_status_t;

/* Before each function that returns a status: compilers warn where a program ignores it, unless
 * GSHMEM_NO_WARN_UNUSED is defined. In CUDA sources functions that kernels can call too do not
 * warn, since a kernel has nowhere to return a status to. What is ignored nevertheless makes the
 * exit status 1 (gshmem_last_error). */
#ifdef GSHMEM_NO_WARN_UNUSED
#define GSHMEM_NODISCARD
#else
#define GSHMEM_NODISCARD __attribute__((warn_unused_result))
#endif

#ifdef __cplusplus
}
#endif
#endif
