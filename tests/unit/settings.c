/* Settings: sizes, ranges, choices, other names, and what is said of mistakes. */
#define _GNU_SOURCE
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../check.h"
#include "runtime/base/log.h"
#include "runtime/base/nvshmem_settings.h"
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

/* One whose decimal point is a comma: the system's, or one made here, as most machines have English alone. False where
 * it can not even be made. */
static bool have_comma_locale(void)
{
    static const char *const commas[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "fr_FR", "ru_RU.UTF-8", "pt_BR.UTF-8"};
    char folder[] = "/tmp/gshmem-locale-XXXXXX", command[200];
    bool made;

    for (size_t i = 0; i < sizeof commas / sizeof commas[0]; i++)
        if (setlocale(LC_ALL, commas[i]))
            return true;
    CHECK(mkdtemp(folder));
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", folder);
    made = system(command) == 0 && setenv("LOCPATH", folder, 1) == 0 && setlocale(LC_ALL, "de_DE.UTF-8");
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK_EQ(system(command), 0);
    unsetenv("LOCPATH");
    return made;
}

/* A decimal point is one in every locale; the shell of a German user says LC_ALL=de_DE. */
static void test_locale(void)
{
    if (!have_comma_locale())
        printf("no locale with a decimal comma: not tried\n");
    CHECK_EQ(size_of("1.5G"), 3LL << 29);
    CHECK_EQ(size_of("1,5G"), -1);
    setlocale(LC_ALL, "C");
}

static int64_t number_of(enum setting s, const char *text)
{
    setenv(settings_variable(s), text, 1);
    int64_t number = settings_load() ? -100 : settings_number(s);
    unsetenv(settings_variable(s));
    return number;
}

static void test_switches(void)
{
    static const char *const on[] = {"on", "ON", "1", "yes", "true", "True"};
    static const char *const off[] = {"off", "OFF", "0", "no", "false"};

    for (size_t i = 0; i < sizeof on / sizeof on[0]; i++) {
        CHECK_EQ(number_of(SETTING_NVTX, on[i]), 1);
        CHECK_EQ(number_of(SETTING_MAPPED, on[i]), 1);
        CHECK_EQ(number_of(SETTING_HUGE_PAGES, on[i]), 0); /* auto|off */
    }
    for (size_t i = 0; i < sizeof off / sizeof off[0]; i++) {
        CHECK_EQ(number_of(SETTING_NVTX, off[i]), 0);
        CHECK_EQ(number_of(SETTING_MAPPED, off[i]), 0);
        CHECK_EQ(number_of(SETTING_HUGE_PAGES, off[i]), 1);
    }
    CHECK_EQ(number_of(SETTING_NVTX, "2"), -100);
    CHECK_EQ(number_of(SETTING_LOG, "1"), -100); /* no switch */
    CHECK_EQ(number_of(SETTING_SPIN_US, "auto"), -1);
    CHECK_EQ(number_of(SETTING_SPIN_US, "-1"), -1);
    CHECK_EQ(number_of(SETTING_HEAP_MAX, "AUTO"), 0);
    CHECK_EQ(number_of(SETTING_HEAP_MAX, "2M"), 2 << 20);
    setenv("GSHMEM_DEVICE", "CUDA", 1);
    CHECK_EQ(settings_load(), GSHMEM_OK);
    CHECK_STR(settings_string(SETTING_DEVICE), "cuda");
    unsetenv("GSHMEM_DEVICE");
    CHECK_EQ(settings_load(), GSHMEM_OK);
}

/* A bad value leaves what is in force, which is the default at first. */
static void test_bad_one_at_first(void)
{
    setenv("GSHMEM_LOG", "loud", 1);
    CHECK_EQ(settings_load(), GSHMEM_ERR_ARGUMENT);
    const int64_t at_first = settings_number(SETTING_LOG);
    unsetenv("GSHMEM_LOG");
    CHECK_EQ(settings_load(), GSHMEM_OK);
    CHECK_EQ(at_first, settings_number(SETTING_LOG));
}

