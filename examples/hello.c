/* How do I start? Every PE runs main; gshmem_init tells them apart. */
#include <gshmem.h>
#include <stdio.h>

int main(void)
{
    if (gshmem_init())
        return 1;
    printf("hello from PE %d of %d\n", gshmem_my_pe(), gshmem_n_pes());
    return gshmem_finalize() != GSHMEM_OK;
}
