#include "runtime/network/lanes.h"

#include <stdbool.h>
#include <string.h>

int64_t lanes_share(const char *setting, int64_t value, int lanes)
{
    const bool of_nic =
        strcmp(setting, "IB_INFLIGHT") == 0 || strcmp(setting, "IB_INFLIGHT_REQUESTS") == 0;

    return of_nic ? (value + lanes - 1) / lanes : value; /* 0, no limit, stays 0 */
}

enum { LANE_HEAD = 3 /* bytes before those that differ */ };

size_t lanes_encode(const unsigned char *first, size_t first_bytes, const unsigned char *address,
                    size_t bytes, unsigned char *out, size_t capacity)
{
    const size_t least = bytes < first_bytes ? bytes : first_bytes;
    size_t begin = 0, end = 0;

    while (begin < least && begin < UINT8_MAX && address[begin] == first[begin])
        begin++;
    while (end < least - begin && end < UINT8_MAX &&
           address[bytes - 1 - end] == first[first_bytes - 1 - end])
        end++;
    const size_t differ = bytes - begin - end;
    if (differ > UINT8_MAX || capacity < LANE_HEAD + differ)
        return 0;
    out[0] = (unsigned char)begin;
    out[1] = (unsigned char)end;
    out[2] = (unsigned char)differ;
    memcpy(out + LANE_HEAD, address + begin, differ);
    return LANE_HEAD + differ;
}

size_t lanes_decode(const unsigned char *first, size_t first_bytes, const unsigned char *published,
                    size_t published_bytes, int number, unsigned char *out, size_t capacity)
{
    const unsigned char *at = published, *past = published + published_bytes;

    for (; past - at >= LANE_HEAD && past - at - LANE_HEAD >= at[2]; at += LANE_HEAD + at[2]) {
        const size_t begin = at[0], end = at[1], differ = at[2];
        if (--number > 0)
            continue;
        if (begin + end > first_bytes || begin + differ + end > capacity)
            return 0;
        memcpy(out, first, begin);
        memcpy(out + begin, at + LANE_HEAD, differ);
        memcpy(out + begin + differ, first + first_bytes - end, end);
        return begin + differ + end;
    }
    return 0;
}
