/* The transpose of a sparse matrix. Row r and column c are on PEs r % n and c % n. Each PE counts
 * the nonzeros of all columns, takes a place in its column for each of its own, and puts it there. */
#include <stdlib.h>
#include <string.h>

#include "irregular.h"

enum { ROWS = 400, NONZEROS = 8, ROOM = ROWS * NONZEROS * 4 }; /* of each PE; NONZEROS of a row */

static long count[ROWS], first[ROWS + 1], taken[ROWS]; /* of this PE's columns */
static long row[ROOM];                                 /* the rows of their nonzeros */

/* Where the kth nonzero of a row is; two may be in one place. */
static uint64_t column(uint64_t r, int k)
{
    return mixed(r * NONZEROS + (uint64_t)k) % (uint64_t)(ROWS * n);
}

static int compare(const void *a, const void *b)
{
    const long x = *(const long *)a, y = *(const long *)b;

    return (x > y) - (x < y);
}

int main(void)
{
    static long expected[ROWS][ROWS], found[ROWS];
    long wrong = 0;

    if (begin())
        return 1;
    barrier();
    for (uint64_t r = (uint64_t)me; r < (uint64_t)(ROWS * n); r += (uint64_t)n)
        for (int k = 0; k < NONZEROS; k++)
            gshmem_raise(gshmem_long_atomic_add(&count[place(column(r, k))], 1,
                                                home(column(r, k))));
    barrier();
    for (int c = 0; c < ROWS; c++)
        first[c + 1] = first[c] + count[c];
    barrier();
    for (uint64_t r = (uint64_t)me; r < (uint64_t)(ROWS * n); r += (uint64_t)n)
        for (int k = 0; k < NONZEROS; k++) {
            const uint64_t at = place(column(r, k));
            const int pe = home(column(r, k));
            const long mine = gshmem_long_g(&first[at], pe) +
                              gshmem_long_atomic_fetch_add(&taken[at], 1, pe);
            gshmem_raise(gshmem_long_p(&row[mine], (long)r, pe));
        }
    barrier();

    for (uint64_t r = 0; r < (uint64_t)(ROWS * n); r++) /* in the order of rows */
        for (int k = 0; k < NONZEROS; k++)
            if (home(column(r, k)) == me && found[place(column(r, k))] < ROWS)
                expected[place(column(r, k))][found[place(column(r, k))]++] = (long)r;
    for (int c = 0; c < ROWS; c++) {
        qsort(&row[first[c]], (size_t)count[c], sizeof row[0], compare);
        wrong += found[c] != count[c] ||
                 memcmp(expected[c], &row[first[c]], (size_t)count[c] * sizeof row[0]) != 0;
    }
    return end("transpose", first[ROWS], "nonzeros", wrong);
}
