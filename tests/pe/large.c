/* As many PEs as a small machine starts, or as many hosts: they begin, exchange a word each with each, and leave.
 * Each then has a stream to each on another host, and all of them come to the same doors at the same time. */
#include "pe.h"

int main(void)
{
    begin();
    long *source = take((size_t)n * sizeof *source), *dest = take((size_t)n * sizeof *dest);
    for (int pe = 0; pe < n; pe++) {
        source[pe] = me * 1000L + pe;
        dest[pe] = -1;
    }
    CHECK_OK(gshmem_long_alltoall(GSHMEM_TEAM_WORLD, dest, source, 1));
    for (int pe = 0; pe < n; pe++)
        CHECK_EQ(dest[pe], pe * 1000L + me);
    end();
    return 0;
}
