/* Statuses, and the lines that explain them. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "../check.h"
#include "runtime/base/log.h"

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

int main(void)
{
    test_line();
    test_levels();
    test_long();
    test_host();
    test_threads();
    return 0;
}
