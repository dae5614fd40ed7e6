/* Operations captured in a graph from a stream of a (simulated) GPU: nothing of them is done before
 * a launch of the graph, and all of them at each. The library's kernel is first needed, and made
 * ready, while the stream is captured. */
#include <dlfcn.h>

#include "gshmem.h"
#include "gpu.h"

typedef struct graph *graph_t;

static struct {
    cuda_result (*begin)(cuda_stream stream, int mode);
    cuda_result (*end)(cuda_stream stream, graph_t *graph);
    cuda_result (*instantiate)(graph_t *exec, graph_t graph, unsigned long long flags);
    cuda_result (*launch)(graph_t exec, cuda_stream stream);
    cuda_result (*destroy_exec)(graph_t exec);
    cuda_result (*destroy)(graph_t graph);
} graphs;

static void find(void *slot, const char *symbol)
{
    void *found = dlsym(driver.library, symbol);

    CHECK(found);
    memcpy(slot, &found, sizeof found);
}

static void find_graphs(void)
{
    find(&graphs.begin, "cuStreamBeginCapture_v2");
    find(&graphs.end, "cuStreamEndCapture");
    find(&graphs.instantiate, "cuGraphInstantiateWithFlags");
    find(&graphs.launch, "cuGraphLaunch");
    find(&graphs.destroy_exec, "cuGraphExecDestroy");
    find(&graphs.destroy, "cuGraphDestroy");
}

enum { TIMES = 3 };

int main(void)
{
    CHECK_OK(gshmem_init());
    int me = gshmem_my_pe(), n = gshmem_n_pes(), right = (me + 1) % n;
    long *words = gshmem_calloc(8, sizeof *words), seen = 0;
    uint64_t *flag = (uint64_t *)(words + 4);
    graph_t graph, exec;

    open_gpu();
    find_graphs();
    gshmem_stream_t s = new_stream();
    CHECK_OK(gshmem_long_p(words, 1, me));

    CHECK_EQ(graphs.begin(s, 0), CUDA_OK);
    CHECK_OK(
        gshmem_putmem_signal_on_stream(words + 1, words, 8, flag, 1, GSHMEM_SIGNAL_ADD, right, s));
    CHECK_OK(gshmem_signal_wait_until_on_stream(flag, GSHMEM_CMP_GE, 1, s));
    CHECK_OK(gshmem_long_sum_reduce_on_stream(GSHMEM_TEAM_WORLD, words, words, 1, s));
    CHECK_OK(gshmem_getmem_on_stream(&seen, words, 8, me, s));
    CHECK_OK(gshmem_barrier_all_on_stream(s));
    CHECK_EQ(gshmem_long_atomic_fetch_add(words + 7, 1, right), 0); /* the CPU's go on meanwhile */
    CHECK_EQ(graphs.end(s, &graph), CUDA_OK);
    CHECK_EQ(graphs.instantiate(&exec, graph, 0), CUDA_OK);
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(gshmem_long_g(words + 1, me), 0);
    CHECK_OK(gshmem_barrier_all());

    long expected = 1;
    for (int i = 0; i < TIMES; i++) {
        CHECK_EQ(graphs.launch(exec, s), CUDA_OK);
        finish(s);
        expected *= n;
        CHECK_EQ(seen, expected);
        CHECK_EQ(gshmem_long_g(words, me), expected);
        CHECK_EQ(gshmem_uint64_g(flag, me), i + 1);
        CHECK_OK(gshmem_barrier_all());
    }
    CHECK_EQ(gshmem_long_g(words + 1, me), expected / n);
    CHECK_EQ(graphs.destroy_exec(exec), CUDA_OK);
    CHECK_EQ(graphs.destroy(graph), CUDA_OK);
    end_stream(s);
    close_gpu();
    return gshmem_finalize();
}
