/* What a test says when it finds something wrong: where, on which PE, and the values; then it ends.
 *
 * A test is a program that exits with 0. One failed check ends its process with 1, and the launcher
 * ends the rest of the job. A test that cannot run here says so with SKIP. */
#ifndef GSHMEM_TESTS_CHECK_H
#define GSHMEM_TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef GSHMEM_H
#define CHECK_PE() gshmem_my_pe()
#else
#define CHECK_PE() -1
#endif

/* _exit: what a failed test leaves unfreed or its exit handlers would say is noise. */
#define CHECK_FAIL(...)                                                                            \
    do {                                                                                           \
        fprintf(stderr, "%s:%d: PE %d: ", __FILE__, __LINE__, CHECK_PE());                         \
        fprintf(stderr, __VA_ARGS__);                                                              \
        fputc('\n', stderr);                                                                       \
        fflush(NULL);                                                                              \
        _exit(1);                                                                                  \
    } while (0)

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            CHECK_FAIL("not true: %s", #condition);                                                \
    } while (0)

/* Whole numbers, with both values. */
#define CHECK_EQ(got, expected)                                                                    \
    do {                                                                                           \
        long long check_got = (long long)(got), check_expected = (long long)(expected);            \
        if (check_got != check_expected)                                                           \
            CHECK_FAIL("%s is %lld, expected %s = %lld", #got, check_got, #expected,               \
                       check_expected);                                                            \
    } while (0)

#define CHECK_STR(got, expected)                                                                   \
    do {                                                                                           \
        const char *check_got = (got), *check_expected = (expected);                               \
        if (strcmp(check_got, check_expected) != 0)                                                \
            CHECK_FAIL("%s is \"%s\", expected \"%s\"", #got, check_got, check_expected);          \
    } while (0)

/* That text has part in it. */
#define CHECK_HAS(text, part)                                                                      \
    do {                                                                                           \
        const char *check_text = (text), *check_part = (part);                                     \
        if (!strstr(check_text, check_part))                                                       \
            CHECK_FAIL("%s is \"%s\", expected \"%s\" in it", #text, check_text, check_part);      \
    } while (0)

#ifdef GSHMEM_H
#define CHECK_OK(call)                                                                             \
    do {                                                                                           \
        const char *check_line = "";                                                               \
        gshmem_status_t check_status = (call);                                                     \
        if (check_status) {                                                                        \
            gshmem_last_error(&check_line);                                                        \
            CHECK_FAIL("%s: %s: %s", #call, gshmem_status_name(check_status), check_line);         \
        }                                                                                          \
    } while (0)

/* That call fails with this status, and that the line it left names the culprit. */
#define CHECK_FAILS(call, status, part)                                                            \
    do {                                                                                           \
        const char *check_line = "";                                                               \
        gshmem_status_t check_status = (call);                                                     \
        if (check_status != (status))                                                              \
            CHECK_FAIL("%s: %s, expected %s", #call, gshmem_status_name(check_status), #status);   \
        CHECK_EQ(gshmem_last_error(&check_line), status);                                          \
        CHECK_HAS(check_line, part);                                                               \
    } while (0)
#endif

/* How often something is tried: where each time takes long, as on an emulated machine, GSHMEM_TEST_FEW
 * asks for `few`. */
static inline int how_often(int many, int few)
{
    return getenv("GSHMEM_TEST_FEW") ? few : many;
}

#define SKIP(reason)                                                                               \
    do {                                                                                           \
        printf("SKIP: %s\n", reason);                                                              \
        exit(77);                                                                                  \
    } while (0)

#endif
