#include "bootstrap/pmi/line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool printable(char c)
{
    return c >= ' ' && c <= '~';
}

/* Copies n bytes into line as far as they fit; whether all of them were printable. */
static bool copy_text(char line[PMI_LINE_MAX + 1], const char *bytes, size_t n)
{
    bool text = true;

    if (n > PMI_LINE_MAX)
        n = PMI_LINE_MAX;
    for (size_t i = 0; i < n; i++) {
        text = text && printable(bytes[i]);
        line[i] = printable(bytes[i]) ? bytes[i] : '?';
    }
    line[n] = 0;
    return text;
}

enum pmi_taken pmi_take_line(struct pmi_input *in, char line[PMI_LINE_MAX + 1])
{
    const char *end = memchr(in->bytes, '\n', in->used);
    size_t n = end ? (size_t)(end - in->bytes) : in->used;
    bool text = copy_text(line, in->bytes, n);

    /* Garbage is said to be so without waiting for a newline that may never come. */
    if (!text)
        return PMI_NOT_TEXT;
    if (!end)
        return in->used > PMI_LINE_MAX ? PMI_TOO_LONG : PMI_MORE;
    in->used -= n + 1;
    memmove(in->bytes, end + 1, in->used);
    return PMI_LINE;
}

bool pmi_line_value(const char *line, const char *key, char *value, size_t size)
{
    size_t length = strlen(key);

    value[0] = 0;
    while (*line) {
        size_t n = strcspn(line, " ");
        if (n > length && line[length] == '=' && strncmp(line, key, length) == 0) {
            n -= length + 1;
            if (n >= size)
                return false;
            memcpy(value, line + length + 1, n);
            value[n] = 0;
            return true;
        }
        line += n;
        line += strspn(line, " ");
    }
    return false;
}

bool pmi_number(const char *text, long least, long most, long *number)
{
    char *end;

    /* strtol would also take spaces and a plus sign. */
    if (!(*text == '-' || (*text >= '0' && *text <= '9')))
        return false;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || *end || value < least || value > most)
        return false;
    *number = value;
    return true;
}

bool pmi_line_number(const char *line, const char *key, long least, long most, long *number)
{
    char value[24];

    return pmi_line_value(line, key, value, sizeof value) && pmi_number(value, least, most, number);
}
