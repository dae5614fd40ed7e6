#include <gshmem.h>
#include <stdio.h>

int main(void)
{
    if (gshmem_init())
        return 1;
    printf("PE %d of %d\n", gshmem_my_pe(), gshmem_n_pes());
    return gshmem_finalize() ? 1 : 0;
}
