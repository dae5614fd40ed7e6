/* The channels of a job's kernels as a source of the network's: their commands go to transports,
 * and their failures to the error policy. */
#ifndef GSHMEM_RUNTIME_PROXY_SERVICE_H
#define GSHMEM_RUNTIME_PROXY_SERVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/memory/pages.h"
#include "runtime/network/network.h"
#include "runtime/proxy/carried.h"
#include "runtime/proxy/channel.h"
#include "runtime/proxy/memory.h"
#include "runtime/teams/team.h"

struct job;

enum { RAISED_MOST = 8 };

/* A failure of a kernel's operation on its way to the error policy. */
struct raised {
    gshmem_status_t status;
    struct proxy_answer then;
    char text[400];
};

/* For each lane: a kernel reads only the word of the proxy that takes its command. */
struct proxy_asleep {
    _Alignas(KERNEL_LINE) uint32_t word;
};

struct service {
    struct network_source source; /* first */
    struct job *job;
    struct network *network; /* the lane that takes from it */
    struct service *first;   /* that of lane 0 */
    struct proxy_way way; /* the means to carry out commands of kernels */
    struct proxy_channel **channel;
    int channels;
    struct carried carried; /* the last small command of a traced job, if it is not written yet */
    _Atomic uint32_t streams; /* of lane 0: channels there have been so far, for ids of the trace */
    int channels_room;
    uint32_t *asleep; /* shared with kernels: not 0: the lane's proxy has to be woken */
    struct pages pages;
    struct raised raise[RAISED_MOST]; /* for the proxy thread, which does not hold the lock then */
    _Atomic int raised;
    /* Whose block of synchronization has this address; -1: none. Set before service_start. These
     * three are lane 0's. */
    int (*team_of_sync)(const struct job *j, const void *address);
    /* [team]: 0, or why a word of a round of its kernels was not sent; with the job's lock they
     * become the teams' failures */
    _Atomic uint8_t unsent[TEAM_MAX];
    _Atomic bool any_unsent;
};

/* Functions that take all of them, one for each lane, have them as `s`; others take one. */

/* From now on each lane of the network takes from the channels that are added to its service.
 * look_after: as in struct network_source; lane 0's proxy calls it. */
gshmem_status_t service_start(struct service *s, struct job *j, struct gshmem_response *response,
                              struct proxy_asleep *asleep,
                              void (*look_after)(struct network_source *s));
/* Channels whose first command does not complete: the watchdog logs them once; they are given to
 * `show` all the time, with that command's PE and text. All. */
typedef void service_show_fn(struct job *j, int channel, int pe, const char *text, uint64_t since);
void service_watch(struct service *s, service_show_fn *show);
/* After network_stop. All. */
void service_stop(struct service *s);

gshmem_status_t service_add_channel(struct service *s, struct proxy_channel *c);
/* channel_sent, with the lock; and the end of a channel that was added. */
uint64_t service_sent(struct proxy_channel *c);
void service_remove_channel(struct proxy_channel *c);

/* For a thread of the host device that has written a command: wakes the proxy with that word, or
 * does its work. All. */
void service_wake(struct service *s, const uint32_t *asleep);
/* For one that waits: the same for lane 0. Of further lanes it does the work where there is some,
 * and wakes nobody. All. */
void service_help(struct service *s);
/* The same for a thread that waits for other PEs' updates. It does nothing where all PEs are on
 * this node and a proxy sleeps, since a proxy sleeps only when it has taken all commands. All. */
void service_receive(struct service *s);

#endif
