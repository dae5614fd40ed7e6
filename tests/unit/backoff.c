/* Patience with another host, which is played here: kept with one that answers in time, lost with one that
 * does not, and found again. */
#include "../check.h"
#include "runtime/network/backoff.h"

enum { ANSWER = 10, NEVER = 1000 }; /* after so many steps */

static struct backoff backoff;
static int steps; /* of the last wait */

static void one_wait(int answer)
{
    uint32_t left = backoff_begin(&backoff);

    CHECK(left == 0 || left == BACKOFF_STEPS);
    for (steps = 0; left && steps < answer; steps++)
        left = backoff_step(&backoff, left);
}

/* How many of so many waits were patient. */
static int waits(int many, int answer)
{
    int patient = 0;

    for (int i = 0; i < many; i++) {
        one_wait(answer);
        patient += steps > 0;
    }
    return patient;
}

int main(void)
{
    CHECK_EQ(waits(100, ANSWER), 100);
    CHECK_EQ(steps, ANSWER);

    one_wait(NEVER); /* once late: one wait goes without */
    CHECK_EQ(steps, BACKOFF_STEPS);
    CHECK_EQ(waits(100, ANSWER), 99);

    waits(1000, NEVER);
    int patient = waits(10000, NEVER);
    CHECK(patient > 0 && patient <= 10000 / BACKOFF_PAUSE_MOST);

    /* in time by chance, once in ten times that it is hoped for */
    patient = 0;
    for (int i = 0; i < 10000; i++) {
        one_wait(patient % 10 == 9 ? ANSWER : NEVER);
        patient += steps > 0;
    }
    CHECK(patient <= 2 * 10000 / BACKOFF_PAUSE_MOST);

    waits(2 * BACKOFF_PAUSE_MOST, ANSWER);
    CHECK_EQ(waits(100, ANSWER), 100);
    return 0;
}
