/* Addresses in PEs as functions, source lines and variables, found in the files that the PEs run:
 * by addr2line where there is one, else by the files' symbols. */
#ifndef GSHMEM_RUNTIME_WHERE_LINES_H
#define GSHMEM_RUNTIME_WHERE_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/where/record.h"

enum { LINE_TEXT = 256 };

struct line {
    const char *path; /* of the module; NULL: in none that is known */
    uint64_t at;      /* in the file's own addresses */
    char function[128];
    char source[LINE_TEXT]; /* "file.c:12"; empty: not known */
    bool of_gshmem; /* code of our headers, and nothing of the program that it was inlined in */
    bool in_gshmem; /* code of our headers, perhaps inlined in the program */
};

struct lines; /* what has been looked up */
struct lines *lines_new(void);
void lines_free(struct lines *l);

/* Enters a return address that will be looked up. */
void lines_add(struct lines *l, const struct where_page *page, uint64_t at);
/* Looks up all that were entered, in one go for each file. After that time, on clock_ns, by the
 * files' symbols alone. */
void lines_resolve(struct lines *l, uint64_t until);
/* The result; NULL: it was not entered. */
const struct line *lines_find(const struct lines *l, const struct where_page *page, uint64_t at);

/* The variable at that address of a PE, as "name" or "name+8"; false: there is none. */
bool lines_variable(const struct where_page *page, uint64_t at, char *text, size_t size);

#endif
