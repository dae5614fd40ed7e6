/* Volatile accesses are not followed. A file of its own: for kernels libgshmem_host has these. */
#define VOLATILE(kind, bytes)                                                                      \
    void __tsan_volatile_##kind##bytes(void *at);                                                  \
    void __tsan_volatile_##kind##bytes(void *at)                                                   \
    {                                                                                              \
        (void)at;                                                                                  \
    }
VOLATILE(read, 1)
VOLATILE(read, 2)
VOLATILE(read, 4)
VOLATILE(read, 8)
VOLATILE(read, 16)
VOLATILE(write, 1)
VOLATILE(write, 2)
VOLATILE(write, 4)
VOLATILE(write, 8)
VOLATILE(write, 16)
