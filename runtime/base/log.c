#define _GNU_SOURCE
#include "runtime/base/log.h"
#include "runtime/base/alike.h"
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
    /* If stderr refuses the message, there is nowhere else to write it. */
    if (!(alike && alike_take(line, prefix, used)) && write(STDERR_FILENO, line, used) < 0)
        errno = 0;
    errno = saved;
}

void log_vline(enum log_level level, const char *format, va_list args)
{
    bool alike = level <= LOG_WARN && atomic_load_explicit(&starting, memory_order_relaxed);

    log_write_line(level, alike, format, args);
}

void log_line(enum log_level level, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_vline(level, format, args);
    va_end(args);
}

void log_info_line(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_vline(LOG_INFO, format, args);
    va_end(args);
}

void log_warn_line(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_vline(LOG_WARN, format, args);
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

static void write_remembered(void)
{
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
