/* How do I send every PE a different amount, when nobody knows how much it will get? Senders
 * reserve room in the receiver's inbox with one fetch-add, then put into what is theirs. */
#include <gshmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 50 }; /* items from one PE to another */

struct item {
    int from, number;
};

static long taken; /* items of my inbox that senders have reserved */

static int count(int from, int to)
{
    return (from * 31 + to * 17) % (MOST + 1);
}

int main(void)
{
    if (gshmem_init())
        return 1;
    int me = gshmem_my_pe(), n = gshmem_n_pes();
    struct item *inbox = gshmem_malloc(sizeof *inbox * (size_t)n * MOST), out[MOST];
    int *seen = calloc((size_t)n, sizeof *seen);
    if (!inbox || !seen)
        return 1;

    for (int i = 0; i < n; i++) {
        int pe = (me + i) % n, items = count(me, pe); /* not everyone to the same PE at first */
        for (int k = 0; k < items; k++)
            out[k] = (struct item){me, k};
        long at = gshmem_long_atomic_fetch_add(&taken, items, pe);
        gshmem_raise(gshmem_putmem(&inbox[at], out, sizeof *out * (size_t)items, pe));
    }
    gshmem_raise(gshmem_barrier_all());

    /* Senders' items may come in any order, but those of one sender are together. */
    static int wrong, all_wrong;
    static long total;
    for (long i = 0; i < taken; i++)
        wrong += inbox[i].number != seen[inbox[i].from]++;
    for (int pe = 0; pe < n; pe++)
        wrong += seen[pe] != count(pe, me);
    gshmem_raise(gshmem_int_sum_reduce(GSHMEM_TEAM_WORLD, &all_wrong, &wrong, 1));
    gshmem_raise(gshmem_long_sum_reduce(GSHMEM_TEAM_WORLD, &total, &taken, 1));
    if (me == 0)
        printf("alltoallv: %d PEs exchanged %ld items: %s\n", n, total,
               all_wrong ? "wrong" : "right");
    free(seen);
    gshmem_raise(gshmem_free(inbox));
    return gshmem_finalize() || all_wrong;
}
