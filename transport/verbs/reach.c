/* Which PEs verbs reaches, and by which NICs. Each PE publishes its NICs behind the address of the
 * transport below. A PE that publishes none uses that transport alone, and is sent no control
 * message. */
#include <stdio.h>

#include "transport/verbs/reach.h"
#include "transport/verbs/verbs.h"

static unsigned reach_kinds(const struct rail_end *end, int n)
{
    unsigned all = 0;

    for (int i = 0; i < n; i++)
        all |= 1u << end[i].kind;
    return all;
}

static const char *reach_kinds_text(unsigned kinds)
{
    static const char *const texts[] = {"no NIC that can be used",
                                        "InfiniBand",
                                        "Ethernet",
                                        "Ethernet and InfiniBand",
                                        "iWARP",
                                        "InfiniBand and iWARP",
                                        "Ethernet and iWARP",
                                        "Ethernet, InfiniBand and iWARP"};

    return texts[kinds & 7];
}

static int reach_own_ends(const struct verbs *v, struct rail_end end[NICS_MOST])
{
    for (int i = 0; i < v->nics; i++) {
        const struct nic *nic = &v->nic[i];
        end[i] = (struct rail_end){
            .subnet = nic->addresses ? addresses_subnet(&nic->address[0]) : 0,
            .place = nic->place,
            .distance = nic->distance,
            .kind = nic->iwarp      ? RAIL_IWARP
                    : nic->ethernet ? RAIL_ETHERNET
                                    : RAIL_INFINIBAND,
        };
    }
    return v->nics;
}

gshmem_status_t reach_publish(const struct verbs *v, void *address, size_t capacity, size_t *bytes)
{
    struct rail_end own[NICS_MOST];
    const int n = reach_own_ends(v, own);
    const size_t more = rails_encode((unsigned char *)address + *bytes, capacity - *bytes, own, n);

    if (!more)
        return v->config.fail(GSHMEM_ERR_TRANSPORT, "verbs: no room to publish that it is there");
    *bytes += more;
    return GSHMEM_OK;
}

int reach_find(const struct verbs *v, int pe, bool here, struct rail rail[RAILS_MOST], int *updater,
               char *why, size_t why_size)
{
    unsigned char address[TRANSPORT_ADDRESS_MAX];
    struct rail_end own[NICS_MOST], other[NICS_MOST];
    const int n = reach_own_ends(v, own);
    size_t bytes = 0;
    gshmem_status_t status;
    int others;

    if (!n) {
        snprintf(why, why_size, "this PE does not use its NICs");
        return 0;
    }
    status = v->config.find(v->config.context, pe, address, sizeof address, &bytes);
    if (status == TRANSPORT_FULL)
        return -1;
    if (status) {
        snprintf(why, why_size, "its address is not known"); /* logged already */
        return 0;
    }
    if ((others = rails_decode(address, bytes, other)) < 0) {
        snprintf(why, why_size, "it uses %s alone (GSHMEM_TRANSPORT, or no NIC there: gshmem-info)",
                 v->below->ops->name);
        return 0;
    }
    int rails = rails_pair(own, n, other, others, v->config.pe < pe, rail);
    if (!rails)
        snprintf(why, why_size, "it has %s, this PE %s",
                 reach_kinds_text(reach_kinds(other, others)),
                 reach_kinds_text(reach_kinds(own, n)));
    else if (here) /* for atomics alone */
        rails = rails_of_updaters(own, n, other, others, rail);
    else if (!v->config.device) /* else the GPU updates its memory */
        rails = rails_with_updaters(own, n, other, others, rail, rails);
    *updater = rails - 1;
    while (*updater >= 0 && rail[*updater].theirs != rails_updater(other, others))
        --*updater;
    return rails;
}

int reach_updater(const struct verbs *v, uint32_t *fabric)
{
    struct rail_end own[NICS_MOST] = {{0}};
    const int n = reach_own_ends(v, own), i = rails_updater(own, n);

    *fabric = n == 1 ? (own[i].kind + 1u) << 8
                     : own[i].subnet ^ (uint32_t)(own[i].place + 1) * 0x9e3779b1u;
    return i;
}
