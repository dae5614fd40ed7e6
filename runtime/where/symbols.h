/* The symbols of an ELF file. */
#ifndef GSHMEM_RUNTIME_WHERE_SYMBOLS_H
#define GSHMEM_RUNTIME_WHERE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The function, or the variable, that contains the address, in the file's own addresses; *offset:
 * from its beginning. false: none, or the file cannot be read. */
bool symbols_find(const char *path, uint64_t at, bool function, char *name, size_t size,
                  uint64_t *offset);

/* A variable, in the file's own addresses. */
struct symbols_variable {
    uint64_t at, bytes;
    const char *name; /* ends after `room` characters, or before */
    size_t room;
    bool is_static;
};
typedef void symbols_each_fn(void *context, const struct symbols_variable *v);

/* Calls `each` for each variable that has a size. Of a file without its full table these are those
 * that it exports. */
void symbols_variables(const char *path, symbols_each_fn *each, void *context);

#endif
