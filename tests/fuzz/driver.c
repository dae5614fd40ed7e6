/* Runs a fuzz target without libFuzzer, or writes its seeds for libFuzzer to start from.
 *
 *     TARGET ROUNDS            the seeds, and as many mutations of them, the same in every run
 *     TARGET seeds DIRECTORY   a file for each seed
 *     TARGET play FILE…        inputs that a search has found */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { INPUT_MAX = 4096 };

static uint64_t state = 88172645463325252u;

/* xorshift64: the same numbers everywhere. */
static uint32_t any(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32) % below;
}

static size_t mutate(uint8_t *data, size_t bytes)
{
    for (uint32_t changes = 1 + any(4); changes > 0 && bytes > 0; changes--) {
        size_t at = any((uint32_t)bytes);
        size_t length = 1 + any((uint32_t)(bytes - at < 40 ? bytes - at : 40));

        switch (any(6)) {
        case 0:
            data[at] ^= (uint8_t)(1u << any(8));
            break;
        case 1:
            data[at] = (uint8_t)any(256);
            break;
        case 2:
            bytes = at + 1;
            break;
        case 3: /* leave out */
            memmove(data + at, data + at + length, bytes - at - length);
            bytes -= length;
            break;
        case 4: /* repeat */
            if (bytes + length <= INPUT_MAX) {
                memmove(data + at + length, data + at, bytes - at);
                bytes += length;
            }
            break;
        default: /* copy from elsewhere */
            memmove(data + at, data + any((uint32_t)(bytes - length + 1)), length);
            break;
        }
    }
    return bytes;
}

static int play(int n, char **paths)
{
    static uint8_t data[1 << 20];

    for (int i = 0; i < n; i++) {
        FILE *f = fopen(paths[i], "rb");
        if (!f) {
            perror(paths[i]);
            return 1;
        }
        LLVMFuzzerTestOneInput(data, fread(data, 1, sizeof data, f));
        fclose(f);
    }
    return 0;
}

static int write_seeds(const char *directory)
{
    uint8_t data[INPUT_MAX];
    char path[4096];
    size_t bytes;

    for (unsigned i = 0; (bytes = fuzz_seed(i, data, sizeof data)) > 0; i++) {
        snprintf(path, sizeof path, "%s/seed-%u", directory, i);
        FILE *f = fopen(path, "wb");
        if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f)) {
            perror(path);
            return 1;
        }
    }
    return 0;
}

static int run(unsigned long rounds)
{
    uint8_t data[INPUT_MAX], input[INPUT_MAX];
    unsigned seeds = 0;
    size_t bytes;

    for (; (bytes = fuzz_seed(seeds, data, sizeof data)) > 0; seeds++)
        LLVMFuzzerTestOneInput(data, bytes);
    for (unsigned long i = 0; i < rounds && seeds > 0; i++) {
        bytes = fuzz_seed((unsigned)(i % seeds), data, sizeof data);
        bytes = mutate(data, bytes);
        /* A copy of its exact size lets a sanitizer see what is read beyond it. */
        uint8_t *exact = malloc(bytes ? bytes : 1);
        if (!exact)
            return 1;
        memcpy(exact, data, bytes);
        memcpy(input, data, bytes);
        LLVMFuzzerTestOneInput(exact, bytes);
        if (memcmp(exact, input, bytes) != 0) {
            fprintf(stderr, "round %lu: the target changed its input\n", i);
            return 1;
        }
        free(exact);
    }
    printf("%u seeds, %lu mutations\n", seeds, rounds);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "seeds") == 0)
        return write_seeds(argv[2]);
    if (argc >= 3 && strcmp(argv[1], "play") == 0)
        return play(argc - 2, argv + 2);
    return argc == 2 ? run(strtoul(argv[1], NULL, 10)) : 2;
}
