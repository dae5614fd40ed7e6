/* A function's name as people say it: what C++ adds to it would fill the line. */
#ifndef GSHMEM_RUNTIME_WHERE_FUNCTION_NAME_H
#define GSHMEM_RUNTIME_WHERE_FUNCTION_NAME_H

#include <stddef.h>

/* Without what it returns, the types of its parameters, and template arguments: of "void
 * a::table<int>::each(int (*)(long))" it makes "a::table<>::each". Names of C stay as they are. */
void function_name_shorten(const char *function, char *text, size_t size);

#endif
