#include "record.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fiber.h"

enum { BLOCK = 64, LINE = 400 };

static struct {
    FILE *file;
    uint64_t lines, bytes;
    uint32_t state[8];
    unsigned char block[BLOCK];
} log_state;

/* ---- SHA-256 (FIPS 180-4) of what comes piece by piece ---- */

static uint32_t rotate(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

/* The first 32 bits of the fractional part of a root of a prime: found by bisection in integers. */
static uint32_t root_fraction(uint32_t prime, int degree)
{
    unsigned __int128 least = 0, most = (unsigned __int128)1 << 38;
    const unsigned __int128 target = (unsigned __int128)prime << (degree == 2 ? 64 : 96);

    while (most - least > 1) {
        const unsigned __int128 middle = (least + most) / 2;
        const unsigned __int128 power = middle * middle;
        if ((degree == 2 ? power : power * middle) > target)
            most = middle;
        else
            least = middle;
    }
    return (uint32_t)least;
}

static void constants(uint32_t start[8], uint32_t round[64])
{
    int n = 0;

    for (uint32_t prime = 2; n < 64; prime++) {
        bool composite = false;
        for (uint32_t d = 2; d * d <= prime; d++)
            composite |= prime % d == 0;
        if (composite)
            continue;
        if (n < 8)
            start[n] = root_fraction(prime, 2);
        round[n++] = root_fraction(prime, 3);
    }
}

static uint32_t round_constant[64];

static void digest_block(uint32_t state[8], const unsigned char *block)
{
    uint32_t w[64], s[8];

    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + w[i - 7] +
               (rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3) +
               (rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(s, state, sizeof s);
    for (int i = 0; i < 64; i++) {
        const uint32_t a =
            s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
            ((s[4] & s[5]) ^ (~s[4] & s[6])) + round_constant[i] + w[i];
        const uint32_t b = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) +
                           ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += a;
        s[0] = a + b;
    }
    for (int i = 0; i < 8; i++)
        state[i] += s[i];
}

static void digest(const void *from, size_t n)
{
    const unsigned char *at = from;

    while (n) {
        const size_t used = log_state.bytes % BLOCK, more = n < BLOCK - used ? n : BLOCK - used;
        memcpy(log_state.block + used, at, more);
        log_state.bytes += more;
        at += more;
        n -= more;
        if (log_state.bytes % BLOCK == 0)
            digest_block(log_state.state, log_state.block);
    }
}

static void digest_end(char text[65])
{
    const uint64_t bits = log_state.bytes * 8;
    const unsigned char one = 0x80, zero = 0;
    unsigned char length[8];

    digest(&one, 1);
    while (log_state.bytes % BLOCK != BLOCK - sizeof length)
        digest(&zero, 1);
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(bits >> (56 - 8 * i));
    digest(length, sizeof length);
    for (int i = 0; i < 8; i++)
        snprintf(text + 8 * i, 9, "%08x", log_state.state[i]);
}

/* ---- Lines ---- */

/* Addresses differ between two runs of a seed: their digits are not part of the log. */
static void mask_addresses(char *line)
{
    for (char *at = line; (at = strstr(at, "0x")); ) {
        const size_t digits = strspn(at += 2, "0123456789abcdef");
        if (digits > 8)
            memset(at, '#', digits);
    }
}

bool record_begin(const char *path)
{
    constants(log_state.state, round_constant);
    log_state.file = path ? fopen(path, "we") : NULL;
    return !path || log_state.file;
}

void record(const char *format, ...)
{
    char line[LINE];
    va_list args;
    int n = snprintf(line, sizeof line, "%llu.%09llu ",
                     (unsigned long long)(fiber_time() / 1000000000),
                     (unsigned long long)(fiber_time() % 1000000000));

    va_start(args, format);
    n += vsnprintf(line + n, sizeof line - (size_t)n - 1, format, args);
    va_end(args);
    if (n > LINE - 2)
        n = LINE - 2;
    mask_addresses(line);
    line[n++] = '\n';
    digest(line, (size_t)n);
    log_state.lines++;
    if (log_state.file)
        fwrite(line, 1, (size_t)n, log_state.file);
}

uint64_t record_end(char text[65])
{
    if (log_state.file)
        fclose(log_state.file);
    log_state.file = NULL;
    digest_end(text);
    return log_state.lines;
}
