/* Where the program called: the return address in it, and what that is in its file. For
 * GSHMEM_CHECK=memory and =races. */
#ifndef GSHMEM_RUNTIME_MEMORY_CALLER_H
#define GSHMEM_RUNTIME_MEMORY_CALLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An instruction of the program, as its file and that file's symbols have it. */
struct caller_place {
    const char *file; /* the last part of its path; NULL: not known */
    const char *path;
    uint64_t at, offset;
    char function[80]; /* may be empty */
};

/* The innermost frame that is not of our libraries, nor of our headers; NULL: there is none. */
const void *caller_find(void);
/* Whether it is in a library of ours, or in a function of our headers that is compiled into the
 * program. */
bool caller_is_of_ours(const void *from);
struct caller_place caller_place(const void *from);
/* "main+0x1c (prog+0x12ac)": the second is what addr2line takes. */
void caller_name(char *text, size_t size, const void *from);

#endif
