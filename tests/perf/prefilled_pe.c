/* A job of two PEs, of which PE 0 puts to PE 1. */
#include "prefilled.h"

#include "../check.h"

void target_open(void)
{
}

void target_begin(void)
{
    CHECK_EQ(gshmem_n_pes(), 2);
}

int target_of(const struct gshmem_device_channel *c)
{
    (void)c;
    return 1;
}

const char *target_memory(int pe, uintptr_t address)
{
    return gshmem_my_pe() == pe ? (const char *)address : NULL;
}

void target_end(void)
{
    CHECK_OK(gshmem_finalize());
}
