/* A team's first collective on a GPU, which makes each PE's kernels known to the job: the last PE comes to it when
 * the words of the others have arrived. */
#include <unistd.h>

#include "gshmem.h"
#include "../check.h"

int main(void)
{
    gshmem_team_t team;
    long *words, one = 1, sum = 0;

    CHECK_OK(gshmem_init());
    const int me = gshmem_my_pe(), n = gshmem_n_pes();
    words = gshmem_calloc(2, sizeof *words);
    CHECK(words);
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &team));
    CHECK_OK(gshmem_long_put(words, &one, 1, me));
    if (me == n - 1)
        usleep(300000); /* likely enough: the test passes in any case */
    for (int i = 0; i < 3; i++) {
        CHECK_OK(gshmem_long_sum_reduce(team, words + 1, words, 1));
        CHECK_OK(gshmem_long_get(&sum, words + 1, 1, me));
        CHECK_EQ(sum, n);
    }
    CHECK_OK(gshmem_team_destroy(team));
    CHECK_OK(gshmem_free(words));
    return gshmem_finalize() != GSHMEM_OK;
}
