#define _GNU_SOURCE
#include "bootstrap/uid/id.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bootstrap/uid/siphash.h"
#include "runtime/base/listen.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"
#include "runtime/base/system.h"

enum {
    MAGIC = 0x4d485347, /* "GSHM" */
    LISTENERS_MAX = 64, /* ids of one process that are not in use yet: more is a loop gone wrong */
};

/* Ids that this process has made, until gshmem_init_attr takes them. */
struct listener {
    struct listener *next;
    int fd[UID_ADDRESSES]; /* as many as the id has addresses */
    int n;
    pid_t process; /* a child of fork has the list, but must not answer for its parent */
    unsigned char secret[UID_SECRET_BYTES];
};

static struct listener *listeners;
static pthread_mutex_t listeners_lock = PTHREAD_MUTEX_INITIALIZER;

static uint32_t checksum(const struct uid_id *id)
{
    static const unsigned char no_key[16];

    return (uint32_t)siphash(no_key, id, offsetof(struct uid_id, checksum));
}

bool uid_id_decode(const struct gshmem_uniqueid *from, struct uid_id *id)
{
    memcpy(id, from->opaque, sizeof *id);
    return from->version == UID_VERSION && id->magic == MAGIC && id->checksum == checksum(id) &&
           id->n_addresses >= 1 && id->n_addresses <= UID_ADDRESSES;
}

/* ---- Addresses ---- */

socklen_t uid_address(const struct uid_id *id, int i, struct sockaddr_storage *to)
{
    struct in6_addr a;

    memset(to, 0, sizeof *to);
    memcpy(&a, id->address[i], sizeof a);
    if (IN6_IS_ADDR_V4MAPPED(&a)) {
        struct sockaddr_in *v4 = (struct sockaddr_in *)to;
        v4->sin_family = AF_INET;
        v4->sin_port = id->port;
        memcpy(&v4->sin_addr, id->address[i] + 12, 4);
        return sizeof *v4;
    }
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)to;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = id->port;
    v6->sin6_addr = a;
    return sizeof *v6;
}

void uid_address_text(const struct sockaddr_storage *address, char *text, size_t size)
{
    char ip[INET6_ADDRSTRLEN] = "?";

    if (address->ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
        inet_ntop(AF_INET, &v4->sin_addr, ip, sizeof ip);
        snprintf(text, size, "%s:%u", ip, ntohs(v4->sin_port));
        return;
    }
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    inet_ntop(AF_INET6, &v6->sin6_addr, ip, sizeof ip);
    snprintf(text, size, "[%s]:%u", ip, ntohs(v6->sin6_port));
}

/* The order in which other PEs try the addresses: IPv4, then IPv6, of a network; loopback serves
 * PEs of this machine alone and comes last. -1: not an address that others could use. */
static int preference(const struct ifaddrs *i)
{
    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP))
        return -1;
    if (i->ifa_addr->sa_family == AF_INET)
        return i->ifa_flags & IFF_LOOPBACK ? 2 : 0;
    if (i->ifa_addr->sa_family != AF_INET6)
        return -1;
    const struct sockaddr_in6 *a = (const struct sockaddr_in6 *)i->ifa_addr;
    /* A link-local address means nothing without the number that an interface has on one
     * machine. */
    if (IN6_IS_ADDR_LINKLOCAL(&a->sin6_addr))
        return -1;
    return i->ifa_flags & IFF_LOOPBACK ? 3 : 1;
}

/* Whether GSHMEM_UID_IF allows an interface. */
static bool is_wanted(const char *list, const char *name)
{
    const bool others = *list == '^';

    if (!*list)
        return true;
    for (const char *at = list + others; *at; at += strcspn(at, ","), at += *at == ',') {
        const bool exact = *at == '=';
        const size_t n = strcspn(at + exact, ",");
        if (n > 0 && strncmp(name, at + exact, n) == 0 && (!exact || !name[n]))
            return !others;
    }
    return others;
}

