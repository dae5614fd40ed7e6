/* When the proxy drives, spins and sleeps, with the test as the clock. */
#include "runtime/network/proxy_pace.h"
#include "../check.h"

static void test_idle(void)
{
    struct pace p = {.idle_ns = 1000};

    CHECK_EQ(pace_after(&p, 100000, true), PACE_SPIN);
    CHECK_EQ(pace_after(&p, 100500, false), PACE_SPIN);
    CHECK_EQ(pace_after(&p, 100999, false), PACE_SPIN);
    CHECK_EQ(pace_after(&p, 101000, false), PACE_SLEEP);
    CHECK_EQ(pace_after(&p, 101001, false), PACE_SLEEP);
    CHECK_EQ(pace_after(&p, 102000, true), PACE_SPIN);
    p.oversubscribed = true;
    CHECK_EQ(pace_after(&p, 102500, false), PACE_YIELD);
    CHECK_EQ(pace_after(&p, 103000, false), PACE_SLEEP);
}

/* Without a time to spin it looks once more after work, since there may be more. */
static void test_no_spin(void)
{
    struct pace p = {.idle_ns = 0};

    CHECK_EQ(pace_after(&p, 7, true), PACE_SPIN);
    CHECK_EQ(pace_after(&p, 7, false), PACE_SLEEP);
}

/* Short sleeps at first, since work often follows work; long ones in the end. */
static void test_sleep(void)
{
    struct pace p = {.idle_ns = 0};
    uint64_t now = 1, slept = 0;

    for (int again = 0; again < 2; again++) {
        pace_after(&p, now, true);
        CHECK_EQ(pace_after(&p, now, false), PACE_SLEEP);
        CHECK_EQ(p.sleep_ns, PACE_SLEEP_NS);
        for (int i = 0; i < 10; i++) {
            slept = p.sleep_ns;
            now += slept;
            CHECK_EQ(pace_after(&p, now, false), PACE_SLEEP);
            CHECK(p.sleep_ns >= slept && p.sleep_ns <= PACE_LOOK_NS);
        }
        CHECK_EQ(p.sleep_ns, PACE_LOOK_NS);
    }
}

static void test_aside(void)
{
    struct pace p = {.bounded = true};

    CHECK_EQ(pace_before(&p, 5 + PACE_LATELY_NS, 5), PACE_DRIVE);
    for (int i = 0; i < 9; i++) {
        CHECK_EQ(pace_before(&p, 4 + PACE_LATELY_NS, 5), PACE_STAND_ASIDE);
        CHECK_EQ(p.aside_ns, PACE_ASIDE_NS);
    }
    CHECK_EQ(pace_before(&p, 5, 6), PACE_STAND_ASIDE); /* it drove after the clock was read */
}

/* Without kernels it may look away longer and longer, until it has driven itself. */
static void test_long_aside(void)
{
    struct pace p = {.bounded = false};

    for (uint64_t expected = PACE_ASIDE_NS; expected < PACE_ASIDE_MOST_NS; expected *= 2) {
        CHECK_EQ(pace_before(&p, 5, 5), PACE_STAND_ASIDE);
        CHECK_EQ(p.aside_ns, expected);
    }
    CHECK_EQ(pace_before(&p, 5, 5), PACE_STAND_ASIDE);
    CHECK_EQ(p.aside_ns, PACE_ASIDE_MOST_NS);
    CHECK_EQ(pace_before(&p, 5 + PACE_LATELY_NS, 5), PACE_DRIVE);
    CHECK_EQ(pace_before(&p, 5, 5), PACE_STAND_ASIDE);
    CHECK_EQ(p.aside_ns, PACE_ASIDE_NS);
}

static void test_look(void)
{
    struct pace p = {.looked = 0};
    int looks = 0;

    for (uint64_t now = PACE_LOOK_NS; now < 11u * PACE_LOOK_NS; now += PACE_LOOK_NS / 100)
        looks += pace_look(&p, now);
    CHECK_EQ(looks, 10);
}

int main(void)
{
    test_idle();
    test_no_spin();
    test_sleep();
    test_aside();
    test_long_aside();
    test_look();
    return 0;
}
