/* Operations of kernels, counted by the PE whose kernel it is: through the proxy to PEs of this node,
 * where GSHMEM_STATS is set, and over the network. */
#include <gshmem.h>

#include "check.h"

enum { N = 300, LARGE = 5000 };

__global__ void work(char *memory, uint64_t *counter, uint64_t *flag, char *own, int right)
{
    for (int i = 0; i < N; i++) {
        gshmem_uint64_p((uint64_t *)memory, i, right);
        if (threadIdx.x)
            continue;
        gshmem_putmem(memory, own, LARGE, right);
        gshmem_getmem(own, memory, 64, right);
        gshmem_uint64_atomic_add(counter, 1, right);
        gshmem_uint64_atomic_fetch_add(counter, 1, right);
        gshmem_putmem_signal(memory, own, 8, flag, 1, GSHMEM_SIGNAL_ADD, right);
    }
    gshmem_quiet();
}

static uint64_t get(const char *kind, const char *path, const char *what)
{
    char name[80];
    uint64_t value;

    snprintf(name, sizeof name, "%s.%s.%s", kind, path, what);
    CHECK_OK(gshmem_stats_get(name, &value));
    return value;
}

int main()
{
    CHECK_OK(gshmem_init());
    const int right = (gshmem_my_pe() + 1) % gshmem_n_pes();
    char *memory = (char *)gshmem_calloc(1, LARGE), *own = (char *)gshmem_calloc(1, LARGE);
    uint64_t *words = (uint64_t *)gshmem_calloc(2, sizeof *words);
    CHECK(memory && own && words);
    const char *path = gshmem_ptr(memory, right) ? "proxy" : "proxy_network";

    CHECK_OK(gshmem_stats_reset());
    work<<<1, 4>>>(memory, words, words + 1, own, right);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK_EQ(get("put", path, "operations"), 4 * N + 2 * N);
    CHECK_EQ(get("put", path, "bytes"), 4 * N * 8 + N * (LARGE + 8));
    CHECK_EQ(get("put", path, "to_32K"), N);
    CHECK_EQ(get("get", path, "operations"), N);
    CHECK_EQ(get("get", path, "to_64"), N);
    CHECK_EQ(get("atomic", path, "operations") + get("fetch", path, "operations"), 2 * N);
    CHECK(get("fetch", path, "operations") >= N);
    CHECK_EQ(get("signal", path, "operations"), N);
    gshmem_stats_row_t row;
    CHECK_OK(gshmem_stats_peer(right, &row));
    CHECK(row.operations >= 10 * N);
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(words[0], 2 * N);
    return gshmem_finalize();
}
