/* Global and static variables, of the program and of a library, reached from other PEs. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <sys/wait.h>

#include "gshmem.h"

#include "check.h"
#include "globals_library.h"
#include "held.h"

enum { SPARSE = 64 << 20 };

long exported = 5;
static int set[4] = {1, 2, 3, 4};
static uint64_t zero, count;
static char sparse[SPARSE];
static long sum;

static int me, n, left, right;

static long *inside_a_function(void)
{
    static long hidden = 50;

    return &hidden;
}

static void put_and_get(void)
{
    long value = 1000 + me;
    long *hidden = inside_a_function();

    CHECK_OK(gshmem_putmem(&exported, &value, sizeof value, right));
    CHECK_OK(gshmem_putmem(hidden, &value, sizeof value, right));
    CHECK_OK(gshmem_putmem(&set[2], &me, sizeof me, right));
    CHECK_OK(gshmem_putmem(&sparse[SPARSE - 3], "end", 3, right));
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(exported, 1000 + left);
    CHECK_EQ(*hidden, 1000 + left);
    CHECK(set[0] == 1 && set[1] == 2 && set[2] == left && set[3] == 4);
    CHECK(memcmp(&sparse[SPARSE - 3], "end", 3) == 0);
    CHECK_EQ(sparse[SPARSE / 2], 0);
    CHECK_OK(gshmem_getmem(&value, &exported, sizeof value, right));
    CHECK_EQ(value, 1000 + me);
    for (int pe = 0; pe < n; pe++) {
        long *there = gshmem_ptr(&exported, pe);
        CHECK_EQ(there != NULL,
                 gshmem_team_translate_pe(GSHMEM_TEAM_WORLD, pe, GSHMEM_TEAM_SHARED) >= 0);
        if (there)
            CHECK_EQ(*there, 1000 + (pe + n - 1) % n);
    }
    CHECK_OK(gshmem_barrier_all());
}

static void atomics_and_collectives(void)
{
    for (int pe = 0; pe < n; pe++)
        gshmem_uint64_atomic_add(&count, 1 + (uint64_t)me, pe);
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(count, n * (n + 1) / 2);
    sum = me;
    CHECK_OK(gshmem_long_sum_reduce(GSHMEM_TEAM_WORLD, &sum, &sum, 1));
    CHECK_EQ(sum, n * (n - 1) / 2);
    count = 0;
    CHECK_OK(gshmem_barrier_all());
}

#ifdef ASKS
/* Where the library is differs from PE to PE, and where its lock has its home does not. */
static void lock_of_a_library(void)
{
    enum { TIMES = 500 };
    long value;

    for (int i = 0; i < TIMES; i++) {
        CHECK_OK(gshmem_set_lock(library_lock()));
        CHECK_OK(gshmem_getmem(&value, &library_table[600], sizeof value, 0));
        sched_yield(); /* whoever should not be here comes now */
        value++;
        CHECK_OK(gshmem_putmem(&library_table[600], &value, sizeof value, 0));
        CHECK_OK(gshmem_clear_lock(library_lock()));
    }
    CHECK_OK(gshmem_barrier_all());
    if (me == 0)
        CHECK_EQ(library_table[600], TIMES * n);
    library_table[600] = 0;
    CHECK_OK(gshmem_barrier_all());
}

