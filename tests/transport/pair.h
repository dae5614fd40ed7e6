/* Two PEs of the TCP transport in one process, driven in turn, over loopback; and who comes to their ports
 * by hand. For the tests of the transport without a runtime. */
#ifndef GSHMEM_TESTS_TRANSPORT_PAIR_H
#define GSHMEM_TESTS_TRANSPORT_PAIR_H

#include "gshmem/rma.h"
#include "gshmem/type.h"

#include "check.h"
#include "runtime/base/clock.h"
#include "runtime/base/settings.h"
#include "transport/tcp/address.h"
#include "transport/tcp/greeting.h"
#include "transport/tcp/state.h"

enum { PES = 5 /* of which two are there */, SEGMENT = 8 << 20, SECRET_BYTE = 0x5a };

struct pe {
    struct transport *t;
    struct transport_config config;
    unsigned char address[TRANSPORT_ADDRESS_MAX];
    size_t address_bytes;
    int lost, refusals;
    gshmem_status_t lost_by;
    int notified[8], tellings; /* by the other, of whom */
    unsigned char note[4096]; /* what was heard, one after another */
    size_t note_bytes;
    unsigned char *memory; /* guard, segment, guard */
};

extern struct pe pe[PES]; /* of the others, the address where somebody stands in for them */
extern int complaints;    /* lines that the transport would have logged */

/* What has become of the requests since begin; the last tag is the number of the last that has ended. */
extern int ok, not_ok, posted, last_tag;

/* Opens both, with nothing done yet. */
void begin(void);
/* Ends it, and checks that nothing was written beside its segment. */
void close_pe(int me);

/* What has moved. */
int drive(void);
/* One of the two, while the other does nothing. */
void drive_one(int which);

/* A request to r.pe, or if that is `from` itself to the other one of the two. */
gshmem_status_t try_post(int from, struct transport_request r);
void post(int from, struct transport_request r);
/* Until all have ended. */
void settle(void);

/* A put of a number to PE `to`. */
struct transport_request small_put(int to);
char *segment_of(int which);
/* That there are zeros and nothing else. */
void untouched(int which);

/* ---- By hand ---- */

/* A connection to its port. */
int dial(int which);
void send_all(int fd, const void *data, size_t bytes);
/* Whether the other side ends the connection while both are driven, within so many seconds. */
int is_ended(int fd, int seconds);
struct hello right_hello(void);
/* Says a right hello to PE 1; the proof that belongs to it, by that secret, goes to *proof. */
int say_hello(unsigned char secret_byte, unsigned char challenge[CHALLENGE_BYTES],
              unsigned char proof[PROOF_BYTES]);
int enter_as_pe(void); /* 0, at PE 1 */
int enter_as(int who); /* the same as another */
/* A socket to which the others come in place of that PE. */
int stand_in_for(int which);
/* The acceptor's part, by that secret: with the welcome if it is right. */
int greet_at(int door, unsigned char secret_byte);

#endif
