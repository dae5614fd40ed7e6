/* What the seed decides: how large the job is, how its machines and its network are, what its PEs
 * do, and what happens to them. A plan can be cut down: to fewer PEs, steps and faults. */
#ifndef TEST_SIMULATION_PLAN_H
#define TEST_SIMULATION_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STEPS_MOST = 64,
    FAULTS_MOST = 8,
};

enum fault_kind {
    FAULT_PAUSE,     /* a process stands still, shorter than GSHMEM_PEER_TIMEOUT */
    FAULT_PARTITION, /* some PEs cannot reach others, for as short a time */
    FAULT_CLOG,      /* all packets are late for a while */
    FAULT_CUT,       /* a connection is reset: from here on, failures are allowed */
    FAULT_KILL,      /* a process dies */
    FAULT_CRASH,     /* a machine vanishes */
    FAULT_SEPARATE,  /* a partition that does not end */
    FAULT_STOP,      /* a process stands still for longer than that */
    FAULT_KINDS
};

struct fault {
    enum fault_kind kind;
    int pe, step;    /* it happens when this PE begins this step, and */
    uint64_t delay;  /* so many ns later; */
    uint64_t lasts;
    uint64_t from, to; /* of a partition: bits of node % 64, */
    bool both;         /* and whether it closes both ways */
};

struct plan {
    int steps;
    bool step[STEPS_MOST]; /* which are done */
    int faults;
    struct fault fault[FAULTS_MOST];
    bool happens[FAULTS_MOST];
    int pes_of_node;
    int peer_timeout; /* seconds */
    bool uid; /* the job begins by a unique id, over the network */
    bool wide; /* half of its steps are of more kinds, and settings differ */
    bool kernels, gpu; /* kernels write commands; heaps are in the memory of a simulated GPU */
};

extern struct plan plan;

/* pes: 0: as the seed says. may_be_wide: as the seed says, otherwise not. */
void plan_make(uint64_t seed, int pes, bool may_be_wide);
/* Keeps only those of a list "1,4,7-9"; false: it is not one. */
bool plan_keep(const char *list, bool *kept, int n);
/* A PE begins a step: the faults that wait for that happen. */
void plan_step(int pe, int step);
const char *fault_name(enum fault_kind kind);

#endif
