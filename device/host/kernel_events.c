/* What kernels do, for libgshmem: libgshmem_host.so, which programs in CUDA source are linked with
 * and a simulated driver may load, runs them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

#include "device/kernel_events.h"

static struct { /* stays here: the library is loaded once in the process */
    void (*tell_events)(const struct kernel_events *to);
    _Atomic(uint64_t (*)(void)) place;
} device;

void device_listen(const struct kernel_events *to)
{
    /* by its handle, as in stream_call.c; once found it stays loaded */
    void *library =
        device.tell_events ? NULL : dlopen("libgshmem_host.so.0", RTLD_LAZY | RTLD_NOLOAD);

    if (library) {
        uint64_t (*place)(void);
        *(void **)&place = dlsym(library, "gshmem_host_place");
        *(void **)&device.tell_events = dlsym(library, "gshmem_host_tell_events");
        atomic_store_explicit(&device.place, place, memory_order_relaxed);
        if (!device.tell_events)
            dlclose(library);
    }
    if (device.tell_events)
        device.tell_events(to);
}

uint64_t device_kernel_place(void)
{
    uint64_t (*place)(void) = atomic_load_explicit(&device.place, memory_order_relaxed);

    return place ? place() : 0;
}
