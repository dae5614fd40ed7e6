/* Copies of more than a few lines, between objects that are mapped here.
 *
 * libc's memcpy is good below a kibibyte and wherever nothing better is known. On AMD's processors
 * of today two things beat it, measured on Zen 5, GB/s of one core, and the same with both cores at
 * it:
 *
 *                                    4 KiB  16 KiB  64 KiB  256 KiB  1 MiB  8 MiB  16 MiB  64 MiB
 *     libc (glibc 2.36)                142     165     127      132     57     53      30      21
 *     rep movsb, dest aligned          142     165     128      132     69     64      43      27
 *     512-bit loads and stores         265     267      96      125     59     61      33      21
 *     the same past the caches          23      89      36       40     41     42      39      27
 *
 * so: wide moves while both objects fit into the first cache, and rep movsb above, which libc gives
 * up at the size of the second cache and which is as good as any where memory is the limit. With
 * dest at the beginning of a line it is faster by half up to 128 KiB. Other processors take the way
 * of their libc, which has been tuned for them. */
#include <string.h>
#include <unistd.h>

#include "gshmem/rma.h"

#if defined __x86_64__ && defined __GNUC__
#include <immintrin.h>

enum { LINE = 64 };

typedef void copy_fn(char *to, const char *from, size_t bytes);

static void copy_by_libc(char *to, const char *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

/* bytes: at least a line, in both of these. The last line is moved by itself, wherever it begins. */
__attribute__((target("avx512f"))) static void copy_512(char *to, const char *from, size_t bytes)
{
    __m512i last = _mm512_loadu_si512(from + bytes - LINE);
    size_t at = 0;

    for (; at + 4 * LINE < bytes; at += 4 * LINE) {
        __m512i a = _mm512_loadu_si512(from + at);
        __m512i b = _mm512_loadu_si512(from + at + LINE);
        __m512i c = _mm512_loadu_si512(from + at + 2 * LINE);
        __m512i d = _mm512_loadu_si512(from + at + 3 * LINE);
        _mm512_storeu_si512(to + at, a);
        _mm512_storeu_si512(to + at + LINE, b);
        _mm512_storeu_si512(to + at + 2 * LINE, c);
        _mm512_storeu_si512(to + at + 3 * LINE, d);
    }
    for (; at + LINE < bytes; at += LINE)
        _mm512_storeu_si512(to + at, _mm512_loadu_si512(from + at));
    _mm512_storeu_si512(to + bytes - LINE, last);
}

static void copy_by_string(char *to, const char *from, size_t bytes)
{
    size_t head = -(uintptr_t)to % LINE;

    memcpy(to, from, LINE);
    to += head;
    from += head;
    bytes -= head;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

static copy_fn *copy_near = copy_by_libc, *copy_far = copy_by_libc;
static size_t near_bytes;

/* They watch memcpy, and see no more of another copy than of any code that they did not build. */
__attribute__((weak)) void __asan_init(void);
__attribute__((weak)) void __tsan_init(void);
__attribute__((weak)) void __msan_init(void);

static __attribute__((constructor)) void choose_copies(void)
{
    long first_cache = sysconf(_SC_LEVEL1_DCACHE_SIZE);

    __builtin_cpu_init();
    /* vbmi2 came with wide moves that do not slow the core down. */
    if (!__builtin_cpu_is("amd") || !__builtin_cpu_supports("avx512vbmi2") || first_cache <= 0 ||
        __asan_init || __tsan_init || __msan_init)
        return;
    copy_near = copy_512;
    copy_far = copy_by_string;
    near_bytes = (size_t)first_cache / 2;
}

void gshmem_path_copy(void *to, const void *from, size_t bytes)
{
    (bytes <= near_bytes ? copy_near : copy_far)(to, from, bytes);
}

#else

void gshmem_path_copy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

#endif