/* One bad value hides no other: not another bad one, not what the good ones are. */
static void test_all_are_read(void)
{
    setenv("GSHMEM_LOG", "loud", 1);
    setenv("GSHMEM_WATCHDOG", "7", 1);
    setenv("GSHMEM_MAPPED", "perhaps", 1);
    CHECK_EQ(settings_load(), GSHMEM_ERR_ARGUMENT);
    CHECK_EQ(settings_number(SETTING_WATCHDOG), 7);
    unsetenv("GSHMEM_LOG");
    unsetenv("GSHMEM_WATCHDOG");
    CHECK_EQ(settings_load(), GSHMEM_ERR_ARGUMENT); /* the other */
    CHECK_HAS(last_error_text(), "GSHMEM_MAPPED=perhaps: expected off|on");
    unsetenv("GSHMEM_MAPPED");
    CHECK_EQ(settings_load(), GSHMEM_OK);
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

/* What is printed of variables that are no settings while `variable` is set. */
static const char *warning_of(const char *variable)
{
    static char text[4096];
    int ends[2], kept = dup(STDERR_FILENO);

    CHECK(kept >= 0 && pipe(ends) == 0);
    dup2(ends[1], STDERR_FILENO);
    setenv(variable, "1", 1);
    settings_warn_unknown();
    nvshmem_settings_warn();
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

/* ---- NVSHMEM's variables ---- */

/* What each of its values makes of the setting, as settings_string tells it; NULL: it is refused. */
static const struct nvshmem_value {
    const char *variable, *value;
    enum setting setting;
    const char *expected;
} nvshmem_values[] = {
    {"NVSHMEM_DEBUG", "WARN", SETTING_LOG, "warn"},
    {"NVSHMEM_DEBUG", "INFO", SETTING_LOG, "info"},
    {"NVSHMEM_DEBUG", "TRACE", SETTING_LOG, "debug"},
    {"NVSHMEM_DEBUG", "ABORT", SETTING_LOG, "info"},
    {"NVSHMEM_DEBUG", "VERSION", SETTING_LOG, "warn"},
    {"NVSHMEM_DEBUG", "VERSION", SETTING_INFO, "version"},
    {"NVSHMEM_DEBUG", "WARN", SETTING_INFO, "off"},
    {"NVSHMEM_DEBUG", "LOUD", SETTING_LOG, NULL},
    {"NVSHMEM_DEBUG_FILE", "/dev/null", SETTING_LOG_FILE, "/dev/null"},
    {"NVSHMEM_DEBUG_FILE", "/nowhere/%h", SETTING_LOG_FILE, NULL},
    {"NVSHMEM_DEBUG_SUBSYS", "INIT,COLL", SETTING_LOG_SUBSYSTEM, "INIT,COLL"},
    {"NVSHMEM_DEBUG_SUBSYS", "^P2P", SETTING_LOG_SUBSYSTEM, "^P2P"},
    {"NVSHMEM_DEBUG_SUBSYS", "GRAPH", SETTING_LOG_SUBSYSTEM, NULL},
    {"NVSHMEM_INFO", "1", SETTING_INFO, "settings"},
    {"NVSHMEM_INFO", "false", SETTING_INFO, "off"},
    {"NVSHMEM_VERSION", "y", SETTING_INFO, "version"},
    {"NVSHMEM_VERSION", "0", SETTING_INFO, "off"},
    {"NVSHMEM_BOOTSTRAP", "PMI", SETTING_BOOTSTRAP, "auto"},
    {"NVSHMEM_BOOTSTRAP", "MPI", SETTING_BOOTSTRAP, "auto"},
    {"NVSHMEM_BOOTSTRAP", "UID", SETTING_BOOTSTRAP, "uid"},
    {"NVSHMEM_BOOTSTRAP", "SHMEM", SETTING_BOOTSTRAP, NULL},
    {"NVSHMEM_BOOTSTRAP", "plugin", SETTING_BOOTSTRAP, NULL},
    {"NVSHMEM_BOOTSTRAP_PMI", "PMI", SETTING_BOOTSTRAP, "pmi"},
    {"NVSHMEM_BOOTSTRAP_PMI", "PMI-2", SETTING_BOOTSTRAP, "pmi"},
    {"NVSHMEM_BOOTSTRAP_PMI", "PMIX", SETTING_BOOTSTRAP, "pmix"},
    {"NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "eth", SETTING_UID_IF, "eth"},
    {"NVSHMEM_SYMMETRIC_SIZE", "3M", SETTING_HEAP_SIZE, "3M"},
    {"NVSHMEM_SYMMETRIC_SIZE", "much", SETTING_HEAP_SIZE, NULL},
    {"NVSHMEM_REMOTE_TRANSPORT", "ibrc", SETTING_TRANSPORT, "verbs"},
    {"NVSHMEM_REMOTE_TRANSPORT", "ucx", SETTING_TRANSPORT, NULL},
    {"NVSHMEM_REMOTE_TRANSPORT", "libfabric", SETTING_TRANSPORT, NULL},
    {"NVSHMEM_REMOTE_TRANSPORT", "none", SETTING_TRANSPORT, NULL},
    {"NVSHMEM_REMOTE_TRANSPORT", "ib", SETTING_TRANSPORT, NULL}, /* no more than a beginning */
    {"NVSHMEM_HCA_LIST", "^mlx5_0", SETTING_IB_HCA, "^mlx5_0"},
    {"NVSHMEM_HCA_PE_MAPPING", "mlx5_0:1:2", SETTING_IB_HCA_BY_PE, "mlx5_0:1:2"},
    {"NVSHMEM_IB_GID_INDEX", "3", SETTING_IB_GID_INDEX, "3"},
    {"NVSHMEM_IB_SL", "3", SETTING_IB_SL, "3"},
    {"NVSHMEM_IB_SL", "16", SETTING_IB_SL, NULL},
    {"NVSHMEM_IB_TRAFFIC_CLASS", "104", SETTING_IB_TRAFFIC_CLASS, "104"},
    {"NVSHMEM_IB_PKEY_INDEX", "1", SETTING_IB_PKEY_INDEX, "1"},
    {"NVSHMEM_IB_TIMEOUT", "20", SETTING_IB_TIMEOUT, "20"},
    {"NVSHMEM_IB_DISABLE_DMABUF", "1", SETTING_IB_GPU, "peermem"},
    {"NVSHMEM_IB_DISABLE_DMABUF", "0", SETTING_IB_GPU, "auto"},
    {"NVSHMEM_IB_NUM_RC_PER_DEVICE", "2", SETTING_IB_QP_PER_PEER, "2"},
    {"NVSHMEM_IB_RETRY_CNT", "7", SETTING_IB_RETRY, "7"},
    {"NVSHMEM_DISABLE_P2P", "1", SETTING_MAPPED, "off"},
    {"NVSHMEM_DISABLE_P2P", "True", SETTING_MAPPED, "off"},
    {"NVSHMEM_DISABLE_P2P", "0", SETTING_MAPPED, "on"},
    {"NVSHMEM_DISABLE_P2P", "2", SETTING_MAPPED, NULL},
    {"NVSHMEM_DISABLE_CUDA_VMM", "1", SETTING_CUDA_SHARE, "ipc"},
    {"NVSHMEM_DISABLE_CUDA_VMM", "0", SETTING_CUDA_SHARE, "auto"},
    {"NVSHMEM_CUMEM_HANDLE_TYPE", "FILE_DESCRIPTOR", SETTING_CUDA_SHARE, "fd"},
    {"NVSHMEM_CUMEM_HANDLE_TYPE", "FABRIC", SETTING_CUDA_SHARE, "fabric"},
    {"NVSHMEM_DISABLE_NVLS", "1", SETTING_CUDA_MULTICAST, "off"},
    {"NVSHMEM_DISABLE_NVLS", "0", SETTING_CUDA_MULTICAST, "auto"},
    {"NVSHMEM_DISABLE_MNNVL", "1", SETTING_CUDA_DOMAIN, "off"},
    {"NVSHMEM_NVTX", "common", SETTING_NVTX, "on"},
    {"NVSHMEM_NVTX", "off", SETTING_NVTX, "off"},
    {"NVSHMEM_NVTX", "alloc,launch", SETTING_NVTX, NULL},
};

static void test_nvshmem_value(const struct nvshmem_value *v)
{
    setenv(v->variable, v->value, 1);
    if (settings_load() != (v->expected ? GSHMEM_OK : GSHMEM_ERR_ARGUMENT))
        CHECK_FAIL("%s=%s was %s", v->variable, v->value, v->expected ? "refused" : "taken");
    if (v->expected)
        CHECK_STR(settings_string(v->setting), v->expected);
    else
        CHECK_HAS(last_error_text(), v->value);
    unsetenv(v->variable);
    CHECK_EQ(settings_load(), GSHMEM_OK);
}

static void test_nvshmem(void)
{
    enum { N = sizeof nvshmem_values / sizeof nvshmem_values[0] };
    char *table, *line, *rest;
    size_t size;
    FILE *to = open_memstream(&table, &size);

    for (int i = 0; i < N; i++)
        test_nvshmem_value(&nvshmem_values[i]);

    /* those of the table are the ones that were tried */
    CHECK(to);
    nvshmem_settings_print(to);
    fclose(to);
    int tried = 0, rows = 0;
    for (line = strtok_r(table, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, "| `NVSHMEM_", 11) != 0)
            continue;
        rows++;
        for (int i = 0; i < N; i++) {
            const size_t n = strlen(nvshmem_values[i].variable);
            if (strncmp(line + 3, nvshmem_values[i].variable, n) == 0 && line[3 + n] == '`') {
                tried++;
                break;
            }
        }
    }
    free(table);
    CHECK(rows > 20);
    CHECK_EQ(tried, rows);
}

/* Of two of NVSHMEM's variables of one setting, and of one of them and GSHMEM's own. */
static void test_nvshmem_order(void)
{
    setenv("NVSHMEM_BOOTSTRAP_PMI", "PMIX", 1);
    setenv("NVSHMEM_BOOTSTRAP", "PMI", 1);
    CHECK_EQ(settings_load(), GSHMEM_OK);
    CHECK_STR(settings_string(SETTING_BOOTSTRAP), "pmix");
    CHECK_STR(settings_source(SETTING_BOOTSTRAP), "NVSHMEM_BOOTSTRAP_PMI");
    setenv("NVSHMEM_BOOTSTRAP", "UID", 1);
    CHECK_EQ(settings_load(), GSHMEM_OK);
    CHECK_STR(settings_string(SETTING_BOOTSTRAP), "uid");
    setenv("NVSHMEM_BOOTSTRAP", "SHMEM", 1);
    setenv("GSHMEM_BOOTSTRAP", "single", 1);
    CHECK_EQ(settings_load(), GSHMEM_OK);
    CHECK_STR(settings_string(SETTING_BOOTSTRAP), "single");
    unsetenv("GSHMEM_BOOTSTRAP");
    CHECK_EQ(settings_load(), GSHMEM_ERR_ARGUMENT);
    CHECK_HAS(last_error_text(), "NVSHMEM_BOOTSTRAP=SHMEM: GSHMEM has nothing that means the same; "
                                 "it understands pmi, mpi, uid; unset it, or set GSHMEM_BOOTSTRAP");
    unsetenv("NVSHMEM_BOOTSTRAP");
    unsetenv("NVSHMEM_BOOTSTRAP_PMI");
    CHECK_EQ(settings_load(), GSHMEM_OK);
}

static void test_nvshmem_alone(void)
{
    CHECK_STR(warning_of("NVSHMEM_PREFIX"), ""); /* of its build */
    CHECK_STR(warning_of("NVSHMEM_DISABLE_NVLS"), "");
    CHECK_HAS(warning_of("NVSHMEM_QP_DEPTH"), "NVSHMEM_QP_DEPTH: it has no counterpart in GSHMEM");
    setenv("NVSHMEM_IBGDA_NUM_DCI", "3", 1);
    CHECK_HAS(warning_of("NVSHMEM_MAX_TEAMS"),
              "warning: NVSHMEM_IBGDA_NUM_DCI, NVSHMEM_MAX_TEAMS: they have no counterpart");
    unsetenv("NVSHMEM_IBGDA_NUM_DCI");
}

static void test_look(void)
{
    char text[20];

    CHECK(settings_look(SETTING_UID_IF, text, sizeof text));
    CHECK_STR(text, "");
    setenv("NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "eth", 1);
    CHECK(settings_look(SETTING_UID_IF, text, sizeof text));
    CHECK_STR(text, "eth");
    CHECK_STR(settings_string(SETTING_UID_IF), ""); /* as it was loaded */
    unsetenv("NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME");
}

static const char *automatic(enum setting s, char *text, size_t size)
{
    if (s == SETTING_HOST_THREADS)
        snprintf(text, size, "here: 12");
    return text;
}

static void test_pattern(void)
{
    FILE *to = fopen("/dev/null", "w");

    CHECK(to);
    CHECK_EQ(settings_print(to, "gshmem_nvtx", automatic), 1);
    CHECK_EQ(settings_print(to, "sma_symmetric", automatic), 1); /* another name */
    CHECK_EQ(settings_print(to, "IB*GPU", automatic), 1);
    CHECK(settings_print(to, "heap", automatic) >= 3);
    CHECK_EQ(settings_print(to, "coffee", automatic), 0);
    fclose(to);
}

static void test_print(void)
{
    char *text;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    CHECK(to);
    setenv("GSHMEM_WATCHDOG", "9", 1);
    CHECK_EQ(settings_load(), GSHMEM_OK);
    setenv("GSHMEM_NVTX", "yes", 1);
    setenv("GSHMEM_HOST_THREADS", "0", 1);
    CHECK_EQ(settings_load(), GSHMEM_OK);
    CHECK_EQ(settings_print(to, NULL, automatic), SETTING_COUNT);
    unsetenv("GSHMEM_HOST_THREADS");
    unsetenv("GSHMEM_NVTX");
    fclose(to);
    for (int s = 0; s < SETTING_COUNT; s++)
        CHECK_HAS(text, settings_variable((enum setting)s));
    CHECK_HAS(text, "(set by GSHMEM_WATCHDOG)");
    CHECK_HAS(text, "GSHMEM_NVTX            on ");
    CHECK_HAS(text, "GSHMEM_HOST_THREADS    auto (here: 12) ");
    CHECK_HAS(text, "GSHMEM_PROXY_CPU       auto ");
    free(text);
}

/* A module asks by name, and its table may have other rows, or the same ones elsewhere. */
static void test_modules(void)
{
    char name[40] = "";

    setenv("GSHMEM_IB_SL", "3", 1);
    setenv("GSHMEM_IB_ORDER", "STRICT", 1);
    CHECK_EQ(settings_load(), GSHMEM_OK);
    CHECK_EQ(settings_number_of(SETTING_NAME(IB_SL)), 3);
    CHECK_STR(settings_string_of(SETTING_NAME(IB_ORDER)), "strict");
    CHECK_EQ(settings_number_of(SETTING_NAME(IB_ORDER)), CHOICE_IB_ORDER_STRICT);
    unsetenv("GSHMEM_IB_SL");
    unsetenv("GSHMEM_IB_ORDER");
    CHECK_EQ(settings_load(), GSHMEM_OK);

    CHECK(!settings_find_other(settings_layout, name, sizeof name));
    CHECK(!settings_find_other("", name, sizeof name));
    CHECK(
        !settings_find_other("NVTX CHOICE (OFF, ON)\nIB_SL COUNT \"0..15\"\n", name, sizeof name));
    CHECK(settings_find_other("NVTX CHOICE (OFF, ON)\nIB_SL COUNT \"0..1\"\n", name, sizeof name));
    CHECK_STR(name, "IB_SL");
    CHECK(settings_find_other("NVTX CHOICE (OFF)\n", name, sizeof name));
    CHECK_STR(name, "NVTX");
    CHECK(settings_find_other("COFFEE CHOICE (OFF, ON)\n", name, sizeof name));
    CHECK_STR(name, "COFFEE");
    CHECK(settings_find_other(settings_layout + 1, name, sizeof name));
    CHECK_STR(name, "OG");
    CHECK(settings_find_other("NVTX CHOICE (OFF, O", name, sizeof name)); /* not all of the row */
    CHECK_STR(name, "NVTX");
}

int main(void)
{
    test_bad_one_at_first();
    log_set_level(LOG_WARN);
    test_sizes();
    test_values();
    test_unknown(); /* before GSHMEM_LOG has been refused: its level stays as it was */
    test_refused();
    test_locale();
    test_switches();
    test_all_are_read();
    test_pattern();
    test_print();
    test_modules();
    test_nvshmem();
    test_nvshmem_order();
    test_nvshmem_alone();
    test_look();
    return 0;
}
