/* Settings: sizes, ranges, choices, other names, and what is said of mistakes. */
#include <stdlib.h>
#include <unistd.h>

#include "../check.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"

static int64_t size_of(const char *text)
{
    int64_t bytes = -1;

    return settings_parse_size(text, &bytes) ? bytes : -1;
}

static void test_sizes(void)
{
    static const char *const refused[] = {"",    " ",      "-1",   "+1", "0x10", "inf",      "nan",
                                          "12Q", "12 KB!", "1e30", "K",  "1..2", "9999999P", "1p3"};

    CHECK_EQ(size_of("0"), 0);
    CHECK_EQ(size_of("64"), 64);
    CHECK_EQ(size_of("64B"), 64);
    CHECK_EQ(size_of("16K"), 16384);
    CHECK_EQ(size_of("16k"), 16384);
    CHECK_EQ(size_of("2MiB"), 2 << 20);
    CHECK_EQ(size_of("2MB"), 2 << 20);
    CHECK_EQ(size_of("1.5G"), 3LL << 29);
    CHECK_EQ(size_of(".5K"), 512);
    CHECK_EQ(size_of(" 7M "), 7 << 20);
    CHECK_EQ(size_of("64T"), 64LL << 40);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (size_of(refused[i]) != -1)
            CHECK_FAIL("\"%s\" was taken for the size %lld", refused[i],
                       (long long)size_of(refused[i]));
    }
}

static void test_values(void)
{
    unsetenv("GSHMEM_INIT_TIMEOUT");
    CHECK_EQ(settings_load(), GSHMEM_OK);
    CHECK_EQ(settings_number(SETTING_INIT_TIMEOUT), 60);
    CHECK(!settings_source(SETTING_INIT_TIMEOUT));

    setenv("GSHMEM_INIT_TIMEOUT", "5", 1);
    setenv("GSHMEM_ON_ERROR", "Return", 1);
    setenv("SHMEM_SYMMETRIC_SIZE", "3M", 1);
    CHECK_EQ(settings_load(), GSHMEM_OK);
    CHECK_EQ(settings_number(SETTING_INIT_TIMEOUT), 5);
    CHECK_EQ(settings_number(SETTING_ON_ERROR), 1);
    CHECK_EQ(settings_number(SETTING_HEAP_SIZE), 3 << 20);
    CHECK_STR(settings_source(SETTING_HEAP_SIZE), "SHMEM_SYMMETRIC_SIZE");

    setenv("GSHMEM_HEAP_SIZE", "4M", 1); /* the variable's own name goes before its other names */
    CHECK_EQ(settings_load(), GSHMEM_OK);
    CHECK_EQ(settings_number(SETTING_HEAP_SIZE), 4 << 20);
    unsetenv("SHMEM_SYMMETRIC_SIZE");
    unsetenv("GSHMEM_HEAP_SIZE");
    unsetenv("GSHMEM_ON_ERROR");
    unsetenv("GSHMEM_INIT_TIMEOUT");
}

static void test_refused(void)
{
    static const struct {
        const char *variable, *value, *says;
    } bad[] = {
        {"GSHMEM_INIT_TIMEOUT", "0", "1..86400"},
        {"GSHMEM_INIT_TIMEOUT", "86401", "1..86400"},
        {"GSHMEM_INIT_TIMEOUT", "soon", "1..86400"},
        {"GSHMEM_INIT_TIMEOUT", "", "1..86400"},
        {"GSHMEM_HEAP_SIZE", "65T", "0..64T"},
        {"GSHMEM_HEAP_SIZE", "much", "512M"},
        {"GSHMEM_HEAP_SIZE", "-5M", "0..64T"},
        {"GSHMEM_SPIN_US", "-2", "-1..1000000"},
        {"GSHMEM_SPIN_US", "99999999999999999999", "-1..1000000"},
        {"GSHMEM_ON_ERROR", "panic", "abort|return"},
        {"GSHMEM_ON_ERROR", "abort|return", "abort|return"},
        {"GSHMEM_LOG", "war", "none|error|warn|info|debug"},
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        setenv(bad[i].variable, bad[i].value, 1);
        if (settings_load() != GSHMEM_ERR_ARGUMENT)
            CHECK_FAIL("%s=%s was taken", bad[i].variable, bad[i].value);
        CHECK_HAS(last_error_text(), bad[i].variable);
        CHECK_HAS(last_error_text(), bad[i].value);
        CHECK_HAS(last_error_text(), bad[i].says);
        unsetenv(bad[i].variable);
        CHECK_EQ(settings_load(), GSHMEM_OK);
    }
}

/* What settings_warn_unknown prints while `variable` is set. */
static const char *warning_of(const char *variable)
{
    static char text[4096];
    int ends[2], kept = dup(STDERR_FILENO);

    CHECK(kept >= 0 && pipe(ends) == 0);
    dup2(ends[1], STDERR_FILENO);
    setenv(variable, "1", 1);
    settings_warn_unknown();
    unsetenv(variable);
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(ends[1]);
    ssize_t n = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    CHECK(n >= 0);
    text[n] = 0;
    return text;
}

static void test_unknown(void)
{
    CHECK_HAS(warning_of("GSHMEM_HEAPSIZE"), "did you mean GSHMEM_HEAP_SIZE?");
    CHECK_HAS(warning_of("GSHMEM_LGO"), "did you mean GSHMEM_LOG?");
    CHECK_HAS(warning_of("GSHMEM_COFFEE_PLEASE"), "GSHMEM_COFFEE_PLEASE is not a setting");
    CHECK(!strstr(warning_of("GSHMEM_COFFEE_PLEASE"), "did you mean"));
    CHECK_STR(warning_of("GSHMEM_WATCHDOG"), "");
    CHECK_STR(warning_of("GSHMEM_TEST_ANYTHING"), "");
    CHECK_STR(warning_of("SHMEM_DEBUG"), "");
}

static void test_print(void)
{
    char *text;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    CHECK(to);
    setenv("GSHMEM_WATCHDOG", "9", 1);
    CHECK_EQ(settings_load(), GSHMEM_OK);
    settings_print(to);
    fclose(to);
    for (int s = 0; s < SETTING_COUNT; s++)
        CHECK_HAS(text, settings_variable((enum setting)s));
    CHECK_HAS(text, "(set by GSHMEM_WATCHDOG)");
    free(text);
}

int main(void)
{
    log_set_level(LOG_WARN);
    test_sizes();
    test_values();
    test_unknown(); /* before GSHMEM_LOG has been refused: its level stays as it was */
    test_refused();
    test_print();
    return 0;
}
