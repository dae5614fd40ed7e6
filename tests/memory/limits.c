/* How far the heap grows, and which setting says so. */
#include "gshmem.h"

#include "check.h"

static const size_t mib = 1 << 20;

static void grows_to(const char *heap_max, const char *heap_size, const char *symmetric_size,
                     size_t limit)
{
    setenv("GSHMEM_LOG", "none", 1);
    setenv("GSHMEM_HEAP_MAX", heap_max, 1);
    setenv("GSHMEM_HEAP_SIZE", heap_size, 1);
    unsetenv("SHMEM_SYMMETRIC_SIZE");
    if (symmetric_size) {
        unsetenv("GSHMEM_HEAP_SIZE");
        setenv("SHMEM_SYMMETRIC_SIZE", symmetric_size, 1);
    }
    CHECK_OK(gshmem_init());
    char *all = gshmem_malloc(limit);
    CHECK(all);
    all[0] = all[limit - 1] = 1;
    CHECK(!gshmem_malloc(1));
    CHECK_EQ(gshmem_last_error(NULL), GSHMEM_ERR_MEMORY);
    CHECK_OK(gshmem_free(all));
    CHECK(!gshmem_malloc(limit + 1));
    CHECK_OK(gshmem_finalize());
}

int main(void)
{
    grows_to("4M", "0", NULL, 4 * mib);
    grows_to("5M", "0", NULL, 6 * mib); /* in steps of 2 MiB */
    grows_to("4M", "16M", NULL, 16 * mib);
    grows_to("4M", "0", "32M", 32 * mib); /* the standard's own setting */
    grows_to("1.5G", "0", NULL, 1536 * mib);
    setenv("GSHMEM_HUGE_PAGES", "off", 1);
    grows_to("2M", "0", NULL, 2 * mib);
    setenv("GSHMEM_HUGE_PAGES", "maybe", 1);
    CHECK_FAILS(gshmem_init(), GSHMEM_ERR_ARGUMENT, "GSHMEM_HUGE_PAGES=maybe");
    return 0;
}
