/* Ids of teams and decisions about them: what is encoded is decoded, and an id of another job, or one
 * with a wrong bit, is noticed. */
#include "../check.h"
#include "runtime/teams/unique_id.h"

enum { JOB = 0x1234567, PES = 1 << ID_PE_BITS };

static void test_id(struct id_name name)
{
    const uint64_t id = id_encode(name, JOB);
    struct id_name got = {0};

    CHECK(id != 0);
    CHECK(id_decode(id, JOB, PES, &got));
    CHECK_EQ(got.pe, name.pe);
    CHECK_EQ(got.record, name.record);
    CHECK_EQ(got.number, name.number);
    CHECK(!id_decode(id, JOB, name.pe, &got)); /* there is no such PE */
    CHECK(!id_decode(id, JOB + 1, PES, &got));
    for (int bit = 0; bit < 64; bit++)
        CHECK(!id_decode(id ^ (uint64_t)1 << bit, JOB, PES, &got));
}

static void test_decision(struct id_decision d)
{
    const struct id_decision got = id_decision_decode(id_decision_encode(d));

    CHECK_EQ(got.step, d.step);
    CHECK_EQ(got.decided, d.decided);
    CHECK_EQ(got.value, d.value);
}

static void test_search(struct id_search s)
{
    const struct id_search got = id_search_decode(id_search_encode(s));

    CHECK_EQ(got.range, s.range);
    CHECK_EQ(got.busy, s.busy);
    CHECK_EQ(got.tried, s.tried);
}

int main(void)
{
    struct id_name unused;

    for (int pe = 0; pe < PES; pe = 2 * pe + 1) {
        for (int record = 0; record < UNIQUE_ID_RECORDS; record++) {
            test_id((struct id_name){pe, record, 1});
            test_id((struct id_name){pe, record, (1u << ID_NUMBER_BITS) - 1});
        }
    }
    CHECK(!id_decode(0, JOB, PES, &unused));
    CHECK(!id_decode(~(uint64_t)0, JOB, PES, &unused));
    for (int decided = ID_UNDECIDED; decided <= ID_NO_MEMORY; decided++) {
        test_decision((struct id_decision){1, (uint8_t)decided, 0});
        test_decision((struct id_decision){0xffff, (uint8_t)decided, PES - 1});
        test_decision((struct id_decision){0x8000, (uint8_t)decided, 0x80000000u});
    }
    CHECK_EQ(id_decision_encode((struct id_decision){0, ID_UNDECIDED, 0}), 0);
    for (int range = 0; range < TEAM_RANGES; range++) {
        for (int busy = 0; busy < 2; busy++)
            test_search((struct id_search){range, busy, (UINT32_C(1) << TEAM_RANGES) - 1});
        test_search((struct id_search){range, false, UINT32_C(1) << range});
    }
    CHECK_EQ(id_record_bytes(1) % 64, 0);
    CHECK(id_record_bytes(1000) >= offsetof(struct id_record, seat) + 8000);
    return 0;
}
