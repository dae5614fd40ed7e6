#include "transport/verbs/known.h"

#include <stddef.h>

enum { ANY = 0x7fffffff };

/* ConnectX-8 and later place writes out of order where adaptive routing is on, which firmware may
 * switch on by itself. Intel's driver returns the rq_psn that it was given. Broadcom's asks the
 * NIC's firmware, whose value has not been seen to follow the packets. */
static const struct known devices[] = {
    {0xffffff, 0, ANY, "soft-RoCE", .ordered = true, .tells_packet = true, .cannot_fence = true},
    {0x02c9, 4096, 4130, "ConnectX to ConnectX-7", .ordered = true, .tells_packet = true},
    {0x02c9, 41682, 41692, "BlueField to BlueField-3", .ordered = true, .tells_packet = true},
    {0x02c9, 0, ANY, "ConnectX-8 or later", .tells_packet = true},
    {0x14e4, 0, ANY, "Broadcom", .ordered = true},
    {0x8086, 0, ANY, "Intel", .ordered = true},
    {0x19e5, 0, ANY, "HiSilicon", .ordered = true, .tells_packet = true},
    {0x1077, 0, ANY, "Marvell", .ordered = true, .tells_packet = true},
};

static const struct known unknown = {.name = "an unknown device"};

const struct known *known_of(const struct ibv_device_attr *device)
{
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        const struct known *k = &devices[i];
        if (device->vendor_id == k->vendor && device->vendor_part_id >= k->first_part &&
            device->vendor_part_id <= k->last_part)
            return k;
    }
    return &unknown;
}
