/* <device_host/nvshmem_types.h>, which some programs include: all of the interface. */
#include <nvshmem.h>
#include <nvshmemx.h>
