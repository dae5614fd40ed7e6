/* The subsystems of the log: which one a source file belongs to, and lists of them. */
#ifndef GSHMEM_BASE_LOG_SUBSYSTEM_H
#define GSHMEM_BASE_LOG_SUBSYSTEM_H

#include <stdbool.h>

#define LOG_SUBSYSTEMS_ALL (~0u)

/* The bit of the subsystem that a source file of the library belongs to. */
unsigned log_subsystem_of(const char *source);

/* A list such as "proxy,coll" or "^mem" as bits; "" and "all": all of them. False: *wrong is the
 * part of the list that is no subsystem, up to a comma. */
bool log_subsystems_read(const char *list, unsigned *chosen, const char **wrong);

#endif
