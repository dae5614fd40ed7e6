/* One of two programs, of which one has more variables than the other (BYTES): PEs of the larger one write to each other's,
 * also where the lowest PE of a node runs the smaller one.
 *
 *     larger */
#include <stdbool.h>

#include "gshmem.h"

#include "check.h"

int from[4];
char room[BYTES];
int is_large = BYTES > 8192;

int main(void)
{
    CHECK_OK(gshmem_init());
    const int me = gshmem_my_pe(), n = gshmem_n_pes();
    int *large = gshmem_calloc(1, sizeof *large);

    CHECK(large && n <= 4);
    *large = is_large;
    room[sizeof room - 1] = 0;
    CHECK_OK(gshmem_barrier_all());
    for (int pe = 0; pe < n; pe++) {
        if (gshmem_int_g(large, pe) != is_large)
            continue;
        CHECK_OK(gshmem_int_p(&from[me], me + 1, pe));
        CHECK_OK(gshmem_putmem(room + sizeof room - 1 - me, &(char){(char)(me + 1)}, 1, pe));
    }
    CHECK_OK(gshmem_barrier_all());
    for (int pe = 0; pe < n; pe++) {
        const bool came = gshmem_int_g(large, pe) == is_large;

        CHECK_EQ(from[pe], came ? pe + 1 : 0);
        CHECK_EQ(room[sizeof room - 1 - pe], came ? pe + 1 : 0);
    }
    CHECK_OK(gshmem_finalize());
    return 0;
}
