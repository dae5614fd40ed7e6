/* Data that NICs write to the memory of a (simulated) GPU that does not order such writes: what waits for a signal, or
 * for a barrier, finds it. This program plays the NIC; all else that a CPU does for a stream it has done before that, as
 * the driver would see to the data then. */
#include <dlfcn.h>
#include <sched.h>

#include "gshmem.h"
#include "gpu.h"

enum { DATA = 512 };

static void (*nic_write)(cuda_address at, const void *data, size_t bytes);
static bool (*look)(void *to, cuda_address at, size_t bytes);
static long (*calls)(const char *call);

static int me, n;
static long *data;      /* in GPU memory, [DATA] */
static uint64_t *flags; /* the same, [2] */
static long sent[DATA], got[DATA];
static uint64_t mark;

static void find_simulation(void)
{
    void *simulation = dlopen("libcuda.so.1", RTLD_NOW);
    void *entry[] = {dlsym(simulation, "sim_nic_write"), dlsym(simulation, "sim_look"),
                     dlsym(simulation, "sim_calls")};

    CHECK(entry[0] && entry[1] && entry[2]);
    memcpy(&nic_write, &entry[0], sizeof nic_write);
    memcpy(&look, &entry[1], sizeof look);
    memcpy(&calls, &entry[2], sizeof calls);
}

static void arrive(uint64_t round)
{
    for (int i = 0; i < DATA; i++)
        sent[i] = (long)round * 1000 + i;
    nic_write((cuda_address)(uintptr_t)data, sent, sizeof sent);
}

static void arrive_flag(uint64_t round, int which)
{
    nic_write((cuda_address)(uintptr_t)(flags + which), &round, sizeof round);
}

/* Behind what waits on the stream: what a kernel there would find. */
static void take(gshmem_stream_t s, uint64_t round)
{
    __atomic_store_n(&mark, 0, __ATOMIC_RELAXED);
    CHECK_OK(gshmem_uint64_p_on_stream(flags + 2, round, me, s));
    CHECK_OK(gshmem_getmem_on_stream(got, data, sizeof got, me, s));
    CHECK_OK(gshmem_getmem_on_stream(&mark, flags + 2, sizeof mark, me, s));
}

static void check(uint64_t round)
{
    while (__atomic_load_n(&mark, __ATOMIC_ACQUIRE) != round)
        sched_yield();
    for (int i = 0; i < DATA; i++)
        CHECK_EQ(got[i], sent[i]);
}

static void waits(gshmem_stream_t s)
{
    uint64_t round = 0;

    for (int i = 0; i < 10; i++) {
        CHECK_OK(gshmem_signal_wait_until_on_stream(flags, GSHMEM_CMP_EQ, ++round, s));
        take(s, round);
        arrive(round);
        arrive_flag(round, 0);
        check(round);

        CHECK_OK(gshmem_uint64_wait_until_all_on_stream(flags, 2, NULL, GSHMEM_CMP_EQ, ++round, s));
        take(s, round);
        arrive(round);
        arrive_flag(round, 1);
        arrive_flag(round, 0);
        check(round);
    }
    finish(s);
}

/* PE 0 has its data from a NIC before the others come. */
static void barriers(gshmem_stream_t s, int *told)
{
    for (uint64_t round = 100; round < 110; round++) {
        if (me == 0) {
            CHECK_OK(gshmem_barrier_all_on_stream(s));
            take(s, round);
            arrive(round);
            for (int pe = 1; pe < n; pe++)
                CHECK_OK(gshmem_int_p(told, (int)round, pe));
            check(round);
        } else {
            CHECK_OK(gshmem_int_wait_until(told, GSHMEM_CMP_EQ, (int)round));
            CHECK_OK(gshmem_barrier_all_on_stream(s));
        }
        finish(s);
    }
}

/* The CPU waits, and a kernel that runs is told by it. */
static void waits_of_cpu(int *told)
{
    static long seen[DATA];

    for (int round = 200; round < 210; round++) {
        arrive((uint64_t)round);
        CHECK_OK(gshmem_int_p(told, round, me));
        switch (round % 5) {
        case 0:
            CHECK_OK(gshmem_int_wait_until(told, GSHMEM_CMP_EQ, round));
            break;
        case 1:
            CHECK_EQ(gshmem_int_test(told, GSHMEM_CMP_EQ, round), 1);
            break;
        case 2:
            CHECK_EQ(gshmem_int_wait_until_any(told, 1, NULL, GSHMEM_CMP_EQ, round), 0);
            break;
        case 3:
            CHECK_EQ(gshmem_int_test_all(told, 1, NULL, GSHMEM_CMP_EQ, round), 1);
            break;
        default:
            CHECK_OK(gshmem_barrier_all());
        }
        CHECK(look(seen, (cuda_address)(uintptr_t)data, sizeof seen));
        CHECK(memcmp(seen, sent, sizeof seen) == 0);
        CHECK_OK(gshmem_barrier_all());
    }
}

int main(int argc, char **argv)
{
    CHECK_OK(gshmem_init());
    me = gshmem_my_pe();
    n = gshmem_n_pes();
    open_gpu();
    find_simulation();
    data = gshmem_calloc(DATA, sizeof *data);
    flags = gshmem_calloc(3, sizeof *flags);
    int *told = gshmem_malloc_with_hints(sizeof *told, GSHMEM_MALLOC_HOST);
    CHECK(data && flags && told);
    *told = 0;
    CHECK_OK(gshmem_barrier_all());
    gshmem_stream_t s = new_stream();
    if (argc > 1 && strcmp(argv[1], "none") == 0) { /* where the GPU needs none */
        CHECK_OK(gshmem_barrier_all_on_stream(s));
        finish(s);
        CHECK_EQ(calls("cuFlushGPUDirectRDMAWrites"), 0);
    } else {
        waits(s);
        if (n > 1) /* else there is nobody to meet */
            barriers(s, told);
        waits_of_cpu(told);
    }
    end_stream(s);
    close_gpu();
    CHECK_OK(gshmem_finalize());
    return 0;
}
