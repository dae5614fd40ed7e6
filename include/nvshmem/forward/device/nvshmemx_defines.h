/* <device/nvshmemx_defines.h>, which some programs include: all of the interface. */
#include <nvshmem.h>
#include <nvshmemx.h>
