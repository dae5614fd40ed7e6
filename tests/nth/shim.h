/* What shim.c offers to programs and to simulations of NICs and GPUs, where it is loaded. */
#ifndef TESTS_NTH_SHIM_H
#define TESTS_NTH_SHIM_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes a line for each block of memory that GSHMEM has allocated in this process and not freed. */
void nth_left(int fd) __attribute__((weak));
/* Whether the call that a simulation of a NIC or a GPU takes, made from there, fails. */
bool nth_simulated_fails(const char *call, const void *from) __attribute__((weak));

#ifdef __cplusplus
}
#endif

#endif
