/* Copies of more than a few cache lines, between objects that are mapped here.
 *
 * On AMD's processors with 512-bit moves these are faster than libc's memcpy below 2 KiB. From
 * there on a string move (rep movsb) with dest at the beginning of a line is: it takes time to
 * begin, but does not wait for the old contents of dest, and a put goes where another PE reads. On
 * Zen 3, moves of 256 bits that ask for dest's lines ahead are faster from 8 KiB to 1 MiB. Other
 * processors use their libc's memcpy, except for the last eight bytes (gshmem_copy says why).
 *
 * Stores that bypass the caches are used where all dests together do not fit into the last cache;
 * on Intel's processors from a fifth of it on. On Zen 3 also for single copies from a third of it
 * on. docs/decisions/0008 and 0042 have the figures. */
#include <stdbool.h>
#include <string.h>

#include "gshmem.h"
#include "gshmem/rma.h"
#include "runtime/memory/copy.h"

#if defined __x86_64__ && defined __GNUC__
#include <cpuid.h>
#include <immintrin.h>

enum {
    LINE = 64,
    STRING_LEAST = 2048,
    OWNED_LEAST = 8192,
    OWNED_LIMIT = 1 << 20,
    OWNED_AHEAD = 512,
};

typedef void copy_fn(char *to, const char *from, size_t bytes);

static void copy_by_libc(char *to, const char *from, size_t bytes)
{
    gshmem_copy_end_last(to, from, bytes);
}

/* bytes: at least one line, in both functions. The last line is moved by itself, unaligned. */
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
    bytes -= head + sizeof(uint64_t);
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
    memcpy(to, from, sizeof(uint64_t)); /* the stores of a string move have no order */
}

__attribute__((target("avx512f"))) static void stream_512(char *to, const char *from, size_t bytes)
{
    __m512i last = _mm512_loadu_si512(from + bytes - LINE);
    size_t at = -(uintptr_t)to % LINE;

    _mm512_storeu_si512(to, _mm512_loadu_si512(from));
    for (; at + 4 * LINE < bytes; at += 4 * LINE) {
        __m512i a = _mm512_loadu_si512(from + at);
        __m512i b = _mm512_loadu_si512(from + at + LINE);
        __m512i c = _mm512_loadu_si512(from + at + 2 * LINE);
        __m512i d = _mm512_loadu_si512(from + at + 3 * LINE);
        _mm512_stream_si512((void *)(to + at), a);
        _mm512_stream_si512((void *)(to + at + LINE), b);
        _mm512_stream_si512((void *)(to + at + 2 * LINE), c);
        _mm512_stream_si512((void *)(to + at + 3 * LINE), d);
    }
    for (; at + LINE < bytes; at += LINE)
        _mm512_storeu_si512(to + at, _mm512_loadu_si512(from + at));
    _mm512_storeu_si512(to + bytes - LINE, last);
    _mm_sfence(); /* non-temporal stores are not ordered by a release */
}

/* bytes: at least four lines. Lines of dest that another core has are asked for ahead, or, past the
 * caches, not read at all. Two lines at the end are written last, since programs poll on the last
 * word; stores past the caches would otherwise follow them. */
__attribute__((target("avx2,prfchw"), always_inline)) static inline void
move_256(char *to, const char *from, size_t bytes, bool past)
{
    enum { HALF = LINE / 2, END = 2 * LINE };
    size_t at = -(uintptr_t)to % LINE;

    memcpy(to, from, LINE);
    for (; at + END < bytes; at += END) {
        __m256i a = _mm256_loadu_si256((const void *)(from + at));
        __m256i b = _mm256_loadu_si256((const void *)(from + at + HALF));
        __m256i c = _mm256_loadu_si256((const void *)(from + at + LINE));
        __m256i d = _mm256_loadu_si256((const void *)(from + at + LINE + HALF));
        if (past) {
            _mm256_stream_si256((void *)(to + at), a);
            _mm256_stream_si256((void *)(to + at + HALF), b);
            _mm256_stream_si256((void *)(to + at + LINE), c);
            _mm256_stream_si256((void *)(to + at + LINE + HALF), d);
            continue;
        }
        if (at + OWNED_AHEAD + LINE < bytes) {
            __builtin_prefetch(to + at + OWNED_AHEAD, 1);
            __builtin_prefetch(to + at + OWNED_AHEAD + LINE, 1);
        }
        _mm256_store_si256((void *)(to + at), a);
        _mm256_store_si256((void *)(to + at + HALF), b);
        _mm256_store_si256((void *)(to + at + LINE), c);
        _mm256_store_si256((void *)(to + at + LINE + HALF), d);
    }
    if (past)
        _mm_sfence();
    __asm__ volatile("" : : : "memory");
    gshmem_copy_end_last(to + bytes - END, from + bytes - END, END);
}

