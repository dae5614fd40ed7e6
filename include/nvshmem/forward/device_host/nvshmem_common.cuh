/* <device_host/nvshmem_common.cuh>, which some programs include: all of the interface. */
#include <nvshmem.h>
#include <nvshmemx.h>
