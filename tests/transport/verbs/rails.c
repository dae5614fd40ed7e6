/* Which NICs of two PEs are paired, and what is published for it. */
#include "check.h"
#include "transport/verbs/rails.h"

/* ---- Published ---- */

static void there_and_back(void)
{
    unsigned char text[4 + RAILS_BYTES];
    struct rail_end end[NICS_MOST], got[NICS_MOST];

    for (int n = 0; n <= NICS_MOST; n++) {
        for (int i = 0; i < n; i++)
            end[i] = (struct rail_end){0x01020304u * (unsigned)(i + 1), (uint8_t)(250 + i % 6),
                                       (uint8_t)(i % 5), (uint8_t)(i % RAIL_KINDS)};
        const size_t bytes = rails_encode(text + 4, RAILS_BYTES, end, n);
        CHECK_EQ(bytes, RAILS_HEAD + n * RAILS_END + 1);
        CHECK_EQ(rails_encode(text + 4, bytes - 1, end, n), 0);
        CHECK_EQ(rails_decode(text, 4 + bytes, got), n); /* behind an address of another's */
        for (int i = 0; i < n; i++)
            CHECK(got[i].subnet == end[i].subnet && got[i].place == end[i].place &&
                  got[i].distance == end[i].distance && got[i].kind == end[i].kind);
        CHECK_EQ(rails_decode(text + 5, bytes - 1, got), -1);
        for (size_t at = 0; at < 5; at++) { /* another magic, another version */
            text[4 + at] ^= 1;
            CHECK_EQ(rails_decode(text, 4 + bytes, got), -1);
            text[4 + at] ^= 1;
        }
        if (n == 0)
            continue;
        text[4 + RAILS_HEAD + 5] = RAIL_KINDS << 4;
        CHECK_EQ(rails_decode(text, 4 + bytes, got), -1);
    }
    CHECK_EQ(rails_decode(text, 0, got), -1);
    memset(text, NICS_MOST + 1, sizeof text);
    CHECK_EQ(rails_decode(text, sizeof text, got), -1);
}

static void subnets(void)
{
    unsigned char a[16] = {[10] = 0xff, 0xff, 10, 0, 1, 1},
                  b[16] = {[10] = 0xff, 0xff, 10, 0, 1, 200};

    CHECK_EQ(rails_subnet(a, 120), rails_subnet(b, 120));
    CHECK(rails_subnet(a, 121) != rails_subnet(b, 121)); /* they differ in that bit */
    CHECK(rails_subnet(a, 120) != rails_subnet(b, 119)); /* as wide as another, it is another */
    b[14] = 2;
    CHECK(rails_subnet(a, 120) != rails_subnet(b, 120));
    CHECK(rails_subnet(a, 0) != 0);
}

/* ---- Pairs ---- */

/* NICs as "subnet.place.distance …", of Ethernet. */
static int ends(const char *text, struct rail_end *end)
{
    int n = 0, used;
    unsigned subnet, place, distance;

    for (; sscanf(text, "%u.%u.%u%n", &subnet, &place, &distance, &used) == 3; text += used)
        end[n++] = (struct rail_end){subnet, (uint8_t)place, (uint8_t)distance, RAIL_ETHERNET};
    return n;
}

/* On both sides, whichever of them is the first. */
static void pairs_are(const char *of, const char *and, const char *expected)
{
    struct rail_end a[NICS_MOST], b[NICS_MOST];
    struct rail here[RAILS_MOST], there[RAILS_MOST];
    const int n = ends(of, a), m = ends(and, b), rails = rails_pair(a, n, b, m, true, here);
    char text[100] = "";

    CHECK_EQ(rails_pair(b, m, a, n, false, there), rails);
    for (int i = 0; i < rails; i++) {
        CHECK(here[i].mine == there[i].theirs && here[i].theirs == there[i].mine);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d-%d", i ? " " : "",
                 here[i].mine, here[i].theirs);
    }
    CHECK_STR(text, expected);
}

static void pairs(void)
{
    /* all alike: in the order that both prefer, and those in the same place */
    pairs_are("0.0.0 0.1.0 0.2.0", "0.0.0 0.1.0 0.2.0", "0-0 1-1 2-2");
    pairs_are("0.0.0 0.1.0", "0.1.0 0.0.0", "0-1 1-0");
    pairs_are("0.0.0 0.1.0 0.2.0 0.3.0 0.4.0", "0.2.0 0.3.0 0.4.0 0.0.0 0.1.0", "2-0 0-3 3-1 1-4");
    /* near before the same place */
    pairs_are("0.0.0 0.1.2", "0.0.2 0.1.0", "0-1 1-0");
    /* of one subnet, and no others, however near */
    pairs_are("7.0.0 8.1.0", "8.0.0 7.1.0", "0-1 1-0");
    pairs_are("7.0.0 8.1.3", "8.0.0 9.1.0", "1-0");
    pairs_are("7.0.0 0.1.0", "8.0.0 7.1.3 0.2.0", "0-1");
    pairs_are("7.0.0 8.1.0", "9.0.0 6.1.0", "0-0 1-1"); /* routed, it seems */
    /* rails: PEs that are near to different ones meet on each, the nearest in sum first */
    pairs_are("1.0.0 2.1.1 3.2.3 4.3.3", "4.3.0 3.2.1 2.1.3 1.0.3", "0-3 3-0 1-2 2-1");
    /* no more than there are, and no more than may be */
    pairs_are("0.0.0", "0.0.0 0.1.0", "0-0");
    pairs_are("", "0.0.0", "");
    pairs_are("0.0.0 0.1.0 0.2.0 0.3.0 0.4.0 0.5.0 0.6.0 0.7.0",
              "0.0.0 0.1.0 0.2.0 0.3.0 0.4.0 0.5.0 0.6.0 0.7.0", "0-0 1-1 2-2 3-3");
}

static void kinds(void)
{
    const struct rail_end a[] = {{5, 0, 0, RAIL_ETHERNET}, {5, 1, 0, RAIL_INFINIBAND}};
    const struct rail_end b[] = {{5, 0, 0, RAIL_INFINIBAND}, {5, 1, 0, RAIL_IWARP}};
    struct rail rail[RAILS_MOST];

    CHECK_EQ(rails_pair(a, 2, b, 2, true, rail), 1);
    CHECK(rail[0].mine == 1 && rail[0].theirs == 0);
    CHECK_EQ(rails_pair(a, 1, b, 2, true, rail), 0);
}

int main(void)
{
    there_and_back();
    subnets();
    pairs();
    kinds();
    return 0;
}
