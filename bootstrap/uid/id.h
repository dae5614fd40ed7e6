/* The unique id: where PE 0 listens, and the secret that tells its job's PEs from strangers. */
#ifndef GSHMEM_UID_ID_H
#define GSHMEM_UID_ID_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "bootstrap/uid/frame.h"
#include "gshmem.h"

enum { UID_ADDRESSES = 5 };

/* What the opaque bytes hold. Addresses are IPv6; an IPv4 one is ::ffff:a.b.c.d. */
struct uid_id {
    uint32_t magic;
    uint16_t port; /* in network order */
    uint8_t n_addresses;
    uint8_t reserved;
    unsigned char secret[UID_SECRET_BYTES];
    unsigned char address[UID_ADDRESSES][16];
    uint32_t checksum; /* of all before */
};

static_assert(sizeof(struct uid_id) == sizeof(((struct gshmem_uniqueid *)0)->opaque),
              "the id fills the opaque bytes");

/* False: these are not the bytes of an id of this version of GSHMEM, or not all of them. */
bool uid_id_decode(const struct gshmem_uniqueid *from, struct uid_id *id);

/* The sockets that this process listens on for the id, and how many they are. They are then the
 * caller's. 0: this process did not make the id, or has used it before. */
int uid_take_listeners(const struct uid_id *id, int fd[UID_ADDRESSES]);

/* The i-th address as one to connect to; its length. */
socklen_t uid_address(const struct uid_id *id, int i, struct sockaddr_storage *to);
/* The same for people: "10.0.0.1:4242" or "[fd00::1]:4242". */
void uid_address_text(const struct sockaddr_storage *address, char *text, size_t size);

#endif
