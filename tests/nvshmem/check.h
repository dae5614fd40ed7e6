/* For tests in NVSHMEM's own style: what failed is said, and the process ends with 1. */
#ifndef GSHMEM_TESTS_NVSHMEM_CHECK_H
#define GSHMEM_TESTS_NVSHMEM_CHECK_H

#include <nvshmem.h>
#include <nvshmemx.h>

#include "../check.h"
#include "../device/device.h"

#endif
