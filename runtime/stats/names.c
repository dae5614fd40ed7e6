/* What counts are called: kind.path.operations, kind.path.bytes, kind.path.to_SIZE; and the names
 * of the counters. */
#include <assert.h>

#include "runtime/stats/stats.h"

enum { OF_PAIR = 2 + STATS_CLASSES, COUNTERS = STATS_COUNTERS_END - STATS_CELLS_END };

static const char *const of_pairs[] = {
#define NAMES_OF(id, path, kind)                                                                   \
    kind "." path ".operations", kind "." path ".bytes", kind "." path ".to_8",                    \
        kind "." path ".to_64", kind "." path ".to_512", kind "." path ".to_4K",                   \
        kind "." path ".to_32K", kind "." path ".to_256K", kind "." path ".to_2M",                 \
        kind "." path ".larger",
#define X(id, kind) STATS_PATH_TABLE(NAMES_OF, kind)
    STATS_KIND_TABLE(X)
#undef X
#undef NAMES_OF
};
static_assert(sizeof of_pairs / sizeof of_pairs[0] == STATS_PAIRS * OF_PAIR, "a name for each");

static const struct {
    const char *name, *text;
} counter[] = {
#define X(id, name, text) {name, text},
    STATS_COUNTER_TABLE(X)
#undef X
};

int stats_names(void)
{
    return STATS_PAIRS * OF_PAIR + COUNTERS;
}

const char *stats_name(int i)
{
    if (i < 0 || i >= stats_names())
        return NULL;
    return i < STATS_PAIRS * OF_PAIR ? of_pairs[i] : counter[i - STATS_PAIRS * OF_PAIR].name;
}

const char *stats_text(int i)
{
    if (i < 0 || i >= stats_names())
        return NULL;
    if (i >= STATS_PAIRS * OF_PAIR)
        return counter[i - STATS_PAIRS * OF_PAIR].text;
    return i % OF_PAIR == 0   ? "operations of this kind that took this path"
           : i % OF_PAIR == 1 ? "the bytes of those operations"
                              : "those of at most so many bytes, and more than the class before";
}

uint64_t stats_named(const struct stats_sums *of, int i)
{
    const uint64_t *cell = &of->value[2 * (i / OF_PAIR) * STATS_CLASSES];
    const int what = i % OF_PAIR;
    uint64_t sum = 0;

    if (i >= STATS_PAIRS * OF_PAIR)
        return of->value[STATS_CELLS_END + i - STATS_PAIRS * OF_PAIR];
    if (what > 1)
        return cell[2 * (what - 2)];
    for (int c = 0; c < STATS_CLASSES; c++)
        sum += cell[2 * c + what];
    return sum;
}
