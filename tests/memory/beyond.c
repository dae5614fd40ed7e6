/* An object that is larger than the machine: it is given, since much of it may never be used, and a
 * line says so. Nothing of it is touched. */
#include "gshmem.h"

#include "check.h"

int main(void)
{
    const size_t machine = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);

    CHECK_OK(gshmem_init());
    CHECK(gshmem_malloc(1 << 20));
    void *large = gshmem_malloc(machine);
    CHECK(large);
    CHECK_OK(gshmem_free(large));
    CHECK_OK(gshmem_finalize());
    return 0;
}
