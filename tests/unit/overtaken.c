/* The lock of runtime/base/mutex.h, and one that takes it again whenever it has given it back: who sleeps
 * for it gets it all the same. The system is played here, so that it always goes badly. */
#define _GNU_SOURCE
#include "../check.h"

static long played(long number, ...);

#define syscall played
#include "runtime/base/mutex.c"
#undef syscall

enum { MOST = 16 };

static struct mutex mutex;
static int overtaken;

/* Where the system would put the caller to sleep, the other one gives it back and takes it again. */
static long played(long number, ...)
{
    static bool within;

    CHECK_EQ(number, SYS_futex);
    if (within) /* it wakes whoever sleeps, which is the caller of the one below */
        return 0;
    within = true;
    mutex_give(&mutex);
    if (mutex_try(&mutex))
        overtaken++;
    within = false;
    CHECK(overtaken <= MOST);
    return 0;
}

int main(void)
{
    mutex_take(&mutex); /* the other one */
    mutex_take(&mutex);
    CHECK(overtaken > 0);
    CHECK(!mutex_try(&mutex));
    CHECK_EQ(atomic_load(&mutex.state), MUTEX_WANTED);
    return 0;
}
