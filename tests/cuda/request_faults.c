/* A call of the driver fails (SIM_FAIL) while the library puts a request on a stream, or has one
 * made for the CPU: the call that needed it says so, once, and what is asked for again is done. */
#include "gshmem.h"
#include "gpu.h"

static int failures;

#define UNTIL_DONE(call)                                                                           \
    do {                                                                                           \
        while ((call) != GSHMEM_OK)                                                                \
            CHECK(++failures < 3);                                                                 \
    } while (0)

int main(void)
{
    setenv("GSHMEM_ON_ERROR", "return", 1);
    CHECK_OK(gshmem_init());
    int me = gshmem_my_pe(), n = gshmem_n_pes(), right = (me + 1) % n;
    long *words = gshmem_calloc(8, sizeof *words);

    open_gpu();
    gshmem_stream_t s = new_stream();
    UNTIL_DONE(gshmem_long_p_on_stream(words, 5, right, s));
    UNTIL_DONE(gshmem_putmem_on_stream(words + 1, words, 8, me, s));
    UNTIL_DONE(gshmem_long_atomic_add(words + 2, 1, right));
    UNTIL_DONE(gshmem_long_sum_reduce_on_stream(GSHMEM_TEAM_WORLD, words + 3, words + 3, 1, s));
    UNTIL_DONE(gshmem_long_sum_reduce(GSHMEM_TEAM_WORLD, words + 2, words + 2, 1));
    finish(s);
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(gshmem_long_g(words, me), 5);
    CHECK_EQ(gshmem_long_g(words + 2, me), n);
    CHECK_EQ(failures, me == 0);
    end_stream(s);
    close_gpu();
    return gshmem_finalize();
}
