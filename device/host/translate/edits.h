/* Changes to a text that keep every line where it was: pieces put in, pieces taken out. */
#ifndef GSHMEM_TRANSLATE_EDITS_H
#define GSHMEM_TRANSLATE_EDITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct edit {
    const char *at;
    size_t removed; /* bytes from at; their ends of line and line markers stay */
    char *text;     /* put in before at; NULL: nothing */
    size_t number;  /* order of those at one place */
};

struct edits {
    struct edit *list;
    size_t count, room;
    bool out_of_memory;
};

/* Puts in before at. */
void edits_insert(struct edits *edits, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void edits_remove(struct edits *edits, const char *from, const char *to);
/* Writes text with its edits. */
void edits_write(struct edits *edits, const char *text, size_t length, FILE *to);
void edits_free(struct edits *edits);

/* A copy of a piece of text on one line, without line markers; NULL: no memory. */
char *edits_one_line(const char *from, const char *to);

#endif
