/* Lines of the PMI-1 wire: "cmd=NAME key=value key=value …\n", in printable ASCII.
 *
 * Knows the form of a line and nothing of what is said in it. Whatever comes from the launcher is
 * input to distrust: lines are bounded, bytes are checked, numbers have a range. */
#ifndef GSHMEM_PMI_LINE_H
#define GSHMEM_PMI_LINE_H

#include <stdbool.h>
#include <stddef.h>

enum {
    PMI_LINE_MAX = 8192, /* without the newline; launchers' values have 1024 bytes at most */
};

/* Bytes that have arrived and are not yet taken. */
struct pmi_input {
    size_t used;
    char bytes[PMI_LINE_MAX + 1];
};

enum pmi_taken {
    PMI_LINE,     /* line holds the next line */
    PMI_MORE,     /* its end has not arrived yet */
    PMI_TOO_LONG, /* no end within PMI_LINE_MAX bytes */
    PMI_NOT_TEXT, /* a byte that is not printable */
};

/* Takes the next line out of the input, without its newline. On PMI_TOO_LONG and PMI_NOT_TEXT, line
 * is what there is of it, made printable. */
enum pmi_taken pmi_take_line(struct pmi_input *in, char line[PMI_LINE_MAX + 1]);

/* The value of the first "key=" in the line, up to the next space. False: it is not there, or does
 * not fit in size bytes; value is then the empty string. */
bool pmi_line_value(const char *line, const char *key, char *value, size_t size);

/* The same as a decimal number in least … most; false if it is anything else. */
bool pmi_line_number(const char *line, const char *key, long least, long most, long *number);

/* A whole text as such a number, for environment variables. */
bool pmi_number(const char *text, long least, long most, long *number);

#endif
