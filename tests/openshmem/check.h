/* tests/check.h for programs of shmem.h. */
#ifndef GSHMEM_TESTS_OPENSHMEM_CHECK_H
#define GSHMEM_TESTS_OPENSHMEM_CHECK_H

#include <shmem.h>

#include "../check.h"

#undef CHECK_PE
#define CHECK_PE() shmem_my_pe()

/* A call that answers nothing, and one that answers 0. */
#define DO(call)         (call)
#define CHECK_ZERO(call) CHECK_EQ(call, 0)

#endif
