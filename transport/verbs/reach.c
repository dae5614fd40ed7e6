/* Which PEs verbs may reach: what each says of itself where it publishes its address, behind that of the
 * transport below. Whoever says nothing uses that one alone, and is told nothing: it would not listen. */
#include <stdio.h>
#include <string.h>

#include "transport/verbs/verbs.h"

/* "GSHv", a version, and which kinds of link there are. */
enum { RECORD_BYTES = 6, RECORD_VERSION = 1, KIND_ETHERNET = 1, KIND_INFINIBAND = 2, KIND_IWARP = 4 };

static const char magic[4] = {'G', 'S', 'H', 'v'};

static unsigned kinds(const struct verbs *v)
{
    unsigned all = 0;

    for (int i = 0; i < v->nics; i++)
        all |= v->nic[i].iwarp ? KIND_IWARP : v->nic[i].ethernet ? KIND_ETHERNET : KIND_INFINIBAND;
    return all;
}

static const char *kinds_text(unsigned kinds)
{
    static const char *const texts[] = {
        "no NIC that can be used", "Ethernet", "InfiniBand", "Ethernet and InfiniBand", "iWARP",
        "Ethernet and iWARP", "InfiniBand and iWARP", "Ethernet, InfiniBand and iWARP"};

    return texts[kinds & 7];
}

gshmem_status_t reach_publish(const struct verbs *v, void *address, size_t capacity, size_t *bytes)
{
    unsigned char *at = (unsigned char *)address + *bytes;

    if (capacity - *bytes < RECORD_BYTES)
        return v->config.fail(GSHMEM_ERR_TRANSPORT, "verbs: no room to publish that it is there");
    memcpy(at, magic, sizeof magic);
    at[4] = RECORD_VERSION;
    at[5] = (unsigned char)kinds(v);
    *bytes += RECORD_BYTES;
    return GSHMEM_OK;
}

bool reach_might(const struct verbs *v, int pe, char *why, size_t why_size)
{
    unsigned char address[TRANSPORT_ADDRESS_MAX];
    const unsigned mine = kinds(v);
    size_t bytes = 0;

    if (!mine) {
        snprintf(why, why_size, "this PE does not use its NICs");
        return false;
    }
    if (v->config.find(v->config.context, pe, address, sizeof address, &bytes))
        return true; /* has been logged; that PE cannot be reached at all, and the one below finds that out */
    const unsigned char *at = address + bytes - RECORD_BYTES;
    if (bytes < RECORD_BYTES || memcmp(at, magic, sizeof magic) != 0 || at[4] != RECORD_VERSION) {
        snprintf(why, why_size, "it uses %s alone (GSHMEM_TRANSPORT, or no NIC there: gshmem-info)",
                 v->below->ops->name);
        return false;
    }
    if (at[5] & mine)
        return true;
    snprintf(why, why_size, "it has %s, this PE %s", kinds_text(at[5]), kinds_text(mine));
    return false;
}
