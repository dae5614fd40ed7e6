/* How far apart two words are, for "did you mean"; for programs beside the library, too. */
#ifndef GSHMEM_BASE_SPELLING_H
#define GSHMEM_BASE_SPELLING_H

#include <string.h>

/* Letters to insert, leave out or change to make b of a; 99 for long words. */
static inline unsigned spelling_distance(const char *a, const char *b)
{
    unsigned row[48];
    size_t m = strlen(b);

    if (m + 1 > sizeof row / sizeof row[0])
        return 99;
    for (size_t j = 0; j <= m; j++)
        row[j] = (unsigned)j;
    for (unsigned i = 1; *a; a++, i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            unsigned swap = diagonal + (*a != b[j - 1]);
            diagonal = row[j];
            unsigned best = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            row[j] = swap < best ? swap : best;
        }
    }
    return row[m];
}

#endif
