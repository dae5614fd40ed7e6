/* What ThreadSanitizer must be told, where the program was built with it.
 *
 * It sees the threads of one process. What a thread does to symmetric memory for another PE is ordered
 * by what that PE does: by messages, and by memory that it shares with other processes. None of that
 * can be seen here, so such accesses are left out of its account, as those of a network card would
 * be; atomics among them still order what they order. */
#ifndef GSHMEM_BASE_SANITIZER_H
#define GSHMEM_BASE_SANITIZER_H

/* Weak: the program brings them, or they are not there. */
__attribute__((weak, visibility("default"))) void __tsan_ignore_thread_begin(void);
__attribute__((weak, visibility("default"))) void __tsan_ignore_thread_end(void);

/* Around what this thread does for another PE. */
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
