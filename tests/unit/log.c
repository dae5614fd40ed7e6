/* Statuses, and the lines that explain them. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "../check.h"
#include "runtime/base/log.h"
#include "runtime/base/log_file.h"

static int ends[2], kept;

static void capture(void)
{
    kept = dup(STDERR_FILENO);
    CHECK(kept >= 0 && pipe(ends) == 0);
    dup2(ends[1], STDERR_FILENO);
}

static const char *captured(void)
{
    static char text[8192];

    dup2(kept, STDERR_FILENO);
    close(kept);
    close(ends[1]);
    ssize_t n = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    CHECK(n >= 0);
    text[n] = 0;
    return text;
}

static void test_line(void)
{
    const char *text;

    capture();
    errno = EINTR;
    CHECK_EQ(fail(GSHMEM_ERR_TIMEOUT, "waited %d s for PE %d", 3, 7), GSHMEM_ERR_TIMEOUT);
    CHECK_EQ(errno, EINTR);
    text = captured();
    CHECK_HAS(text, "gshmem[");
    CHECK_HAS(text, "] error: waited 3 s for PE 7\n");
    CHECK_EQ(last_error_status(), GSHMEM_ERR_TIMEOUT);
    CHECK_STR(last_error_text(), "waited 3 s for PE 7");

    log_identify(12);
    capture();
    log_warn("w");
    CHECK_HAS(captured(), "gshmem[12@");
    log_identify(-1);
}

static void test_levels(void)
{
    log_set_level(LOG_WARN);
    capture();
    log_info("not said");
    log_debug("not said");
    CHECK_STR(captured(), "");
    log_set_level(LOG_NONE);
    capture();
    CHECK_EQ(fail(GSHMEM_ERR_MEMORY, "kept, not said"), GSHMEM_ERR_MEMORY);
    CHECK_STR(captured(), "");
    CHECK_STR(last_error_text(), "kept, not said");
    log_set_level(LOG_DEBUG);
    capture();
    log_debug("said");
    CHECK_HAS(captured(), "debug: said\n");
    log_set_level(LOG_WARN);
}

/* However long the text, one line that ends. */
static void test_long(void)
{
    char big[5000];

    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = 0;
    capture();
    fail(GSHMEM_ERR_ARGUMENT, "%s", big);
    const char *text = captured();
    size_t n = strlen(text);
    CHECK(n > 500 && n < 1300);
    CHECK_EQ(text[n - 1], '\n');
    CHECK(strchr(text, '\n') == text + n - 1);
}

/* However long the host's name. */
static void test_host(void)
{
    char name[65], expected[100];

    for (size_t n = 62; n <= 64 && unshare(CLONE_NEWUTS) == 0; n++) { /* which takes root */
        memset(name, 'h', n);
        name[n] = 0;
        CHECK_EQ(sethostname(name, n), 0);
        capture();
        fail(GSHMEM_ERR_ARGUMENT, "text");
        snprintf(expected, sizeof expected, "[%s] error: text\n", name);
        CHECK_HAS(captured(), expected);
    }
}

static void *other_thread(void *nothing)
{
    CHECK_EQ(last_error_status(), GSHMEM_OK);
    log_set_level(LOG_NONE);
    fail(GSHMEM_ERR_DEVICE, "theirs");
    return nothing;
}

static void test_threads(void)
{
    pthread_t thread;

    log_set_level(LOG_NONE);
    fail(GSHMEM_ERR_STATE, "mine");
    CHECK_EQ(pthread_create(&thread, NULL, other_thread, NULL), 0);
    pthread_join(thread, NULL);
    CHECK_EQ(last_error_status(), GSHMEM_ERR_STATE);
    CHECK_STR(last_error_text(), "mine");
}

