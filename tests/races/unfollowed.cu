/* A kernel that is compiled without --check=races, in a program whose others are followed. */
#include <gshmem_device.h>

__global__ void unfollowed(uint64_t *flag)
{
    if (gshmem_uint64_p(flag, 1, 0))
        *flag = 0;
}
