/* Logs messages for people, and turns failures into statuses.
 *
 * One line a message, written with one write(2) so that lines of many PEs never mix:
 *     gshmem[3@node7] error: put of 64 B to PE 9: the job has PEs 0..7
 * GSHMEM_LOG chooses the level, GSHMEM_LOG_FILE the place, and GSHMEM_LOG_SUBSYSTEM whose lines of
 * info and debug are written: a line's subsystem follows from the folder of the file that logs it.
 * Knows nothing of PEs except this one's number. */
#ifndef GSHMEM_BASE_LOG_H
#define GSHMEM_BASE_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "gshmem/status.h"

enum log_level { LOG_NONE, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_identify(int pe); /* -1: not yet a PE */
/* While a PE starts, its warnings and errors are most likely those of all PEs, and are written once
 * (alike.h). The same holds at all times for the line that PEs' calls differ. */
void log_starts(bool does);
void log_set_level(enum log_level level);
/* The file that lines go to, which is the log's from here on (-1: stderr), and the subsystems whose
 * lines of info and debug are written (log_subsystem.h). */
void log_set_place(int fd, unsigned subsystems);
bool log_enabled(enum log_level level);
/* `source` is the file that logs, as __FILE__ has it. */
void log_line_of(const char *source, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void log_vline_of(const char *source, enum log_level level, const char *format, va_list args);

#define log_line(level, ...) log_line_of(__FILE__, level, __VA_ARGS__)

#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...)                                                                             \
    do {                                                                                           \
        if (log_enabled(LOG_DEBUG))                                                                \
            log_line(LOG_DEBUG, __VA_ARGS__);                                                      \
    } while (0)

/* The same as log_info and log_warn, as functions: for tables that modules are given. A module's
 * lines are of the folder that it is built from. */
void log_info_bootstrap(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info_device(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info_transport(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warn_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The text of an errno. Where a limit of the process is the cause, with its number and the way to
 * change it. */
const char *log_errno(int error);

/* Decides a failure: logs the line as an error, remembers both for gshmem_last_error() of this
 * thread, and returns status, so that `return fail(GSHMEM_ERR_…, "…", …);` is enough. */
gshmem_status_t fail(gshmem_status_t status, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* The same for a failure after which the library uses another way: GSHMEM_UNSEEN does not count
 * it. */
gshmem_status_t fail_handled(gshmem_status_t status, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));
/* Lines of something that may happen ten thousand times at once: of the first few, and of those
 * whose number is a power of two. */
struct log_sparse {
    _Atomic uint32_t happened;
};
/* Around what may fail: in between, failures of this thread have a line only if it is due. what:
 * NULL, or what a line says that others have none ("failed calls"). begin returns whether it is. */
bool log_sparse_begin(const struct log_sparse *s);
void log_sparse_end(struct log_sparse *s, bool happened, const char *what);

/* The same without the line: for a failure that every PE sees and one of them logs. */
gshmem_status_t fail_silently(gshmem_status_t status, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

gshmem_status_t last_error_status(void);
const char *last_error_text(void);

#endif
