/* What gshmemrun knows of its PEs from their messages, and what it responds.
 *
 * One state machine for all PEs of a job. It takes messages and makes responses, and knows nothing
 * of sockets, processes or time, so that a test, or a fuzzer, can play any job. Every message is
 * hostile input: the first that is wrong ends the job, with a line that names the PE. */
#ifndef GSHMEM_BOOTSTRAP_RUN_SERVER_H
#define GSHMEM_BOOTSTRAP_RUN_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bootstrap/run/wire.h"

struct server_pe {
    bool open;      /* between hello and goodbye */
    unsigned hellos;
    bool gone;      /* its process has ended in good order: it will not say more */
    bool fenced;    /* waits in the fence of its round */
    uint32_t round; /* that it has published last; 0: none */
    uint16_t bytes[2];
    unsigned char blob[2][BOOTSTRAP_BLOB_MAX]; /* by round & 1: some may still fetch the last one */
};

/* Delivers an answer; false if the PE cannot take it. */
typedef bool server_send(void *context, int pe, const unsigned char *message, size_t bytes);

struct server {
    int n_pes;
    int n_nodes;
    uint32_t job;
    server_send *send;
    void *context;

    uint32_t released; /* the last round that all PEs have fenced */
    int fenced;        /* PEs that wait in the fence of the next */
    int gone;
    struct server_pe *pe;

    /* Why the job is over, if it is. */
    bool ended;
    int status;     /* what gshmemrun shall exit with */
    char text[400]; /* a line for people, without control characters; "" if there is none */
};

/* n_nodes is 1 … n_pes. False if there is no memory. */
bool server_start(struct server *s, int n_pes, int n_nodes, uint32_t job, server_send *send,
                  void *context);
void server_stop(struct server *s);

/* Takes one message of a PE, and answers. False: the job is over. */
bool server_receive(struct server *s, int pe, const unsigned char *message, size_t bytes);
/* A PE's process has ended with status 0. False: the job is over. */
bool server_left(struct server *s, int pe);

#endif
