/* <device/nvshmem_coll_defines.cuh>, which some programs include: all of the interface. */
#include <nvshmem.h>
#include <nvshmemx.h>
