#define _GNU_SOURCE
#include "runtime/base/log.h"
#include "runtime/base/alike.h"
#include "runtime/base/log_subsystem.h"
#include "runtime/base/unseen.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 1024 };

static atomic_int level_now = LOG_WARN;
static atomic_int pe_now = -1;
static atomic_int file_now = -1; /* GSHMEM_LOG_FILE; -1: stderr alone */
static atomic_uint subsystems_now = LOG_SUBSYSTEMS_ALL;
static atomic_bool starting;

static _Thread_local gshmem_status_t error_status;
static _Thread_local char error_text[LINE_MAX_BYTES];

void log_identify(int pe)
{
    atomic_store_explicit(&pe_now, pe, memory_order_relaxed);
}

void log_starts(bool does)
{
    if (does)
        alike_start();
    atomic_store_explicit(&starting, does, memory_order_relaxed);
}

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&level_now, (int)level, memory_order_relaxed);
}

void log_set_place(int fd, unsigned subsystems)
{
    atomic_store_explicit(&subsystems_now, subsystems, memory_order_relaxed);
    const int before = atomic_exchange_explicit(&file_now, fd, memory_order_relaxed);
    if (before >= 0)
        close(before);
}

bool log_enabled(enum log_level level)
{
    return (int)level <= atomic_load_explicit(&level_now, memory_order_relaxed);
}

static size_t put_prefix(char *line, size_t size, enum log_level level)
{
    static const char *const names[] = {"", "error", "warning", "info", "debug"};
    int pe = atomic_load_explicit(&pe_now, memory_order_relaxed);
    char host[65] = "";

    if (gethostname(host, sizeof host) != 0) /* 64 bytes are the most that Linux has */
        host[0] = 0;
    int n = pe < 0 ? snprintf(line, size, "gshmem[%s] %s: ", host, names[level])
                   : snprintf(line, size, "gshmem[%d@%s] %s: ", pe, host, names[level]);
    return n < 0 ? 0 : (size_t)n;
}

/* If stderr or the file refuses the message, there is nowhere else to write it. */
static void log_write_bytes(int fd, const char *line, size_t bytes)
{
    if (write(fd, line, bytes) < 0)
        errno = 0;
}

static void log_write_line(enum log_level level, bool alike, const char *format, va_list args)
{
    if (!log_enabled(level))
        return;

    int saved = errno;
    char line[LINE_MAX_BYTES + 128];
    size_t prefix = put_prefix(line, 128, level), used = prefix;
    int n = vsnprintf(line + used, sizeof line - used - 1, format, args);

    if (n > 0)
        used += (size_t)n < sizeof line - used - 1 ? (size_t)n : sizeof line - used - 2;
    line[used++] = '\n';
    const int file = atomic_load_explicit(&file_now, memory_order_relaxed);
    if (file >= 0)
        log_write_bytes(file, line, used);
    if ((file < 0 || level <= LOG_WARN) && !(alike && alike_take(line, prefix, used)))
        log_write_bytes(STDERR_FILENO, line, used);
    errno = saved;
}

/* Warnings and errors are those of all subsystems. */
static bool log_chosen(const char *source, enum log_level level)
{
    const unsigned chosen = atomic_load_explicit(&subsystems_now, memory_order_relaxed);

    return level <= LOG_WARN || chosen == LOG_SUBSYSTEMS_ALL ||
           (log_subsystem_of(source) & chosen) != 0;
}

void log_vline_of(const char *source, enum log_level level, const char *format, va_list args)
{
    bool alike = level <= LOG_WARN && atomic_load_explicit(&starting, memory_order_relaxed);

    if (log_enabled(level) && log_chosen(source, level))
        log_write_line(level, alike, format, args);
}

void log_line_of(const char *source, enum log_level level, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_vline_of(source, level, format, args);
    va_end(args);
}

#define LOG_INFO_OF(folder)                                                                        \
    void log_info_##folder(const char *format, ...)                                                \
    {                                                                                              \
        va_list args;                                                                              \
                                                                                                   \
        va_start(args, format);                                                                    \
        log_vline_of(#folder "/", LOG_INFO, format, args);                                         \
        va_end(args);                                                                              \
    }
LOG_INFO_OF(bootstrap)
LOG_INFO_OF(device)
LOG_INFO_OF(transport)

void log_warn_line(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_vline_of("", LOG_WARN, format, args);
    va_end(args);
}

const char *log_errno(int error)
{
    static _Thread_local char text[128];
    struct rlimit files;

    if (error != EMFILE || getrlimit(RLIMIT_NOFILE, &files) != 0)
        return strerror(error);
    snprintf(text, sizeof text, "%s: this process may have %llu (ulimit -n)", strerror(error),
             (unsigned long long)files.rlim_cur);
    return text;
}

static gshmem_status_t log_remember(gshmem_status_t status, const char *format, va_list args)
{
    vsnprintf(error_text, sizeof error_text, format, args);
    error_status = status;
    return status;
}

static __attribute__((format(printf, 2, 3), cold)) void write_failure(bool alike,
                                                                      const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_write_line(LOG_ERROR, alike, format, args);
    va_end(args);
}

static _Thread_local bool without_failures;

enum { SPARSE_FIRST = 8 };

bool log_sparse_begin(const struct log_sparse *s)
{
    const uint32_t next = atomic_load_explicit(&s->happened, memory_order_relaxed) + 1;

    without_failures = next > SPARSE_FIRST && (next & (next - 1)) != 0;
    return !without_failures;
}

void log_sparse_end(struct log_sparse *s, bool happened, const char *what)
{
    without_failures = false;
    if (!happened)
        return;
    const uint32_t n = atomic_fetch_add_explicit(&s->happened, 1, memory_order_relaxed) + 1;
    if (what && n == SPARSE_FIRST)
        log_error("further %s have no line, but for number %u, %u and so on", what, 2 * n, 4 * n);
    else if (what && n > SPARSE_FIRST && (n & (n - 1)) == 0)
        log_error("that was number %u of %s", n, what);
}

static void write_remembered(void)
{
    if (without_failures)
        return;
    write_failure(error_status == GSHMEM_ERR_MISMATCH ||
                      atomic_load_explicit(&starting, memory_order_relaxed),
                  "%s", error_text);
}

gshmem_status_t fail(gshmem_status_t status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_remember(status, format, args);
    va_end(args);
    write_remembered();
    unseen_add(error_text);
    return status;
}

gshmem_status_t fail_handled(gshmem_status_t status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_remember(status, format, args);
    va_end(args);
    write_remembered();
    return status;
}

gshmem_status_t fail_silently(gshmem_status_t status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_remember(status, format, args);
    va_end(args);
    return status;
}

gshmem_status_t last_error_status(void)
{
    return error_status;
}

const char *last_error_text(void)
{
    return error_text;
}