static void in_a_library(void)
{
    long value = 3000 + me;

    CHECK_EQ(gshmem_ptr(&library_counter, right) != NULL,
             gshmem_team_translate_pe(GSHMEM_TEAM_WORLD, right, GSHMEM_TEAM_SHARED) >= 0);
    CHECK_OK(gshmem_putmem(library_hidden(), &value, sizeof value, right));
    CHECK_OK(gshmem_putmem(&library_table[999], &value, sizeof value, right));
    gshmem_long_atomic_add(&library_counter, 1, right);
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(*library_hidden(), 3000 + left);
    CHECK_EQ(library_table[999], 3000 + left);
    CHECK_EQ(library_counter, 101);
    CHECK_OK(gshmem_getmem(&value, library_hidden(), sizeof value, right));
    CHECK_EQ(value, 3000 + me);
    CHECK_OK(gshmem_barrier_all());
    library_counter = 100;
    *library_hidden() = 10 + me;
    CHECK_OK(gshmem_collectmem(GSHMEM_TEAM_WORLD, library_area(), library_hidden(), sizeof value));
    for (int pe = 0; pe < n; pe++)
        CHECK_EQ(library_area()[pe], 10 + pe);
    /* From its end to that of its library's variables are only a few pages. */
    CHECK_FAILS(gshmem_collectmem(GSHMEM_TEAM_WORLD, &library_area()[LIBRARY_AREA - 1], sparse, sizeof sparse),
                GSHMEM_ERR_NOT_SYMMETRIC, "runs past the end");
    lock_of_a_library();
}
#else
static void in_a_library(void)
{
    CHECK_EQ(*library_hidden(), 7);
    CHECK(!gshmem_ptr(library_hidden(), right));
    CHECK_FAILS(gshmem_putmem(library_hidden(), &sum, sizeof sum, right), GSHMEM_ERR_NOT_SYMMETRIC,
                "not");
    /* What the linker has copied from the library into the program is the program's. */
    if (gshmem_ptr(&library_counter, me))
        CHECK_OK(gshmem_putmem(&library_counter, &library_counter, sizeof(long), right));
    CHECK_OK(gshmem_barrier_all());
}
#endif

/* A child gets the variables as they were, and shares them with nobody. */
static void forks(void)
{
    int status = -1, go[2];
    char byte;

    zero = 77;
    CHECK_EQ(pipe(go), 0);
    CHECK_OK(gshmem_barrier_all());
    pid_t child = fork();
    if (child == 0) {
        if (read(go[0], &byte, 1) != 1 || zero != 77)
            _exit(2);
        zero = 5;
        exported = 5;
        library_counter = 5;
        memset(set, 0, sizeof set);
        _exit(0);
    }
    CHECK_OK(gshmem_barrier_all());
    uint64_t value = 88;
    CHECK_OK(gshmem_putmem(&zero, &value, sizeof value, right));
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(write(go[1], "g", 1), 1);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_OK(gshmem_barrier_all());
    CHECK_EQ(zero, 88);
    CHECK(set[0] == 1 && set[3] == 4 && exported == 1000 + left);
    close(go[0]);
    close(go[1]);
    CHECK_EQ(library_counter, 100);
    CHECK_OK(gshmem_barrier_all());
}

/* system and popen run programs without the copy, and exec leaves nothing behind. */
static void runs_programs(void)
{
    char text[32] = "";
    FILE *p = popen("echo fine", "r");

    CHECK(p && fgets(text, sizeof text, p));
    CHECK_EQ(pclose(p), 0);
    CHECK_STR(text, "fine\n");
    CHECK_EQ(system("exit 3"), 3 << 8);
}

int main(void)
{
    CHECK_EQ(exported, 5);
    setenv("GSHMEM_LOG", "none", 1);
    for (int round = 0; round < 3; round++) {
        CHECK_OK(gshmem_init());
        me = gshmem_my_pe();
        n = gshmem_n_pes();
        left = (me + n - 1) % n;
        right = (me + 1) % n;
        if (round)
            CHECK_EQ(zero, 88); /* variables live on between jobs */
        CHECK(bytes_held() > 0 && bytes_held() < SPARSE / 8);
        put_and_get();
        atomics_and_collectives();
        in_a_library();
        forks();
        runs_programs();
        CHECK(bytes_held() < SPARSE / 8);
        CHECK_OK(gshmem_finalize());
        CHECK_EQ(exported, 1000 + left);
        CHECK_EQ(gshmem_symmetric_data(&exported), GSHMEM_OK);
    }
    return 0;
}
