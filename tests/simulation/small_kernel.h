/* What a thread of a kernel does in a small program: small_kernel.c. */
#ifndef TEST_SIMULATION_SMALL_KERNEL_H
#define TEST_SIMULATION_SMALL_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

/* Before gshmem_init: the PE has kernels. */
void small_kernel_begin(void);
/* Twice that value, in 16 bytes. signal: adds 1 there, behind the value; NULL: none. */
void small_kernel_put(uint64_t *at, uint64_t value, int pe, uint64_t *signal);
void small_kernel_fence(void);
/* False: it has failed. */
bool small_kernel_fetch_inc(uint64_t *at, int pe, uint64_t *old);
bool small_kernel_quiet(void);

#endif
