/* ThreadSanitizer and AddressSanitizer, where the program was built with one of them.
 *
 * This library itself is never instrumented: a compiler's entry and exit hooks around a switch of
 * stacks would ruin ThreadSanitizer's record of calls. The program brings the sanitizer, so its
 * functions are weak here, and what the library orders is told by explicit acquire and release. */
#ifndef GSHMEM_DEVICE_HOST_SANITIZER_H
#define GSHMEM_DEVICE_HOST_SANITIZER_H

#include <stdbool.h>
#include <stddef.h>

#define MAY_BE_ABSENT __attribute__((weak, visibility("default")))

MAY_BE_ABSENT void *__tsan_get_current_fiber(void);
MAY_BE_ABSENT void *__tsan_create_fiber(unsigned flags);
MAY_BE_ABSENT void __tsan_destroy_fiber(void *fiber);
MAY_BE_ABSENT void __tsan_switch_to_fiber(void *fiber, unsigned flags);
MAY_BE_ABSENT void __tsan_acquire(void *address);
MAY_BE_ABSENT void __tsan_release(void *address);
MAY_BE_ABSENT void __sanitizer_start_switch_fiber(void **save, const void *bottom, size_t size);
MAY_BE_ABSENT void __sanitizer_finish_switch_fiber(void *save, const void **bottom, size_t *size);
MAY_BE_ABSENT void __asan_unpoison_memory_region(const volatile void *address, size_t size);

static inline bool under_tsan(void)
{
    return __tsan_switch_to_fiber != NULL;
}

static inline bool under_asan(void)
{
    return __asan_unpoison_memory_region != NULL;
}

/* For ThreadSanitizer, what follows is done by another fiber (that of a stack); on the same stack.
 */
static inline void *stand_in_for(void *fiber)
{
    void *own = NULL;

    if (under_tsan()) {
        own = __tsan_get_current_fiber();
        __tsan_switch_to_fiber(fiber, 1);
    }
    return own;
}

/* What was done before happens before what follows an acquire of the same address. */
static inline void order_release(void *address)
{
    if (under_tsan())
        __tsan_release(address);
}

static inline void order_acquire(void *address)
{
    if (under_tsan())
        __tsan_acquire(address);
}

#endif
