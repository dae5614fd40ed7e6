/* A kernel that calls GSHMEM. */
#include <gshmem.h>

__global__ void kernel(int *object)
{
    gshmem_int_p(object, gshmem_my_pe(), 1);
}

extern "C" void launch(int *object)
{
    kernel<<<1, 1>>>(object);
}
