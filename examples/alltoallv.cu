/* How do I send every PE a different amount from a kernel, when nobody knows how much it will get?
 * Each token goes to the expert that its number asks for, as in a mixture of experts. A block packs
 * the tokens for one expert, reserves room in its inbox with one fetch-add, puts them there, and
 * signals; the expert waits for everybody's signal and works on what has come. */
#include <gshmem.h>
#include <stdio.h>

enum { TOKENS = 500, WIDTH = 12, THREADS = 64 }; /* tokens of each PE */

struct token {
    int from, number;
    float value[WIDTH];
};

struct inbox {
    long taken;       /* tokens for which senders have reserved room */
    uint64_t arrived; /* PEs that have sent all of theirs */
    struct token token[];
};

static __host__ __device__ int expert_of(int from, int number, int n)
{
    return (int)(((from * 2654435761u + number * 40503u) >> 7) % n);
}

/* Block i sends what PE i shall have: there is one for each. */
__global__ void dispatch(struct inbox *inbox, struct token *packed)
{
    int me = gshmem_my_pe(), n = gshmem_n_pes(), pe = (me + blockIdx.x) % n;
    __shared__ int count;
    __shared__ long at;

    packed += (size_t)pe * TOKENS;
    if (threadIdx.x == 0)
        count = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < TOKENS; i += THREADS) {
        if (expert_of(me, i, n) == pe) {
            struct token *token = &packed[atomicAdd(&count, 1)];
            token->from = me;
            token->number = i;
            for (int j = 0; j < WIDTH; j++)
                token->value[j] = (float)(i + j);
        }
    }
    __syncthreads();
    if (threadIdx.x == 0)
        at = gshmem_long_atomic_fetch_add(&inbox->taken, count, pe);
    __syncthreads();
    gshmem_putmem_signal_block(&inbox->token[at], packed, count * sizeof *packed, &inbox->arrived,
                               1, GSHMEM_SIGNAL_ADD, pe);
}

/* sum: the tokens that came, their numbers, and what was wrong with them. */
__global__ void expert(struct inbox *inbox, unsigned long long sum[3])
{
    int me = gshmem_my_pe(), n = gshmem_n_pes();

    if (threadIdx.x == 0)
        gshmem_signal_wait_until(&inbox->arrived, GSHMEM_CMP_GE, n);
    __syncthreads();
    for (long i = threadIdx.x; i < inbox->taken; i += THREADS) {
        const struct token *token = &inbox->token[i];
        bool wrong = expert_of(token->from, token->number, n) != me;
        for (int j = 0; j < WIDTH; j++)
            wrong |= token->value[j] != (float)(token->number + j);
        atomicAdd(&sum[0], 1);
        atomicAdd(&sum[1], token->from * TOKENS + token->number);
        atomicAdd(&sum[2], wrong);
    }
}

int main()
{
    static int wrong, all_wrong;
    unsigned long long sum[3] = {}, expected[2] = {};

    if (gshmem_init())
        return 1;
    int me = gshmem_my_pe(), n = gshmem_n_pes();
    struct inbox *inbox =
        (struct inbox *)gshmem_calloc(1, sizeof *inbox + (size_t)n * TOKENS * sizeof(struct token));
    struct token *packed = (struct token *)gshmem_malloc((size_t)n * TOKENS * sizeof *packed);
    unsigned long long *found = (unsigned long long *)gshmem_calloc(3, sizeof *found);
    if (!inbox || !packed || !found)
        return 1;

    dispatch<<<n, THREADS>>>(inbox, packed);
    expert<<<1, THREADS>>>(inbox, found);
    wrong = cudaMemcpy(sum, found, sizeof sum, cudaMemcpyDefault) != cudaSuccess || sum[2] != 0;
    for (int from = 0; from < n; from++) {
        for (int i = 0; i < TOKENS; i++) {
            expected[0] += expert_of(from, i, n) == me;
            expected[1] += expert_of(from, i, n) == me ? from * TOKENS + i : 0;
        }
    }
    wrong += sum[0] != expected[0] || sum[1] != expected[1];
    gshmem_int_sum_reduce(GSHMEM_TEAM_WORLD, &all_wrong, &wrong, 1);
    if (me == 0)
        printf("alltoallv: %d tokens of %d PEs went to their experts, %llu of them to PE 0: %s\n",
               n * TOKENS, n, sum[0], all_wrong ? "wrong" : "right");
    gshmem_raise(gshmem_free(found));
    gshmem_raise(gshmem_free(packed));
    gshmem_raise(gshmem_free(inbox));
    return gshmem_finalize() || all_wrong;
}
