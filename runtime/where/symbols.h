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

#endif
