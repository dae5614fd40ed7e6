/* A PE stands still after it has come to the end of a lock's queue, and before it has said so to the PE there: that
 * one gives the lock back without it, can have it again, and the late one gets it in the end.
 *
 * Three PEs of a host. PE 1 is made to stand still by a page of PE 0's memory that it cannot write for a while. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "pe.h"

enum { PAGE = 4096, PAGES = 3 };

static long *lock;                  /* its home is PE 2 */
static char *far_page;              /* PE 0's copy, where PE 1 has it */
static uint64_t stands_still;       /* symmetric: PE 1 tells the others */
static uint64_t go_on;              /* symmetric: PE 0 tells PE 1 */
static uint64_t holders, times;     /* symmetric, on PE 0: who has the lock, and how often it was had */

/* The lock that PE 0 holds is marked in the low half of its home's copy. */
static int is_home(const long *candidate, int pe)
{
    return gshmem_uint32_atomic_fetch((const uint32_t *)candidate, pe) != 0;
}

static void find_lock(void)
{
    char *pages = gshmem_align(PAGE, PAGES * PAGE);

    CHECK(pages != NULL);
    memset(pages, 0, PAGES * PAGE);
    barrier();
    for (int i = 0; i < PAGES; i++) { /* pages follow each other, and so do their homes */
        long *candidate = (long *)(pages + i * PAGE);
        if (me == 0)
            CHECK_OK(gshmem_set_lock(candidate));
        barrier();
        if (is_home(candidate, 2))
            lock = candidate;
        barrier();
        if (me == 0)
            CHECK_OK(gshmem_clear_lock(candidate));
        barrier();
    }
    CHECK(lock != NULL);
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void stand_still(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    if ((char *)info->si_addr < far_page || (char *)info->si_addr >= far_page + PAGE)
        _exit(99);
    __atomic_store_n((uint64_t *)gshmem_ptr(&stands_still, 0), 1, __ATOMIC_RELEASE);
    __atomic_store_n((uint64_t *)gshmem_ptr(&stands_still, 2), 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&go_on, __ATOMIC_ACQUIRE))
        nap();
    if (mprotect(far_page, PAGE, PROT_READ | PROT_WRITE) != 0)
        _exit(98);
}

static void have_it(void)
{
    uint64_t *now = gshmem_ptr(&holders, 0);

    CHECK_EQ(__atomic_add_fetch(now, 1, __ATOMIC_ACQ_REL), 1);
    nap(); /* whoever should not be here comes now */
    CHECK_EQ(__atomic_sub_fetch(now, 1, __ATOMIC_ACQ_REL), 0);
    CHECK_OK(gshmem_uint64_atomic_inc(&times, 0));
}

static void take_turn(void)
{
    CHECK_OK(gshmem_set_lock(lock));
    have_it();
    CHECK_OK(gshmem_clear_lock(lock));
}

static void be_late(void)
{
    struct sigaction action = {.sa_sigaction = stand_still, .sa_flags = SA_SIGINFO}, before;

    far_page = gshmem_ptr(lock, 0);
    CHECK_EQ(sigaction(SIGSEGV, &action, &before), 0);
    CHECK_EQ(mprotect(far_page, PAGE, PROT_READ), 0);
    take_turn();
    CHECK_EQ(sigaction(SIGSEGV, &before, NULL), 0);
}

/* PE 0 holds the lock. while_late: also when PE 1 goes on. */
static void give_back(bool while_late)
{
    CHECK_OK(gshmem_uint64_wait_until(&stands_still, GSHMEM_CMP_EQ, 1));
    CHECK_OK(gshmem_clear_lock(lock));
    CHECK_FAILS(gshmem_clear_lock(lock), GSHMEM_ERR_STATE, "does not hold");
    take_turn();
    CHECK_EQ(gshmem_test_lock(lock), 0);
    CHECK_EQ(gshmem_test_lock(lock), 1);
    CHECK_FAILS(gshmem_set_lock(lock), GSHMEM_ERR_STATE, "would wait for itself");
    if (!while_late)
        CHECK_OK(gshmem_clear_lock(lock));
    CHECK_OK(gshmem_uint64_p(&go_on, 1, 1));
    if (while_late) {
        have_it();
        CHECK_OK(gshmem_clear_lock(lock));
    }
    take_turn();
}

/* Behind the late one. */
static void follow(void)
{
    CHECK_OK(gshmem_uint64_wait_until(&stands_still, GSHMEM_CMP_EQ, 1));
    take_turn();
}

int main(void)
{
    begin();
    CHECK_EQ(n, 3);
    find_lock();
    for (int round = 0; round < 4; round++) {
        const bool while_late = round % 2;
        if (me == 0)
            CHECK_OK(gshmem_set_lock(lock));
        go_on = stands_still = 0;
        barrier();
        if (me == 0)
            give_back(while_late);
        else if (me == 1)
            be_late();
        else if (round >= 2)
            follow();
        barrier();
        if (me == 0) {
            CHECK_EQ(times, 3u + while_late + (round >= 2));
            times = 0;
        }
    }
    end();
    return 0;
}
