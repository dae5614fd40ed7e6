/* The processes of a measurement: they start themselves, by fork and a unique id, and meet on a page
 * that they share. Whichever library is measured has no part in that: a barrier of its own may run a
 * kernel, and where PEs share a GPU that would take time from what is measured. */
#ifndef GSHMEM_TESTS_GPU_PES_H
#define GSHMEM_TESTS_GPU_PES_H

#include <nvshmem.h>
#include <nvshmemx.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct page {
    int come;   /* PEs that have come to meetings, all of them together */
    int failed; /* a PE has ended badly: nobody is waited for any more */
    nvshmemx_uniqueid_t id;
    long times; /* what PE 0 tells the others */
    bool again;
};

struct pes {
    struct page *page;
    int me, n, meetings;
};

/* All PEs, or the first two of them. */
static inline void pes_meet(struct pes *p)
{
    int all = ++p->meetings * p->n;

    __atomic_fetch_add(&p->page->come, 1, __ATOMIC_ACQ_REL); /* with the load below, of the others */
    while (__atomic_load_n(&p->page->come, __ATOMIC_ACQUIRE) < all) {
        if (__atomic_load_n(&p->page->failed, __ATOMIC_RELAXED))
            exit(1);
        usleep(20);
    }
}

static inline void pes_init(struct pes *p)
{
    nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    int devices = 0;

    if (cudaGetDeviceCount(&devices) || cudaSetDevice(p->me % devices)) {
        fprintf(stderr, "PE %d finds no GPU\n", p->me);
        exit(1);
    }
    if (p->me == 0) {
        if (nvshmemx_get_uniqueid(&id))
            exit(1);
        p->page->id = id;
    }
    pes_meet(p);
    id = p->page->id;
    if (nvshmemx_set_attr_uniqueid_args(p->me, p->n, &id, &attr) ||
        nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attr))
        exit(1);
}

/* Whether kernels of these PEs run one after another: they share GPUs, without a service for that. */
static inline bool pes_take_turns(const struct pes *p)
{
#ifdef GSHMEM_HOST_DEVICE
    (void)p;
    return false;
#else
    int devices = 1;

    (void)cudaGetDeviceCount(&devices);
    return p->n > devices && !getenv("CUDA_MPS_PIPE_DIRECTORY");
#endif
}

/* Starts n of them, none of which has touched a GPU before. In the one that has started them it does
 * not return: it ends with their status. */
static inline struct pes pes_start(int n)
{
    struct pes p = {NULL, -1, n, 0};
    int status, failed = 0;

    p.page = (struct page *)mmap(NULL, sizeof *p.page, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p.page == MAP_FAILED)
        exit(1);
    for (int pe = 0; pe < n; pe++) {
        pid_t child = fork();
        if (child == 0) {
            p.me = pe;
            return p;
        }
        if (child < 0)
            __atomic_store_n(&p.page->failed, 1, __ATOMIC_RELAXED);
    }
    while (wait(&status) > 0) {
        if (status) {
            failed = 1;
            __atomic_store_n(&p.page->failed, 1, __ATOMIC_RELAXED);
        }
    }
    exit(failed);
}

#endif