static void add_address(struct uid_id *id, const struct sockaddr *address)
{
    unsigned char *to = id->address[id->n_addresses];

    if (address->sa_family == AF_INET) {
        memset(to, 0, 10);
        memset(to + 10, 0xff, 2);
        memcpy(to + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
    } else {
        memcpy(to, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
    }
    for (int i = 0; i < id->n_addresses; i++) {
        if (memcmp(id->address[i], to, 16) == 0)
            return; /* two interfaces may have it */
    }
    id->n_addresses++;
}

static gshmem_status_t id_find_addresses(struct uid_id *id)
{
    struct ifaddrs *all;
    char wished[256];

    if (!settings_look(SETTING_UID_IF, wished, sizeof wished))
        return GSHMEM_ERR_ARGUMENT;
    if (getifaddrs(&all) != 0)
        return fail(GSHMEM_ERR_SYSTEM, "gshmem_get_uniqueid: cannot list network interfaces: %s",
                    strerror(errno));
    for (int wanted = 0; wanted <= 3; wanted++) {
        for (struct ifaddrs *i = all; i; i = i->ifa_next) {
            /* The last place is kept for loopback. */
            int room = wanted < 2 ? UID_ADDRESSES - 1 : UID_ADDRESSES;
            if (preference(i) == wanted && id->n_addresses < room && is_wanted(wished, i->ifa_name))
                add_address(id, i->ifa_addr);
        }
    }
    freeifaddrs(all);
    if (id->n_addresses == 0)
        return fail(GSHMEM_ERR_BOOTSTRAP,
                    "gshmem_get_uniqueid: no network interface%s%s has an address, "
                    "not even loopback",
                    *wished ? " of GSHMEM_UID_IF=" : "", wished);
    return GSHMEM_OK;
}

/* ---- Listening ---- */

/* Listens at each of the id's addresses; removes those where it cannot. */
static gshmem_status_t start_listening(struct uid_id *id, int fd[UID_ADDRESSES], int *n)
{
    struct sockaddr_storage where[UID_ADDRESSES];
    gshmem_status_t status = id_find_addresses(id);
    int all[UID_ADDRESSES];

    *n = 0;
    if (status)
        return status;
    for (int i = 0; i < id->n_addresses; i++)
        uid_address(id, i, &where[i]);
    uint16_t port = listen_on_all(where, id->n_addresses, all);
    for (int i = 0; port && i < id->n_addresses; i++) {
        if (all[i] < 0)
            continue;
        memmove(id->address[*n], id->address[i], sizeof id->address[i]);
        fd[(*n)++] = all[i];
    }
    if (*n == 0)
        return fail(GSHMEM_ERR_SYSTEM, "gshmem_get_uniqueid: cannot listen on a TCP port: %s",
                    log_errno(errno));
    memset(id->address[*n], 0, sizeof id->address[0] * (size_t)(UID_ADDRESSES - *n));
    id->n_addresses = (uint8_t)*n;
    id->port = htons(port);
    return GSHMEM_OK;
}

static gshmem_status_t id_remember(const struct uid_id *id, const int *fd, int n_fds)
{
    struct listener *new = malloc(sizeof *new);
    int n = 0;

    if (!new)
        return fail(GSHMEM_ERR_MEMORY, "gshmem_get_uniqueid: out of memory");
    *new = (struct listener){.n = n_fds, .process = getpid()};
    memcpy(new->fd, fd, sizeof *fd * (size_t)n_fds);
    memcpy(new->secret, id->secret, sizeof new->secret);
    pthread_mutex_lock(&listeners_lock);
    for (struct listener *l = listeners; l; l = l->next)
        n++;
    if (n < LISTENERS_MAX) {
        new->next = listeners;
        listeners = new;
    }
    pthread_mutex_unlock(&listeners_lock);
    if (n < LISTENERS_MAX)
        return GSHMEM_OK;
    free(new);
    return fail(GSHMEM_ERR_STATE,
                "gshmem_get_uniqueid: %d ids of this process wait to be used by gshmem_init_attr",
                n);
}

int uid_take_listeners(const struct uid_id *id, int fd[UID_ADDRESSES])
{
    int n = 0;

    pthread_mutex_lock(&listeners_lock);
    for (struct listener **at = &listeners; *at; at = &(*at)->next) {
        struct listener *l = *at;
        if (l->process == getpid() && memcmp(l->secret, id->secret, sizeof l->secret) == 0) {
            n = l->n;
            memcpy(fd, l->fd, sizeof l->fd);
            *at = l->next;
            free(l);
            break;
        }
    }
    pthread_mutex_unlock(&listeners_lock);
    return n;
}

GSHMEM_API gshmem_status_t gshmem_get_uniqueid(gshmem_uniqueid_t *uid)
{
    struct uid_id id = {.magic = MAGIC};
    int fd[UID_ADDRESSES], n;

    if (!uid)
        return fail(GSHMEM_ERR_ARGUMENT, "gshmem_get_uniqueid: uid is NULL");
    if (!system_random(id.secret, sizeof id.secret))
        return fail(GSHMEM_ERR_SYSTEM, "gshmem_get_uniqueid: no random bytes from the system: %s",
                    strerror(errno));
    gshmem_status_t status = start_listening(&id, fd, &n);
    if (!status)
        status = id_remember(&id, fd, n);
    if (status) {
        while (n > 0)
            close(fd[--n]);
        return status;
    }
    id.checksum = checksum(&id);
    uid->version = UID_VERSION;
    memcpy(uid->opaque, &id, sizeof id);
    return GSHMEM_OK;
}