__attribute__((target("avx2,prfchw"))) static void copy_owned(char *to, const char *from,
                                                              size_t bytes)
{
    move_256(to, from, bytes, false);
}

__attribute__((target("avx2,prfchw"))) static void stream_256(char *to, const char *from,
                                                              size_t bytes)
{
    move_256(to, from, bytes, true);
}

static copy_fn *copy_small = copy_by_libc, *copy_large = copy_by_libc, *copy_past = copy_by_libc;
static size_t last_cache = SIZE_MAX;

/* Sanitizers intercept memcpy, and see no more of another copy than of any code that was not built
 * with them. */
__attribute__((weak)) void __asan_init(void);
__attribute__((weak)) void __tsan_init(void);
__attribute__((weak)) void __msan_init(void);

/* Whether rep movsb begins quickly (FSRM). */
static bool has_quick_strings(void)
{
    unsigned int a, b, c, d;

    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && d & 1u << 4;
}

/* The size of the last cache that some cores share with this one; 0: not known. sysconf returns the
 * sum over all of the processor's cores, whose caches are separate. */
static size_t find_last_cache(unsigned int caches)
{
    enum { THIRD = 3 };
    unsigned int a, b, c, d;

    if (!__get_cpuid_count(caches, THIRD, &a, &b, &c, &d) || (a >> 5 & 7) != THIRD)
        return 0;
    return ((size_t)(b >> 22) + 1) * ((b >> 12 & 0x3ff) + 1) * ((b & 0xfff) + 1) * ((size_t)c + 1);
}

static void go_past(copy_fn *stream, size_t cache)
{
    if (cache) {
        copy_past = stream;
        last_cache = cache;
    }
}

/* Intel's last cache is that of a whole processor; a job has a part of it, and the sources are in
 * it, too. */
static void choose_for_intel(void)
{
    enum { CACHES = 4, PART = 5 };

    go_past(stream_512, find_last_cache(CACHES) / PART);
}

enum { AMD_CACHES = (int)0x8000001d };

static void choose_for_amd(void)
{
    copy_small = copy_512;
    copy_large = copy_by_string;
    go_past(stream_512, find_last_cache(AMD_CACHES));
}

static void copy_on_zen3(char *to, const char *from, size_t bytes)
{
    if (bytes >= last_cache / 3)
        copy_past(to, from, bytes);
    else if (bytes >= OWNED_LEAST && bytes < OWNED_LIMIT)
        copy_owned(to, from, bytes);
    else
        copy_by_libc(to, from, bytes);
}

static void choose_for_zen3(void)
{
    copy_large = copy_on_zen3;
    go_past(stream_256, find_last_cache(AMD_CACHES));
}

/* Cores with vbmi2 are not slowed down by 512-bit moves. */
static __attribute__((constructor)) void choose_copies(void)
{
    __builtin_cpu_init();
    const bool amd = __builtin_cpu_is("amd"), wide = __builtin_cpu_supports("avx512vbmi2");

    if (!has_quick_strings() || __asan_init || __tsan_init || __msan_init)
        return;
    if (wide && amd)
        choose_for_amd();
    else if (wide && __builtin_cpu_is("intel"))
        choose_for_intel();
    else if (amd && __builtin_cpu_supports("avx2"))
        choose_for_zen3();
}

void gshmem_path_copy(void *to, const void *from, size_t bytes)
{
    (bytes < STRING_LEAST ? copy_small : copy_large)(to, from, bytes);
}

void copy_past_caches(void *to, const void *from, size_t bytes)
{
    if (bytes < STRING_LEAST)
        gshmem_copy(to, from, bytes);
    else
        copy_past(to, from, bytes);
}

size_t copy_cache_bytes(void)
{
    return last_cache;
}

#else

void gshmem_path_copy(void *to, const void *from, size_t bytes)
{
    gshmem_copy_end_last(to, from, bytes);
}

void copy_past_caches(void *to, const void *from, size_t bytes)
{
    gshmem_copy(to, from, bytes);
}

size_t copy_cache_bytes(void)
{
    return SIZE_MAX;
}

#endif
