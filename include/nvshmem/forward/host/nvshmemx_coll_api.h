/* <host/nvshmemx_coll_api.h>, which some programs include: all of the interface. */
#include <nvshmem.h>
#include <nvshmemx.h>
