/* The program's variables, as the symbols of its files have them: for GSHMEM_CHECK=memory. The
 * table is complete before anybody looks. */
#ifndef GSHMEM_RUNTIME_MEMORY_VARIABLES_H
#define GSHMEM_RUNTIME_MEMORY_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/memory/tree.h"

struct variable {
    struct tree_node by_address;
    uintptr_t at;
    size_t bytes;
    char *name;
};

struct checked_variables;

struct checked_variables *variables_start(void); /* NULL: out of memory */
void variables_stop(struct checked_variables *c);

/* Adds those in the program's data at these addresses. */
void variables_enter(struct checked_variables *c, uintptr_t base, size_t bytes);
/* The one at the address, or the last one before it; NULL: none. */
const struct variable *variables_find(const struct checked_variables *c, uintptr_t at);
/* Whether all variables at and around the address are in the table: the file there has been
 * stripped of none. */
bool variables_are_known(const struct checked_variables *c, uintptr_t at);

#endif
