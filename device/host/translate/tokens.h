/* Preprocessed C++ as a row of tokens that know where they came from.
 *
 * Comments are white space; line markers (# 12 "file.cu") are followed, so that every token has the
 * file and line of the user's own source. Knows nothing of CUDA. */
#ifndef GSHMEM_TRANSLATE_TOKENS_H
#define GSHMEM_TRANSLATE_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

enum token_kind { TOKEN_WORD, TOKEN_NUMBER, TOKEN_TEXT, TOKEN_MARK };

struct token {
    enum token_kind kind;
    const char *at;
    size_t length;
    size_t file; /* index in files */
    int line;
};

struct source {
    char *text;
    size_t length;
    struct token *tokens;
    size_t count;
    char **files;
    size_t files_count;
};

/* Reads all of a stream and cuts it up. False, after a message, without memory or when it cannot be
 * read. */
bool source_read(struct source *source, int descriptor);
void source_free(struct source *source);

/* Is token i this word or mark? Marks are single characters, but :: and -> are one. False beyond
 * either end. */
bool token_is(const struct source *source, size_t i, const char *text);
bool token_is_word(const struct source *source, size_t i);
/* The token that closes the bracket at i, or count. */
size_t token_closing(const struct source *source, size_t i);
/* The token that opens the bracket that i closes, or count. */
size_t token_opening(const struct source *source, size_t i);

#endif
