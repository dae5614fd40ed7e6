/* libnvshmem_host.so.3 as torch's library finds it: by its name, its symbols in the version node
 * NVSHMEM. Two processes start from a unique id, and use it on streams.
 *
 *     host_library LIBRARY SYMBOLS [kernel]
 *
 * SYMBOLS has the names that libtorch_nvshmem.so of torch 2.15 for CUDA 13 imports. kernel: what
 * NVSHMEM's device library does before it launches a kernel. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"

enum { NAME = 128, WITH_UNIQUEID = 1 << 3, ID = 128, SIGNAL_SET = 9, SIGNAL_ADD = 10, GE = 5 };

struct version {
    int major, minor, patch;
};

static void *library;

static void *symbol(const char *name)
{
    void *found = dlvsym(library, name, "NVSHMEM");

    if (!found)
        fprintf(stderr, "%s is not in the version node NVSHMEM\n", name);
    CHECK(found);
    return found;
}

/* All that torch imports. */
static void all_are_there(const char *path)
{
    FILE *file = fopen(path, "r");
    char name[NAME];
    int n = 0;

    CHECK(file);
    for (; fscanf(file, "%127s", name) == 1; n++)
        (void)symbol(name);
    fclose(file);
    CHECK_EQ(n, 21);
}

#define CALL(type, name, ...) ((type(*) __VA_ARGS__)symbol(#name))

/* As nvshmemx_init_attr of NVSHMEM's headers does it: by the device library, inline. */
static void start(int me, void *id)
{
    uint64_t attr[32] = {0}; /* nvshmemx_init_attr_t */
    int provided = -1;

    CHECK_EQ(CALL(int, nvshmemx_set_attr_uniqueid_args, (int, int, const void *, void *))(2, 2, id,
                                                                                          attr),
             1); /* there is no rank 2 */
    CHECK_EQ(CALL(int, nvshmemx_set_attr_uniqueid_args, (int, int, const void *, void *))(me, 2, id,
                                                                                          attr),
             0);
    CHECK_EQ(CALL(int, nvshmemid_hostlib_init_attr,
                  (int, int *, unsigned, void *, struct version, void (*)(void **, void **)))(
                 2, &provided, WITH_UNIQUEID, attr, (struct version){3, 4, 5}, NULL),
             0);
    CHECK_EQ(provided, 2);
    CHECK_EQ(CALL(int, nvshmemid_init_status, (void))(), 0);
}

static void teams(int me)
{
    int team = -7, config[16] = {2, 1};

    CHECK_EQ(CALL(int, nvshmem_team_n_pes, (int))(0), 2);
    CHECK_EQ(CALL(int, nvshmem_team_split_strided,
                  (int, int, int, int, const void *, long, int *))(0, 1, 1, 1, config, 0, &team),
             0);
    CHECK_EQ(CALL(int, nvshmem_team_n_pes, (int))(team), me == 1 ? 1 : -1);
}

/* Through the neighbour's memory, all on the default stream. */
static void on_stream(int me)
{
    const int other = 1 - me;
    int *heap = CALL(void *, nvshmem_malloc, (size_t))(64 * sizeof *heap);
    uint64_t *signal = CALL(void *, nvshmem_malloc, (size_t))(sizeof *signal);

    CHECK(heap && signal);
    CHECK(CALL(void *, nvshmem_ptr, (const void *, int))(heap, other));
    CHECK(!CALL(void *, nvshmemx_mc_ptr, (int, const void *))(0, heap)); /* CPUs have none */
    memset(heap, 0, 64 * sizeof *heap);
    *signal = 0;
    heap[0] = 10 + me, heap[1] = 20 + me;
    CALL(void, nvshmem_barrier_all, (void))();
    CALL(void, nvshmemx_putmem_on_stream, (void *, const void *, size_t, int, void *))
    (heap + 8, heap, 4, other, NULL);
    for (int i = 0; i < 2; i++)
        CALL(void, nvshmemx_putmem_signal_on_stream,
             (void *, const void *, size_t, uint64_t *, uint64_t, int, int, void *))
        (heap + 9, heap + 1, 4, signal, 3, i ? SIGNAL_ADD : SIGNAL_SET, other, NULL);
    CALL(void, nvshmemx_signal_wait_until_on_stream, (uint64_t *, int, uint64_t, void *))
    (signal, GE, 6, NULL);
    CHECK_EQ(*signal, 6);
    CHECK_EQ(heap[9], 20 + other);
    CALL(void, nvshmem_barrier_all, (void))();
    CHECK_EQ(heap[8], 10 + other);
    CALL(void, nvshmemx_getmem_on_stream, (void *, const void *, size_t, int, void *))
    (heap + 16, heap, 8, other, NULL);
    CHECK_EQ(heap[17], 20 + other);
    CHECK_EQ(CALL(int, nvshmemx_broadcastmem_on_stream,
                  (int, void *, const void *, size_t, int, void *))(0, heap + 24, heap, 8, 1, NULL),
             0);
    CHECK_EQ(heap[24], 11);
    CHECK_EQ(CALL(int, nvshmemx_alltoallmem_on_stream,
                  (int, void *, const void *, size_t, void *))(0, heap + 32, heap, 4, NULL),
             0);
    CHECK_EQ(heap[32], (me ? 20 : 10) + 0);
    CHECK_EQ(heap[33], (me ? 20 : 10) + 1);
    CALL(void, nvshmem_barrier_all, (void))();
    CALL(void, nvshmem_free, (void *))(signal);
    CALL(void, nvshmem_free, (void *))(heap);
}

static int run(int me, void *id, bool kernel)
{
    int major = 0, minor = 0;

    start(me, id);
    CALL(void, nvshmem_info_get_version, (int *, int *))(&major, &minor);
    CHECK_EQ(major, 1);
    CHECK_EQ(*(int *)symbol("nvshmem_selected_device_transport"), 0);
    CHECK(CALL(int, nvshmemx_cumodule_init, (void *))(&minor) != 0); /* no such module */
    teams(me);
    on_stream(me);
    for (int i = 0; kernel && i < 3; i++) /* before each launch: there is no job for it */
        CHECK_EQ(CALL(int, nvshmemid_init_status, (void))(), 0);
    CALL(void, nvshmemid_hostlib_finalize, (void *, void *))(NULL, NULL);
    return 0;
}

int main(int argc, char **argv)
{
    char id[ID];
    int status;

    CHECK(argc > 2);
    library = dlopen(argv[1], RTLD_NOW);
    if (!library)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(library);
    all_are_there(argv[2]);
    CHECK_EQ(CALL(int, nvshmemx_get_uniqueid, (void *))(id), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        return run(1, id, argc > 3);
    run(0, id, argc > 3);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    return 0;
}
