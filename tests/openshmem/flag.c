/* Programs that poll on the last word of what a put writes, clear it, and poll for the next: the
 * last eight bytes of a put may not be left to memcpy, which is free to write them before the rest,
 * and twice.
 *
 * libc's does the latter for 16, 32 and 64 bytes, and a clear between the two is seen once in
 * 20,000 times. So a memcpy of this program's own, which the library calls as well, tells whether
 * it was given them. */
#include "check.h"

enum { LONGS = 1024 };

static long dest[LONGS], source[LONGS];
static const volatile char *flag; /* eight bytes, or all that are put */
static int told;

__attribute__((visibility("default"))) void *memcpy(void *restrict to, const void *restrict from,
                                                    size_t bytes)
{
    volatile char *t = to;
    const volatile char *f = from;

    told += flag && t < flag + 8 && t + bytes > flag;
    for (size_t i = 0; i < bytes; i++)
        t[i] = f[i];
    return to;
}

static void expect(size_t bytes)
{
    flag = (const volatile char *)dest + (bytes < 8 ? 0 : bytes - 8);
    told = 0;
    for (size_t i = 0; i < sizeof source; i++)
        ((volatile char *)source)[i] = (char)(bytes + 3 * i + 1);
}

static void check(size_t bytes)
{
    const volatile char *d = (const volatile char *)dest, *s = (const volatile char *)source;

    CHECK_EQ(told, 0);
    flag = NULL;
    for (size_t i = 0; i < bytes; i++)
        CHECK_EQ(d[i], s[i]);
}

int main(void)
{
    shmem_init();
    int me = shmem_my_pe();

    for (size_t n = 2; n < 128; n++) {
        expect(n * sizeof(long));
        shmem_long_put(dest, source, n, me);
        check(n * sizeof(long));
    }
    for (size_t n = 3; n < 256; n += 2) { /* the last int is in the last eight bytes */
        expect(n * sizeof(int));
        shmem_int_put_nbi((int *)dest, (int *)source, n, me);
        check(n * sizeof(int));
    }
    for (size_t n = 9; n <= sizeof dest; n++) {
        expect(n);
        shmem_putmem(dest, source, n, me);
        check(n);
    }
    for (volatile size_t n = 1; n <= 4; n *= 2) { /* or compilers know how many, and call nothing */
        expect(n * sizeof(short));
        shmem_short_put((short *)dest, (short *)source, n, me);
        check(n * sizeof(short));
    }
    shmem_finalize();
    return 0;
}
