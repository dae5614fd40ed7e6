/* Loops over puts and gets. Each ends with a quiet, so that nothing measured is left undone. */
#include "benchmark.h"
#include <library.h>

void loop_put(struct run *r, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        lib_put(run_dest(r, i), run_source(r, i), r->size, r->peer);
        iteration_end();
    }
    lib_quiet();
}

void loop_get(struct run *r, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        lib_get(run_dest(r, i), run_source(r, i), r->size, r->peer);
        iteration_end();
    }
}

void loop_put_quiet(struct run *r, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        lib_put(run_dest(r, i), run_source(r, i), r->size, r->peer);
        lib_quiet();
        iteration_end();
    }
}

void loop_put_nbi(struct run *r, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        lib_put_nbi(run_dest(r, i), run_source(r, i), r->size, r->peer);
        if ((i & 63) == 63)
            lib_quiet();
        iteration_end();
    }
    lib_quiet();
}

void loop_p(struct run *r, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        lib_p((long *)run_dest(r, i), (long)i, r->peer);
        iteration_end();
    }
    lib_quiet();
}

void loop_g(struct run *r, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        use(lib_g((const long *)run_source(r, i), r->peer));
}
