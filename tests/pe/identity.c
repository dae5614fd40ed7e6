/* Who can be reached, and where a peer's memory is mapped. */
#include <stdbool.h>
#include <stdint.h>

#include "pe.h"

static long cell;
static const long constant = 5;

static void test_pes(void)
{
    for (int pe = 0; pe < n; pe++)
        CHECK_EQ(gshmem_pe_accessible(pe), 1);
    CHECK_EQ(gshmem_pe_accessible(-1), 0);
    CHECK_EQ(gshmem_pe_accessible(n), 0);
    CHECK_EQ(gshmem_pe_accessible(INT32_MAX), 0);
    CHECK_EQ(gshmem_pe_accessible(INT32_MIN), 0);
}

static void test_addresses(const long *heap)
{
    long local = 0;
    long *own = malloc(sizeof *own);

    for (int pe = 0; pe < n; pe++) {
        CHECK_EQ(gshmem_addr_accessible(heap, pe), 1);
        CHECK_EQ(gshmem_addr_accessible(&cell, pe), 1);
        CHECK_EQ(gshmem_addr_accessible(&local, pe), 0);
        CHECK_EQ(gshmem_addr_accessible(own, pe), 0);
        CHECK_EQ(gshmem_addr_accessible(&constant, pe), 0);
        CHECK_EQ(gshmem_addr_accessible(NULL, pe), 0);
        CHECK(!gshmem_ptr(&local, pe));
        CHECK(!gshmem_ptr(own, pe));
        CHECK(!gshmem_ptr(&constant, pe));
        CHECK(!gshmem_ptr(NULL, pe));
    }
    CHECK_EQ(gshmem_addr_accessible(heap, n), 0);
    CHECK_EQ(gshmem_addr_accessible(heap, -1), 0);
    CHECK(!gshmem_ptr(heap, n));
    CHECK(!gshmem_ptr(heap, -1));
    free(own);
}

/* Loads and stores through gshmem_ptr are the object itself. */
static void test_pointer(long *heap)
{
    CHECK(gshmem_ptr(heap, me) == heap);
    CHECK(gshmem_ptr(&cell, me) == &cell);
    for (int pe = 0; pe < n; pe++)
        CHECK_EQ(gshmem_ptr(heap, pe) != NULL,
                 gshmem_team_translate_pe(GSHMEM_TEAM_WORLD, pe, GSHMEM_TEAM_SHARED) >= 0);
    if (gshmem_team_n_pes(GSHMEM_TEAM_SHARED) != n)
        return; /* PEs on other hosts have no address here */
    heap[0] = heap[1] = cell = -1;
    barrier();

    long *there = gshmem_ptr(heap, right()), *global = gshmem_ptr(&cell, right());
    CHECK(there && global);
    CHECK(gshmem_ptr(heap + 1, right()) == there + 1);
    *there = me;
    *global = 100 + me;
    barrier();
    CHECK_EQ(heap[0], left());
    CHECK_EQ(heap[1], -1);
    CHECK_EQ(cell, 100 + left());
    heap[1] = 200 + me;
    barrier();
    CHECK_EQ(there[1], 200 + right());
    barrier();
}

static void test_teams(long *heap)
{
    bool one_host = gshmem_team_n_pes(GSHMEM_TEAM_HOST) == n;

    for (int pe = 0; pe < n; pe++) {
        CHECK(gshmem_team_ptr(GSHMEM_TEAM_WORLD, heap, pe) == gshmem_ptr(heap, pe));
        if (one_host) {
            CHECK_EQ(gshmem_team_translate_pe(GSHMEM_TEAM_WORLD, pe, GSHMEM_TEAM_SHARED), pe);
            CHECK_EQ(gshmem_team_translate_pe(GSHMEM_TEAM_HOST, pe, GSHMEM_TEAM_WORLD), pe);
        }
    }
    CHECK(!gshmem_team_ptr(GSHMEM_TEAM_WORLD, heap, n));
    CHECK(!gshmem_team_ptr(GSHMEM_TEAM_INVALID, heap, 0));
    CHECK_EQ(gshmem_team_n_pes(GSHMEM_TEAM_SHARED), gshmem_team_n_pes(GSHMEM_TEAM_HOST));

    if (n < 3)
        return;
    gshmem_team_t odd;
    CHECK_OK(gshmem_team_split_strided(GSHMEM_TEAM_WORLD, 1, 2, n / 2, NULL, 0, &odd));
    if (me % 2) {
        for (int i = 0; i < n / 2; i++)
            CHECK(gshmem_team_ptr(odd, heap, i) == gshmem_ptr(heap, 1 + 2 * i));
        CHECK(!gshmem_team_ptr(odd, heap, n / 2));
        CHECK_OK(gshmem_team_destroy(odd));
    } else {
        CHECK_EQ(odd, GSHMEM_TEAM_INVALID);
    }
    barrier();
}

int main(void)
{
    setenv("GSHMEM_LOG", "none", 0);
    begin();
    long *heap = take(2 * sizeof *heap);
    test_pes();
    test_addresses(heap);
    test_pointer(heap);
    test_teams(heap);
    CHECK_OK(gshmem_free(heap));
    end();
    return 0;
}
