/* What ThreadSanitizer has to be told, where the program was built with it.
 *
 * It sees the threads of one process. The accesses of a thread to symmetric memory for another PE
 * are ordered by what that PE does: by messages, and by memory that it shares with other processes.
 * It sees none of that, so such accesses are hidden from it, like those of a NIC; atomics among
 * them still order what they order. */
#ifndef GSHMEM_BASE_SANITIZER_H
#define GSHMEM_BASE_SANITIZER_H

/* Weak: the sanitizer's runtime in the program defines them, or they do not exist. */
__attribute__((weak, visibility("default"))) void __tsan_ignore_thread_begin(void);
__attribute__((weak, visibility("default"))) void __tsan_ignore_thread_end(void);

/* Before and after accesses of this thread for another PE. */
static inline void for_another_pe_begin(void)
{
    if (__tsan_ignore_thread_begin)
        __tsan_ignore_thread_begin();
}

static inline void for_another_pe_end(void)
{
    if (__tsan_ignore_thread_end)
        __tsan_ignore_thread_end();
}

#endif