/* What a file has, which is removed then. */
static const char *content(const char *path)
{
    static char text[8192];
    FILE *f = fopen(path, "r");

    CHECK(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    CHECK_EQ(unlink(path), 0);
    return text;
}

/* All lines are in the file; stderr has warnings and errors, too. */
static void test_file(void)
{
    const char *temporary = getenv("TMPDIR");
    char folder[200], name[300], path[400], host[65] = "";

    snprintf(folder, sizeof folder, "%s/log-XXXXXX", temporary ? temporary : "/tmp");
    CHECK(mkdtemp(folder));
    gethostname(host, sizeof host);
    snprintf(name, sizeof name, "%s/a%%%%%%h.%%p", folder);
    snprintf(path, sizeof path, "%s/a%%%s.%ld", folder, host, (long)getpid());
    log_set_level(LOG_INFO);
    CHECK_EQ(log_file_set(name, "THE_FILE", "", "THE_SUBSYSTEMS"), GSHMEM_OK);
    capture();
    log_info("one");
    log_warn("two");
    const char *text = captured();
    CHECK(!strstr(text, "one"));
    CHECK_HAS(text, "warning: two\n");
    CHECK_EQ(log_file_set(name, "THE_FILE", "", "THE_SUBSYSTEMS"), GSHMEM_OK); /* is added to */
    CHECK_EQ(log_file_set("/nowhere/log", "THE_FILE", "", "THE_SUBSYSTEMS"), GSHMEM_ERR_ARGUMENT);
    CHECK_HAS(last_error_text(), "cannot open /nowhere/log: No such file");
    CHECK_EQ(log_file_set("/tmp/%x", "THE_FILE", "", "THE_SUBSYSTEMS"), GSHMEM_ERR_ARGUMENT);
    CHECK_HAS(last_error_text(), "THE_FILE=/tmp/%x: expected");
    log_info("three"); /* goes where it went before the mistakes */
    CHECK_EQ(log_file_set("", "THE_FILE", "", "THE_SUBSYSTEMS"), GSHMEM_OK);
    capture();
    log_info("four");
    CHECK_HAS(captured(), "info: four\n");
    text = content(path);
    CHECK_HAS(text, "info: one\n");
    CHECK_HAS(text, "warning: two\n");
    CHECK_HAS(text, "info: three\n");
    CHECK(!strstr(text, "four"));
    CHECK_EQ(rmdir(folder), 0);
    log_set_level(LOG_WARN);
}

/* Whether a line of a source file is written, for a list of subsystems. */
static bool is_said(const char *list, const char *source)
{
    CHECK_EQ(log_file_set("", "THE_FILE", list, "THE_SUBSYSTEMS"), GSHMEM_OK);
    capture();
    log_line_of(source, LOG_INFO, "line");
    return *captured();
}

static void test_subsystems(void)
{
    static const struct {
        const char *source, *subsystem;
    } of[] = {
        {"../runtime/start.c", "init"},        {"../runtime/job/error.c", "init"},
        {"../bootstrap/pmi/pmi.c", "bootstrap"}, {"../runtime/node/nics.c", "topo"},
        {"../runtime/memory/heap.c", "mem"},   {"../runtime/operations/malloc.c", "mem"},
        {"../runtime/memory/domain.c", "p2p"}, {"../runtime/proxy/kernels.c", "proxy"},
        {"../runtime/teams/team.c", "coll"},   {"../runtime/collectives/table.c", "coll"},
        {"../runtime/network/life.c", "transport"}, {"../transport/tcp/tcp.c", "transport"},
        {"../device/cuda/cuda.c", "device"},   {"../runtime/base/log.c", "util"},
        {"../runtime/where/symbols.c", "util"},
    };
    static const char *const names[] = {"init", "bootstrap", "topo",      "mem",    "p2p",
                                        "proxy", "COLL",      "transport", "device", "util"};
    enum { OF = sizeof of / sizeof of[0], NAMES = sizeof names / sizeof names[0] };
    char others[20];

    log_set_level(LOG_INFO);
    for (int i = 0; i < OF * NAMES; i++) {
        const char *source = of[i / NAMES].source, *name = names[i % NAMES];
        const bool own = strcasecmp(of[i / NAMES].subsystem, name) == 0;
        snprintf(others, sizeof others, "^%s", name);
        if (is_said(name, source) != own || is_said(others, source) == own)
            CHECK_FAIL("a line of %s, subsystem %s", source, name);
    }
    CHECK(is_said("mem,proxy", "../runtime/proxy/kernels.c"));
    CHECK(is_said("all", "../runtime/proxy/kernels.c"));
    CHECK(!is_said("^all", "../runtime/proxy/kernels.c"));
    capture();
    log_warn("warnings are those of all");
    log_info_transport("not written");
    CHECK(!strstr(captured(), "not written"));
    CHECK_EQ(log_file_set("", "THE_FILE", "proxies", "THE_SUBSYSTEMS"), GSHMEM_ERR_ARGUMENT);
    CHECK_HAS(last_error_text(), "THE_SUBSYSTEMS=proxies: \"proxies\" is none of init, bootstrap");
    CHECK_EQ(log_file_set("", "THE_FILE", "transport", "THE_SUBSYSTEMS"), GSHMEM_OK);
    capture();
    log_info_transport("written");
    log_info_device("left out");
    const char *text = captured();
    CHECK_HAS(text, "written");
    CHECK(!strstr(text, "left out"));
    CHECK_EQ(log_file_set("", "THE_FILE", "", "THE_SUBSYSTEMS"), GSHMEM_OK);
    log_set_level(LOG_WARN);
}

int main(void)
{
    test_line();
    test_levels();
    test_long();
    test_host();
    test_threads();
    test_file();
    test_subsystems();
    return 0;
}
