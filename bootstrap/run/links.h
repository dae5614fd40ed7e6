/* The launcher's ends of the PEs' wires. Moves messages, knows nothing of what they say. */
#ifndef GSHMEM_BOOTSTRAP_RUN_LINKS_H
#define GSHMEM_BOOTSTRAP_RUN_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct link {
    int wire;  /* -1: closed */
    int watch; /* readable when the program that a wrapper runs has ended; -1: none */
};

struct links {
    int n;
    int epoll;
    struct link *link; /* [pe] */
};

/* What an event of the epoll is about: a PE's wire, a PE's watch, or a descriptor of another's. */
enum links_kind { LINKS_WIRE, LINKS_WATCH, LINKS_OTHER };

static inline enum links_kind links_kind(uint64_t data)
{
    return (enum links_kind)(data >> 32);
}

static inline int links_pe(uint64_t data) /* LINKS_OTHER: the descriptor */
{
    return (int)(uint32_t)data;
}

bool links_start(struct links *l, int n, int epoll); /* errno says why not, here and below */
void links_stop(struct links *l);
bool links_add_other(struct links *l, int fd);

/* Makes a PE's wire; returns the PE's end, or -1. */
int links_open(struct links *l, int pe);
void links_close(struct links *l, int pe);

/* The length of a message, which is more than was received if there was no room for it all; -1 if
 * none is there; 0 also if the PE has hung up. *sender is the process that sent it. */
ssize_t links_receive(struct links *l, int pe, unsigned char *message, size_t room, pid_t *sender);
bool links_hung_up(const struct links *l, int pe);
/* As server_send; true also if the PE is no more there to take it. */
bool links_send(void *links, int pe, const unsigned char *message, size_t bytes);

/* False: that process is no more there. */
bool links_watch(struct links *l, int pe, pid_t pid);
/* The event may be of one that was watched before. */
bool links_watched_has_ended(const struct links *l, int pe);
void links_unwatch(struct links *l, int pe);

#endif
