// gshmem_finalize from what runs at exit: a handler and the destructor of a static object, both from before
// gshmem_init. The job has been ended at exit by then; they are told how that went, and everything that has been
// printed comes out.
#include <cstdio>
#include <cstdlib>

#include "gshmem.h"

#include "check.h"

struct Environment {
    ~Environment()
    {
        CHECK_EQ(gshmem_initialized(), 0);
        CHECK_OK(gshmem_finalize());
        CHECK_FAILS(gshmem_finalize(), GSHMEM_ERR_STATE, "gshmem_finalize"); // gshmem_init was called twice
        CHECK_FAILS(gshmem_barrier_all(), GSHMEM_ERR_STATE, "gshmem_barrier_all");
    }
};

static Environment environment;

static void finalize()
{
    CHECK_OK(gshmem_finalize());
}

int main()
{
    std::atexit(finalize);
    CHECK_OK(gshmem_init());
    CHECK_OK(gshmem_init());
    CHECK_OK(gshmem_barrier_all());
    std::printf("PE %d has printed\n", gshmem_my_pe());
    return 0;
}
