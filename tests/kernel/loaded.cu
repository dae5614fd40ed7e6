/* The library of kernels that loads.c loads while another thread makes teams and contexts. */
#include "kernel.h"

__global__ void look(gshmem_team_t team, gshmem_ctx_t ctx, int64_t *word, int64_t *seen)
{
    seen[0] = gshmem_team_n_pes(team);
    seen[1] = gshmem_team_my_pe(team);
    seen[2] = gshmem_team_sync(team);
    gshmem_ctx_int64_atomic_add(ctx, word, 1, 0);
    seen[3] = gshmem_ctx_quiet(ctx);
}

/* That kernels find the team, which this PE alone is in, and the context, whose quiet passes. */
extern "C" void loaded_check(gshmem_team_t team, gshmem_ctx_t ctx, int64_t *word)
{
    int64_t *seen = shared_array<int64_t>(4);
    const int64_t before = *word;

    seen[0] = seen[1] = seen[2] = seen[3] = -1;
    look<<<1, 1>>>(team, ctx, word, seen);
    CHECK_LAUNCH();
    CHECK_EQ(seen[0], 1);
    CHECK_EQ(seen[1], 0);
    CHECK_EQ(seen[2], GSHMEM_OK);
    CHECK_EQ(seen[3], GSHMEM_OK);
    CHECK_EQ(*word, before + 1);
    CHECK_CUDA(cudaFree(seen));
}
