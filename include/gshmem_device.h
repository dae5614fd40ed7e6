/* GSHMEM in kernels. CUDA sources include this (gshmem.h does so for them), for nvcc and for the
 * host device alike. Nothing has to be linked for it, and no -rdc is needed.
 *
 * The functions of gshmem.h that make sense in a kernel exist there by the same name and with the
 * same meaning: every thread that calls one performs it. Functions that end in _warp and _block are
 * called by all threads of a warp or block with the same arguments. These threads perform the
 * operation once, together. The data includes what any of them wrote before the call, and all of
 * them get the result. Nonblocking forms (_nbi) may return before the operation is complete.
 * gshmem_quiet completes all operations that this PE has issued on the context before, from any
 * thread, on the host too. gshmem_fence orders these operations before those that the calling
 * thread issues next (gshmem.h, Order).
 *
 * Where a peer's memory is mapped, the calling threads perform an operation by loads and stores.
 * Otherwise the operation becomes a command to the PE's proxy thread (gshmem/device/command.h). A
 * wait in a kernel ends with a status when the job is aborted, or when a PE on which the wait may
 * depend has died.
 *
 * Collectives in kernels: one thread, warp or block of each PE of the team calls, and the kernels
 * of all these PEs must be able to run at the same time. */
#ifndef GSHMEM_DEVICE_H
#define GSHMEM_DEVICE_H

#include "gshmem_names_begin.h"

#ifndef __CUDACC__
#error "gshmem_device.h is for CUDA sources: compile this with gshmemcc as a .cu file"
#endif

#include "gshmem.h"
#include "gshmem/wait.h"

#include "gshmem/device/module.h"
#include "gshmem/device/scope.h"
#include "gshmem/device/wait.h"
#include "gshmem/device/reach.h"
#include "gshmem/device/post.h"
#include "gshmem/device/copy.h"
#include "gshmem/device/order.h"
#include "gshmem/device/rma.h"
#include "gshmem/device/atomic.h"
#include "gshmem/device/indexed.h"
#include "gshmem/device/wait_until.h"
#include "gshmem/device/team.h"
#include "gshmem/device/collective.h"
#include "gshmem/device/reduce.h"
#include "gshmem/device/range.h"
#include "gshmem/device/typed.h" /* generated */
#include "gshmem/collective_launch.h"
#include "gshmem/counted.h"

#include "gshmem_names_end.h"

#endif
