/* Pairs of NICs of two PEs, the best first.
 *
 * 1. NICs of one known subnet reach each other. If there are such, no others are paired, as the
 *    rails of a network need not be connected.
 * 2. Pairs that are nearest to their PEs come first;
 * 3. of equally near ones those in the same place on their machines, which are mostly on one
 *    switch;
 * 4. then those that their PEs prefer. */

#include "transport/verbs/rails.h"

#include <string.h>

static const char magic[4] = {'G', 'S', 'H', 'v'};

/* ---- Published ---- */

size_t rails_encode(unsigned char *to, size_t room, const struct rail_end *end, int n)
{
    const size_t bytes = RAILS_HEAD + (size_t)n * RAILS_END + 1;

    if (room < bytes)
        return 0;
    memcpy(to, magic, sizeof magic);
    to[4] = RAILS_VERSION;
    for (int i = 0; i < n; i++) {
        unsigned char *at = to + RAILS_HEAD + i * RAILS_END;
        for (int k = 0; k < 4; k++)
            at[k] = (unsigned char)(end[i].subnet >> 8 * k);
        at[4] = end[i].place;
        at[5] = (unsigned char)(end[i].distance | end[i].kind << 4);
    }
    to[bytes - 1] = (unsigned char)n;
    return bytes;
}

int rails_decode(const unsigned char *in, size_t bytes, struct rail_end end[NICS_MOST])
{
    const int n = bytes ? in[bytes - 1] : 0;
    const size_t all = RAILS_HEAD + (size_t)n * RAILS_END + 1;

    if (bytes < all || n > NICS_MOST)
        return -1;
    in += bytes - all;
    if (memcmp(in, magic, sizeof magic) != 0 || in[4] != RAILS_VERSION)
        return -1;
    for (int i = 0; i < n; i++) {
        const unsigned char *at = in + RAILS_HEAD + i * RAILS_END;
        end[i] = (struct rail_end){.place = at[4], .distance = at[5] & 15, .kind = at[5] >> 4};
        for (int k = 0; k < 4; k++)
            end[i].subnet |= (uint32_t)at[k] << 8 * k;
        if (end[i].kind >= RAIL_KINDS)
            return -1;
    }
    return n;
}

uint32_t rails_subnet(const unsigned char address[16], unsigned prefix)
{
    uint32_t digest = 2166136261u ^ prefix;

    for (unsigned i = 0; i < 16 && i * 8 < prefix; i++) {
        const unsigned rest = prefix - i * 8, mask = rest >= 8 ? 0xff : 0xff00u >> rest & 0xff;
        digest = (digest ^ (address[i] & mask)) * 16777619u;
    }
    return digest ? digest : 1;
}

/* ---- Pairs ---- */

static bool rails_same_subnet(const struct rail_end *a, const struct rail_end *b)
{
    return a->kind == b->kind && a->subnet && a->subnet == b->subnet;
}

/* Less is better. */
static uint32_t worth(const struct rail_end *a, const struct rail_end *b, int i, int j, bool first)
{
    const uint32_t distance = a->distance + b->distance, apart = a->place != b->place;

    return ((distance * 2 + apart) * 2 * NICS_MOST + (uint32_t)(i + j)) * NICS_MOST +
           (uint32_t)(first ? i : j);
}

int rails_pair(const struct rail_end *mine, int n_mine, const struct rail_end *theirs, int n_theirs,
               bool first, struct rail rail[RAILS_MOST])
{
    unsigned my_taken = 0, their_taken = 0;
    bool known = false;
    int n = 0;

    for (int i = 0; i < n_mine; i++) {
        for (int j = 0; j < n_theirs; j++)
            known |= rails_same_subnet(&mine[i], &theirs[j]);
    }
    for (; n < RAILS_MOST; n++) {
        uint32_t best = UINT32_MAX;
        for (int i = 0; i < n_mine; i++) {
            for (int j = 0; j < n_theirs; j++) {
                const uint32_t w = worth(&mine[i], &theirs[j], i, j, first);
                if (my_taken >> i & 1 || their_taken >> j & 1 || mine[i].kind != theirs[j].kind ||
                    (known && !rails_same_subnet(&mine[i], &theirs[j])) || w >= best)
                    continue;
                best = w;
                rail[n] = (struct rail){(uint8_t)i, (uint8_t)j};
            }
        }
        if (best == UINT32_MAX)
            break;
        my_taken |= 1u << rail[n].mine;
        their_taken |= 1u << rail[n].theirs;
    }
    return n;
}

/* ---- Who updates ---- */

int rails_updater(const struct rail_end *end, int n)
{
    int first = 0;

    for (int i = 1; i < n; i++) {
        if (end[i].place < end[first].place)
            first = i;
    }
    return first;
}

int rails_of_updaters(const struct rail_end *mine, int n_mine, const struct rail_end *theirs,
                      int n_theirs, struct rail rail[RAILS_MOST])
{
    rail[0] = (struct rail){(uint8_t)rails_updater(mine, n_mine),
                            (uint8_t)rails_updater(theirs, n_theirs)};
    return 1;
}

int rails_with_updaters(const struct rail_end *mine, int n_mine, const struct rail_end *theirs,
                        int n_theirs, struct rail rail[RAILS_MOST], int n)
{
    const int i = rails_updater(mine, n_mine), j = rails_updater(theirs, n_theirs);
    bool has_mine = false, has_theirs = false;

    for (int k = 0; k < n; k++) {
        has_mine |= rail[k].mine == i;
        has_theirs |= rail[k].theirs == j;
    }
    if (!n || (has_mine && has_theirs) || !rails_same_subnet(&mine[i], &theirs[j]) ||
        mine[i].place != theirs[j].place)
        return n;
    n -= n == RAILS_MOST;
    rail[n] = (struct rail){(uint8_t)i, (uint8_t)j};
    return n + 1;
}
