/* Fuzz target: the lines of a PMI-1 launcher, arriving in pieces.
 *
 * An input is a byte for the size of the pieces, then what the launcher sends. However it is cut,
 * the same lines come out, printable and bounded, and what is found in them lies in its range. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/pmi/line.h"
#include "fuzz.h"

static void check_line(const char *line)
{
    char value[16];
    long number;

    if (strlen(line) > PMI_LINE_MAX)
        abort();
    for (const char *c = line; *c; c++) {
        if (*c < ' ' || *c > '~')
            abort();
    }
    if (pmi_line_value(line, "key", value, sizeof value) && strlen(value) >= sizeof value)
        abort();
    if (pmi_line_number(line, "rc", -5, 70000, &number) && (number < -5 || number > 70000))
        abort();
}

/* A digest of all lines and of how they end, when the input comes in pieces of this size. */
static unsigned take_all(const uint8_t *data, size_t bytes, size_t piece)
{
    static struct pmi_input in;
    static char line[PMI_LINE_MAX + 1];
    unsigned digest = 0;

    in.used = 0;
    for (;;) {
        enum pmi_taken taken = pmi_take_line(&in, line);
        check_line(line);
        if (taken == PMI_LINE) {
            for (const char *c = line; *c; c++)
                digest = digest * 31 + (unsigned char)*c;
            digest = digest * 31 + '\n';
            continue;
        }
        if (taken != PMI_MORE)
            return digest * 31 + 1;
        size_t n = bytes < piece ? bytes : piece;
        if (n > sizeof in.bytes - in.used)
            n = sizeof in.bytes - in.used;
        if (n == 0)
            return bytes ? (abort(), 0) : digest; /* no room, and yet more is wanted */
        memcpy(in.bytes + in.used, data, n);
        in.used += n;
        data += n;
        bytes -= n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes == 0)
        return 0;
    if (take_all(data + 1, bytes - 1, 1u + data[0]) != take_all(data + 1, bytes - 1, 1))
        abort();
    return 0;
}

size_t fuzz_seed(unsigned number, uint8_t *data, size_t capacity)
{
    static const char *const seeds[] = {
        "\x07"
        "cmd=response_to_init pmi_version=1 rc=0\ncmd=maxes key=1 rc=-1\n",
        "\x01"
        "cmd=get_result rc=0 msg=success key=0003616263\n\ncmd=barrier_out\n",
        "\xff"
        "key=123456789012345 rc=99999999999999999999\nkey=1234567890123456\n",
    };

    if (number >= sizeof seeds / sizeof seeds[0] || strlen(seeds[number]) > capacity)
        return 0;
    memcpy(data, seeds[number], strlen(seeds[number]));
    return strlen(seeds[number]);
}
