/* The parsers of PMI-1: lines and the map of nodes. */
#include "bootstrap/pmi/line.h"
#include "bootstrap/pmi/mapping.h"

#include "check.h"

static void lines_are_taken_in_pieces(void)
{
    static const char text[] = "cmd=a x=1\ncmd=b\n\ncmd=";
    static char line[PMI_LINE_MAX + 1];
    static struct pmi_input in;
    static const char *const expected[] = {"cmd=a x=1", "cmd=b", ""};
    int n = 0;

    for (size_t i = 0; i < sizeof text - 1; i++) {
        in.bytes[in.used++] = text[i];
        if (pmi_take_line(&in, line) == PMI_LINE)
            CHECK_STR(line, expected[n++]);
    }
    CHECK_EQ(n, 3);
    CHECK_EQ(in.used, 4);
}

static void long_lines_end(void)
{
    static char line[PMI_LINE_MAX + 1];
    static struct pmi_input in;

    memset(in.bytes, 'x', sizeof in.bytes);
    in.used = PMI_LINE_MAX;
    CHECK_EQ(pmi_take_line(&in, line), PMI_MORE);
    in.used = PMI_LINE_MAX + 1;
    CHECK_EQ(pmi_take_line(&in, line), PMI_TOO_LONG);
    in.bytes[PMI_LINE_MAX] = '\n';
    CHECK_EQ(pmi_take_line(&in, line), PMI_LINE);
    CHECK_EQ(strlen(line), PMI_LINE_MAX);
    CHECK_EQ(in.used, 0);
}

static void values_are_found_by_whole_keys(void)
{
    char value[8];
    long number;

    CHECK(pmi_line_value("cmd=get rc=0  key=abc", "key", value, sizeof value));
    CHECK_STR(value, "abc");
    CHECK(!pmi_line_value("cmd=get okey=abc key", "key", value, sizeof value));
    CHECK_STR(value, "");
    CHECK(pmi_line_value("key= rc=1", "key", value, sizeof value));
    CHECK_STR(value, "");
    CHECK(pmi_line_value("key=1234567", "key", value, sizeof value));
    CHECK(!pmi_line_value("key=12345678", "key", value, sizeof value));
    CHECK(pmi_line_value("key=a=b", "key", value, sizeof value));
    CHECK_STR(value, "a=b");
    CHECK(pmi_line_number("rc=-1", "rc", -1, 0, &number) && number == -1);
    CHECK(!pmi_line_number("rc=2", "rc", -1, 1, &number));
    CHECK(!pmi_line_number("rc=1x", "rc", -1, 1, &number));
    CHECK(!pmi_line_number("rc=+1", "rc", -1, 1, &number));
    CHECK(!pmi_line_number("rc=", "rc", -1, 1, &number));
    CHECK(!pmi_number("", 0, 1, &number));
    CHECK(!pmi_number(" 1", 0, 1, &number));
    CHECK(!pmi_number("99999999999999999999", 0, 1, &number));
}

static void check_mapping(const char *text, int n, const int *expected)
{
    int number[16];

    if (!pmi_mapping_parse(text, n, number))
        CHECK_FAIL("\"%s\" is refused", text);
    for (int pe = 0; pe < n; pe++) {
        if (number[pe] != expected[pe])
            CHECK_FAIL("\"%s\": PE %d on %d, expected %d", text, pe, number[pe], expected[pe]);
    }
}

static void hosts_are_dealt(void)
{
    check_mapping("(vector,(0,1,4))", 4, (int[]){0, 0, 0, 0});
    check_mapping("(vector,(0,2,2))", 4, (int[]){0, 0, 1, 1});
    check_mapping("(vector,(0,2,1))", 5, (int[]){0, 1, 0, 1, 0});
    check_mapping("(vector,(0,1,2),(1,1,1))", 3, (int[]){0, 0, 1});
    check_mapping("(vector,(3,2,1),(1,1,2))", 6, (int[]){3, 4, 1, 1, 3, 4});
    check_mapping("(vector,(0,1,16))", 2, (int[]){0, 0});
    check_mapping("(vector,(0,0,3),(7,1,1))", 2, (int[]){7, 7});
}

static void bad_maps_are_refused(void)
{
    static const char *const bad[] = {
        "",
        "(",
        "(vector)",
        "(vector,)",
        "(vector,(0,1,2)",
        "(vector,(0,1,2)))",
        "(vector,(0,1))",
        "(vector,(0,1,2,3))",
        "(vector,(0,1,-1))",
        "(vector,(0,0,0))",
        "(vector,(0,1,0))",
        "(vector, (0,1,2))",
        "(vector,(0;1,4))",
        "(vector,(0,1,4;)",
        "(vector,(0,1,2),)",
        "(vector,(0,1,2);)",
        "(vector,(1048576,1,1))",
        "(vector,(1,1048576,1))",
        "(vector,(99999999999999999999,1,1))",
        "(vector,(0,1,2)) ",
        "(vector,(0,1,16777217))",
        "(scalar,(0,1,2))",
    };
    int number[16];

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (pmi_mapping_parse(bad[i], 4, number))
            CHECK_FAIL("\"%s\" is taken", bad[i]);
    }
}

int main(void)
{
    lines_are_taken_in_pieces();
    long_lines_end();
    values_are_found_by_whole_keys();
    hosts_are_dealt();
    bad_maps_are_refused();
    return 0;
}
