/* <host/nvshmem_macros.h>, which some programs include: all of the interface. */
#include <nvshmem.h>
#include <nvshmemx.h>
