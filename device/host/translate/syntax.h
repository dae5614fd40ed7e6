/* A translation, and what its parts ask of the tokens: angle brackets, lists, blocks, text. */
#ifndef GSHMEM_TRANSLATE_SYNTAX_H
#define GSHMEM_TRANSLATE_SYNTAX_H

#include <stdbool.h>
#include <stddef.h>

#include "edits.h"
#include "tokens.h"

struct translation {
    struct source source;
    struct edits edits;
    int shared_line; /* of the last __shared__, and how many there were in that line before */
    unsigned shared_count;
    int errors;
};

/* Appends to a growing text. */
struct text {
    char *bytes;
    size_t length;
};

__attribute__((format(printf, 3, 4))) void syntax_complain(struct translation *t, size_t i,
                                                           const char *format, ...);
const char *syntax_start_of(const struct translation *t, size_t i);
const char *syntax_end_of(const struct translation *t, size_t i);
bool syntax_is(const struct translation *t, size_t i, const char *text);
bool syntax_is_any(const struct translation *t, size_t i, const char *const *texts);
/* The text of tokens [from, to) on one line, to be freed. */
char *syntax_text_of(struct translation *t, size_t from, size_t to);
/* The operator <<, which no template arguments begin with. */
bool syntax_shifts(const struct translation *t, size_t i);
/* The < of the template arguments that end with the > at i, or count. */
size_t syntax_angle_opening(const struct translation *t, size_t i);
/* Three marks in a row, with nothing but blanks between them. */
bool syntax_triple(const struct translation *t, size_t i, const char *mark);
__attribute__((format(printf, 2, 3))) void syntax_append(struct text *text,
                                                                   const char *format, ...);
/* Where an item of a list that ends before `end` stops: at its comma, or at end. */
size_t syntax_item_end(const struct translation *t, size_t i, size_t end);
size_t syntax_angle_closing(const struct translation *t, size_t i);
/* The { of the block that token i is in, or count. */
size_t syntax_block_start(const struct translation *t, size_t i);
/* Is token i outside of every function? Then each { around it is a namespace's or extern "C"'s. */
bool syntax_outside_functions(const struct translation *t, size_t i);

/* launches.c, kernels.c, shared_variables.c. What is translated begins at token i; the result is
 * the token to go on with. */
size_t translate_launch(struct translation *t, size_t i);
void translate_kernel(struct translation *t, size_t i);
size_t translate_shared(struct translation *t, size_t i);

#endif
