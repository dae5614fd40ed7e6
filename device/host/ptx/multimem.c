/* multimem: addresses that stand for memory of several devices. The host device gives none to
 * kernels (a team's multicast_bytes is 0), so that code with these instructions is there and never
 * runs. */
#include "gshmem/host_device/ptx/module.h"

u64 gshmem_host_ptx_multimem_load(const char *at, int operation, int element, const char *file,
                                  int line)
{
    (void)at, (void)operation, (void)element;
    gshmem_host_trap("multimem.ld_reduce, for which the host device has no memory", file, line);
}

void gshmem_host_ptx_multimem_store(char *at, u64 value, int operation, int element, int order,
                                    const char *file, int line)
{
    (void)at, (void)value, (void)operation, (void)element, (void)order;
    gshmem_host_trap("multimem.st or multimem.red, for which the host device has no memory", file,
                     line);
}
