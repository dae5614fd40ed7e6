/* A text in JSON. */
#ifndef GSHMEM_BASE_JSON_TEXT_H
#define GSHMEM_BASE_JSON_TEXT_H

#include <stdio.h>

/* How many bytes the UTF-8 sequence at `text` has; 0: there is none. */
static inline int json_text_sequence(const unsigned char *text)
{
    const int more = text[0] >= 0xc2 && text[0] < 0xe0   ? 1
                     : text[0] >= 0xe0 && text[0] < 0xf0 ? 2
                     : text[0] >= 0xf0 && text[0] < 0xf5 ? 3
                                                         : 0;

    for (int i = 1; i <= more; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    }
    /* longer than need be, a half of UTF-16, or beyond U+10FFFF */
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] >= 0xa0) ||
        (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] >= 0x90))
        return 0;
    return more ? more + 1 : 0;
}

/* In quotes. Bytes that are no UTF-8, as where a name was cut off, become replacement characters.
 */
static inline void json_text(FILE *to, const char *text)
{
    putc('"', to);
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        const int bytes = *at < 0x80 ? 1 : json_text_sequence(at);
        if (*at == '"' || *at == '\\')
            fprintf(to, "\\%c", *at);
        else if (*at < 0x20 || *at == 0x7f)
            fprintf(to, "\\u%04x", *at);
        else if (bytes == 0)
            fputs("\\ufffd", to);
        else
            fwrite(at, 1, (size_t)bytes, to);
        at += bytes ? bytes : 1;
    }
    putc('"', to);
}

#endif
