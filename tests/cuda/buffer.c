/* Buffers of the program's own beside (simulated) GPU memory: host memory is pinned while it is
 * registered, what the program has pinned is left alone, GPU memory is taken as it is, and what is
 * left registered at the end is unpinned. With "fault" the driver refuses the first of each job: it
 * is unloaded in between. */
#include "gshmem.h"
#include "../check.h"
#include "device/cuda/driver.h"

enum { PAGE = 4096, MIB = 1 << 20 };

static struct cuda_driver d;

static unsigned kind_of(const void *at)
{
    unsigned kind = 0;

    return d.pointer_attribute(&kind, CUDA_POINTER_MEMORY_TYPE, (cuda_address)(uintptr_t)at) ? 0
                                                                                             : kind;
}

static void host_memory(void)
{
    char *mine = malloc(4 * PAGE), *other;
    void *pinned;

    CHECK(mine);
    CHECK_EQ(kind_of(mine), 0);
    CHECK_OK(gshmem_buffer_register(mine, 4 * PAGE));
    CHECK_EQ(kind_of(mine + 4 * PAGE - 1), CUDA_MEMORY_HOST);
    CHECK_OK(gshmem_buffer_unregister(mine));
    CHECK_EQ(kind_of(mine), 0);

    CHECK_EQ(d.host_register(mine + PAGE, PAGE, 0), CUDA_OK);
    CHECK_FAILS(gshmem_buffer_register(mine, 4 * PAGE), GSHMEM_ERR_DEVICE,
                "a part of it the program");
    CHECK_OK(gshmem_buffer_register(mine + PAGE, PAGE));
    CHECK_OK(gshmem_buffer_unregister(mine + PAGE));
    CHECK_EQ(kind_of(mine + PAGE), CUDA_MEMORY_HOST); /* it is the program's to unpin */
    CHECK_EQ(d.host_unregister(mine + PAGE), CUDA_OK);

    CHECK_EQ(d.host_allocate(&pinned, PAGE, 0), CUDA_OK);
    other = pinned;
    CHECK_OK(gshmem_buffer_register(other, PAGE));
    CHECK_OK(gshmem_buffer_unregister_all());
    CHECK_EQ(d.host_free(pinned), CUDA_OK);
    free(mine);
}

static void gpu_memory(int me, int n)
{
    long *object = gshmem_malloc(PAGE), back[PAGE / 8], words[PAGE / 8];
    int right = (me + 1) % n, left = (me + n - 1) % n;
    cuda_address block;
    char *mine;

    CHECK(object);
    CHECK_EQ(d.allocate(&block, MIB), CUDA_OK);
    mine = (char *)(uintptr_t)block;
    CHECK_FAILS(gshmem_buffer_register(object, 8), GSHMEM_ERR_ARGUMENT, "the symmetric heap");
    /* no such memory; or, where the heap lies behind it, an overlap */
    CHECK_FAILS(gshmem_buffer_register(mine, (size_t)1 << 40), GSHMEM_ERR_ARGUMENT,
                "gshmem_buffer_register: ");
    CHECK_OK(gshmem_buffer_register(mine, MIB));
    CHECK_FAILS(gshmem_buffer_register(mine + PAGE, 8), GSHMEM_ERR_ARGUMENT, "overlap");
    for (int i = 0; i < PAGE / 8; i++)
        words[i] = me * 1000 + i;
    CHECK_OK(gshmem_putmem(object, words, PAGE, right));
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_getmem(mine + PAGE, object, PAGE, me)); /* GPU to GPU */
    CHECK_OK(gshmem_putmem(object, mine + PAGE, PAGE, me));
    CHECK_OK(gshmem_getmem(back, object, PAGE, me));
    for (int i = 0; i < PAGE / 8; i++)
        CHECK_EQ(back[i], left * 1000 + i);
    CHECK_OK(gshmem_barrier_all());
    CHECK_OK(gshmem_buffer_unregister(mine));
    CHECK_EQ(d.free(block), CUDA_OK);
    CHECK_OK(gshmem_free(object));
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    static char left[PAGE];
    char why[200];

    setenv("GSHMEM_LOG", "none", 0);
    for (int job = 0; job < 2; job++) {
        CHECK_OK(gshmem_init());
        CHECK(cuda_driver_open(&d, why, sizeof why));
        if (strcmp(what, "fault") == 0) {
            CHECK_FAILS(gshmem_buffer_register(left, PAGE), GSHMEM_ERR_MEMORY, "ulimit -l");
            CHECK_FAILS(gshmem_buffer_unregister(left), GSHMEM_ERR_ARGUMENT, "(0 are elsewhere)");
        }
        host_memory();
        gpu_memory(gshmem_my_pe(), gshmem_n_pes());
        CHECK_OK(gshmem_buffer_register(left, PAGE));
        CHECK_OK(gshmem_finalize());
        cuda_driver_close(&d);
    }
    return 0;
}
