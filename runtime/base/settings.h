/* Every setting GSHMEM reads, in one table: parsing, checking, printing and documentation follow.
 *
 * Settings come from environment variables and are read once per gshmem_init. A value that cannot
 * be parsed or is out of range is an error that names the variable and the values it accepts. A
 * GSHMEM_… variable that is not in the table causes a warning, with the nearest name. */
#ifndef GSHMEM_BASE_SETTINGS_H
#define GSHMEM_BASE_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gshmem/status.h"

/* A setting is a row here and nothing else. The variable is GSHMEM_ and the id.
 * Switches are choices with OFF: 0, no and false mean that; 1, yes, true and on mean the other one.
 * The words of a choice are given in lower case, with - for _; each is a constant (see below).
 * ..._OR_AUTO: "auto" stands for the least number of the range.
 * Other names are read in their order where the variable is not set. What their values mean follows
 * in parentheses where that is not the same: (theirs=ours theirs=ours). A value that is not there
 * is refused, and one without a meaning of ours (theirs=) is as if the variable were not set. 1 and
 * 0 stand for all words for on and off.
 *        id, other names (comma separated), kind, default, choices or range, text */
#define SETTINGS_TABLE(X)                                                                          \
    X(LOG, "NVSHMEM_DEBUG(version= warn=warn info=info abort=info trace=debug)", CHOICE, "warn",   \
      (NONE, ERROR, WARN, INFO, DEBUG),                                                            \
      "how much is said")                                                                          \
    X(LOG_FILE, "NVSHMEM_DEBUG_FILE", STRING, "", NULL,                                            \
      "file that the lines of the log are added to; warnings and errors are written to stderr, "   \
      "too; %h stands for the machine's name, %p for the process's number; empty: stderr")         \
    X(LOG_SUBSYSTEM, "NVSHMEM_DEBUG_SUBSYS", STRING, "", NULL,                                     \
      "of which subsystems info and debug are said, out of init, bootstrap, topo, mem, p2p, "      \
      "proxy, coll, transport, device and util, e.g. proxy,coll; ^mem,p2p: of all others; "        \
      "empty or all: of all")                                                                      \
    X(INFO,                                                                                        \
      "NVSHMEM_INFO(1=settings 0=),NVSHMEM_VERSION(1=version 0=),"                                 \
      "NVSHMEM_DEBUG(version=version warn= info= abort= trace=)",                                  \
      CHOICE, "off",                                                                               \
      (OFF, VERSION, SETTINGS),                                                                    \
      "what PE 0 prints on stdout when the job starts: the library's version, or also all "        \
      "settings with their values")                                                                \
    X(ON_ERROR, NULL, CHOICE, "abort", (ABORT, RETURN),                                            \
      "what a failure does where the caller gets no status: end the job, or carry on")             \
    X(UNSEEN, NULL, CHOICE, "fail", (FAIL, IGNORE),                                                \
      "if the program never looks at a failed call, by gshmem_last_error or an error "             \
      "handler: make the exit status 1 where it would be 0, or ignore the failure")                \
    X(CHECK, NULL, CHOICE, "off", (OFF, STRICT, MEMORY, RACES),                                    \
      "strict: the first call that fails, of the host or of a kernel, ends the job; memory: "      \
      "each operation is compared with the objects that were allocated and with the program's "    \
      "variables (set it on all PEs); races: accesses of PEs of one machine that nothing orders "  \
      "are reported (PE 0's setting counts for all)")                                              \
    X(BOOTSTRAP,                                                                                   \
      "NVSHMEM_BOOTSTRAP(pmi= mpi=auto uid=uid),"                                                  \
      "NVSHMEM_BOOTSTRAP_PMI(pmi=pmi pmi-2=pmi pmix=pmix)",                                        \
      STRING, "auto", NULL,                                                                        \
      "who starts the job: auto, run, pmix, pmi, uid, mpi, single, or the path of a module")       \
    X(INIT_TIMEOUT, NULL, SECONDS, "60", "1..86400",                                               \
      "seconds that start-up waits for the other PEs")                                             \
    X(PRETENDED_NODES, NULL, COUNT, "1", "1..1024",                                                \
      "splits the PEs of each node into this many that share no memory, as gshmemrun --hosts "     \
      "does, to try programs (set it on all PEs)")                                                 \
    X(UID_IF, "NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", STRING, "", NULL,                               \
      "interfaces at which PE 0 waits for the others where the program distributes an id: "        \
      "beginnings of names, e.g. eth,ib0; =eth0: that name alone; ^docker: all others; "           \
      "empty: all")                                                                                \
    X(HEAP_SIZE, "SHMEM_SYMMETRIC_SIZE,SMA_SYMMETRIC_SIZE,NVSHMEM_SYMMETRIC_SIZE",                 \
      SIZE, "0", "0..64T",                                                                         \
      "symmetric heap every PE must at least be able to grow to, e.g. 2G")                         \
    X(HEAP_MAX, NULL, SIZE_OR_AUTO, "auto", "0..64T",                                              \
      "limit of the symmetric heap per PE; auto: this machine's memory, shared by its PEs")        \
    X(HEAP_KEEP, NULL, SIZE, "64M", "0..64T",                                                      \
      "memory of freed objects that each PE keeps for its next ones (twice that at most, and "     \
      "those of less than 2 MiB in front of others), and does not give back to the system; "       \
      "no more than a 16th of its share of this machine")                                          \
    X(HEAP_BASE, NULL, STRING, "", NULL,                                                           \
      "address of the symmetric heap in host memory, the same in all PEs: same, or one "           \
      "such as 0x200000000000; empty: any")                                                        \
    X(HUGE_PAGES, NULL, CHOICE, "auto", (AUTO, OFF),                                               \
      "ask for huge pages for heap beyond its first 2 MiB")                                        \
    X(SPIN_US, NULL, COUNT_OR_AUTO, "auto", "-1..1000000",                                         \
      "microseconds a wait spins before it yields; auto: long where each PE has a core, "          \
      "else short")                                                                                \
    X(WATCHDOG, NULL, SECONDS, "60", "0..86400",                                                   \
      "report a wait that lasts longer than this many seconds; 0: never")                          \
    X(TRACE, NULL, STRING, "", NULL,                                                               \
      "folder into which each PE writes a trace, for gshmem-trace; it is made where it is "        \
      "missing; empty: nothing is traced")                                                         \
    X(TRACE_SIZE, NULL, SIZE, "16M", "1M..64G",                                                    \
      "of each PE's trace; where that is full, the oldest events are overwritten")                 \
    X(STATS, NULL, STRING, "", NULL,                                                               \
      "1: each operation is counted, and a table of the job's counts is printed at its end; a "    \
      "file's name: the same as JSON (set it on all PEs); empty or 0: inline operations on "       \
      "mapped memory are not counted, and nothing is printed")                                     \
    X(TRANSPORT, "NVSHMEM_REMOTE_TRANSPORT(ibrc=verbs)", CHOICE, "auto", (AUTO, TCP, VERBS),       \
      "how other nodes are reached; auto: by verbs where both have a NIC for it, else TCP")        \
    X(TCP_IF, NULL, STRING, "", NULL,                                                              \
      "networks for TCP: interfaces and subnets, e.g. eth1,10.0.0.0/8; nearest: those "            \
      "nearest to this PE's GPU; empty: all that are up")                                          \
    X(TCP_CONGESTION, NULL, STRING, "", NULL,                                                      \
      "congestion control of TCP's streams; empty: the system's, but BBR only if the round "       \
      "trip is long")                                                                              \
    X(IB_HCA, "NVSHMEM_HCA_LIST", STRING, "", NULL,                                                \
      "RDMA devices that verbs may use, e.g. mlx5_0,mlx5_2:1; ^mlx5_3: all others; empty: any "    \
      "but slow ones")                                                                             \
    X(IB_HCA_BY_PE, "NVSHMEM_HCA_PE_MAPPING", STRING, "", NULL,                                    \
      "RDMA port of each PE of a node: device, port, and how many PEs use it, the lowest PEs "     \
      "first, e.g. mlx5_0:1:2,mlx5_1:1:2; empty: GSHMEM_IB_HCA holds for all")                     \
    X(IB_PORT, NULL, COUNT_OR_AUTO, "auto", "0..254",                                              \
      "port of RDMA devices; auto: any")                                                           \
    X(IB_GID_INDEX, "NVSHMEM_IB_GID_INDEX", COUNT_OR_AUTO, "auto", "-1..255",                      \
      "address of the RDMA port by its index; auto: an IPv4 one of RoCE v2, or the best "          \
      "there is")                                                                                  \
    X(IB_SL, "NVSHMEM_IB_SL", COUNT, "0", "0..15",                                                 \
      "service level of queue pairs")                                                              \
    X(IB_TRAFFIC_CLASS, "NVSHMEM_IB_TRAFFIC_CLASS", COUNT, "0", "0..255",                          \
      "traffic class of queue pairs (RoCE: DSCP times four)")                                      \
    X(IB_PKEY, NULL, COUNT_OR_AUTO, "auto", "0..65535",                                            \
      "partition of queue pairs, as 0x8001; auto: the port's first")                               \
    X(IB_PKEY_INDEX, "NVSHMEM_IB_PKEY_INDEX", COUNT, "0", "0..65535",                              \
      "partition of queue pairs by its index in the port's table, where IB_PKEY is auto")          \
    X(IB_TIMEOUT, "NVSHMEM_IB_TIMEOUT", COUNT, "14", "1..31",                                      \
      "a packet without response is sent again after 4.1 us times 2 to the power of this")         \
    X(IB_GPU, "NVSHMEM_IB_DISABLE_DMABUF(1=peermem 0=auto)", CHOICE, "auto",                       \
      (AUTO, DMA_BUF, PEERMEM, STAGING),                                                           \
      "how NICs access GPU memory; staging: through pinned memory")                                \
    X(IB_QP_PER_PEER, "NVSHMEM_IB_NUM_RC_PER_DEVICE", COUNT, "1", "1..4",                          \
      "queue pairs between two NICs; large transfers use all of them")                             \
    X(IB_RETRY, "NVSHMEM_IB_RETRY_CNT", COUNT, "6", "0..7",                                        \
      "how often a packet is sent again")                                                          \
    X(IB_ORDER, NULL, CHOICE, "auto", (AUTO, STRICT, RELAXED),                                     \
      "whether NICs place writes of a queue pair in order; auto: what is known of the "            \
      "device, see gshmem-info")                                                                   \
    X(IB_INFLIGHT, NULL, SIZE, "0", "0..64G",                                                      \
      "bytes of puts and gets that a NIC has in flight at once, of all peers; 0: no limit")        \
    X(IB_INFLIGHT_REQUESTS, NULL, COUNT, "0", "0..65536",                                          \
      "work requests that a NIC has in flight at once, 16 at least; 0: as many as it takes")       \
    X(IB_GATHER, NULL, COUNT, "8", "0..64",                                                        \
      "number of waiting small puts from which they are coalesced into one message; 0: never")     \
    X(PEER_TIMEOUT, NULL, SECONDS, "10", "1..3600",                                                \
      "seconds after which a PE on another node that owes a response and has sent nothing "        \
      "at all counts as dead; a kernel's collective of whose team a PE has left the job fails "    \
      "after a tenth of it")                                                                       \
    X(STAGING, NULL, SIZE, "16M", "64K..64G",                                                      \
      "pinned memory through which GPU memory goes to other nodes and comes from them")            \
    X(MAPPED, "NVSHMEM_DISABLE_P2P(1=off 0=on)", CHOICE, "on", (OFF, ON),                          \
      "off: kernels reach even the PEs of their node through the proxy")                           \
    X(CHANNELS, NULL, COUNT, "4", "1..64",                                                         \
      "channels from kernels to the proxy, a power of two; a context has one of its own")          \
    X(PROXIES, NULL, COUNT, "1", "1..4",                                                           \
      "proxy threads of a PE, the same number for all PEs; each has connections and a part of "    \
      "the channels of its own")                                                                   \
    X(PROXY_CPU, NULL, COUNT_OR_AUTO, "auto", "-1..1023",                                          \
      "CPU that the proxy thread runs on, with PROXIES the first: others take those after it; "    \
      "auto: any")                                                                                 \
    X(PROXY_IDLE_US, NULL, COUNT, "200", "0..10000000",                                            \
      "microseconds that the proxy spins after it had work for kernels")                           \
    X(DEVICE, NULL, CHOICE, "auto", (AUTO, CUDA, HOST),                                            \
      "where kernels run and the heap lies: what gshmemcc compiles for, and what a program "       \
      "takes")                                                                                     \
    X(CUDA_DEVICE, NULL, STRING, "", NULL,                                                         \
      "which GPU a PE takes, by number; empty: its current one, or by its place on the node")      \
    X(CUDA_SHARE,                                                                                  \
      "NVSHMEM_DISABLE_CUDA_VMM(1=ipc 0=),"                                                        \
      "NVSHMEM_CUMEM_HANDLE_TYPE(file_descriptor=fd fabric=fabric)",                               \
      CHOICE, "auto", (AUTO, FD, FABRIC, IPC),                                                     \
      "how heaps of GPU memory are passed to the other PEs of a node")                             \
    X(CUDA_MULTICAST, "NVSHMEM_DISABLE_NVLS(1=off 0=auto)", CHOICE, "auto", (AUTO, OFF),           \
      "let a switch between GPUs store to all PEs of a team, and combine; off: use no switch")     \
    X(CUDA_DOMAIN, "NVSHMEM_DISABLE_MNNVL(1=off 0=auto)", CHOICE, "auto", (AUTO, OFF),             \
      "map GPU memory of other nodes that are in the same NVLink domain; off: use the "            \
      "network")                                                                                   \
    X(CUDA_FLUSH, NULL, CHOICE, "auto", (AUTO, ON, OFF),                                           \
      "flush what NICs have written to GPU memory before it is used; auto: where the GPU "         \
      "needs it")                                                                                  \
    X(NVTX, "NVSHMEM_NVTX(off=off common=on)", CHOICE, "off", (OFF, ON),                           \
      "mark collectives, waits, quiet and calls on streams as ranges for NVIDIA's profilers")      \
    X(HOST_THREADS, NULL, COUNT_OR_AUTO, "auto", "0..1024",                                        \
      "threads that run kernels on the host device; auto: one for each CPU")                       \
    X(HOST_DEVICES, NULL, COUNT_OR_AUTO, "auto", "0..1024",                                        \
      "how many devices programs see, all of them the host device; auto: one for each PE of "      \
      "the node")                                                                                  \
    X(HOST_STACK, NULL, SIZE, "64K", "16K..1G",                                                    \
      "stack of each CUDA thread on the host device; four times this under sanitizers")            \
    X(PTX_WARPS, NULL, CHOICE, "independent", (INDEPENDENT, LOCKSTEP),                             \
      "where PTX is translated for the host device: the threads of a warp run independently, "     \
      "or in lock step up to a branch at which they part, as on GPUs before Volta")                \
    X(PTX_MEMORY, NULL, CHOICE, "strong", (STRONG, WEAK),                                          \
      "where PTX is translated for the host device: memory as the processor has it, or accesses "  \
      "are delayed and reordered as PTX lets a GPU do it, so that missing fences show")            \
    X(PTX_SEED, NULL, COUNT_OR_AUTO, "auto", "-1..2147483647",                                     \
      "what weak memory (PTX_MEMORY) draws its choices from; auto: from the time")                 \
    X(MODULE_DIR, NULL, STRING, "", NULL,                                                          \
      "where to look for modules first")

enum setting {
#define X(id, aliases, kind, initial, range, text) SETTING_##id,
    SETTINGS_TABLE(X)
#undef X
    SETTING_COUNT
};

/* CHOICE_IB_GPU_AUTO, CHOICE_IB_GPU_DMA_BUF, ...: the words of a choice, in their order, are what
 * settings_number returns for it. */
#define SETTING_WORDS(...) __VA_ARGS__
#define SETTING_PICK(a, b, c, d, e, f, name, ...) name
#define SETTING_WORDS_1(id, a) CHOICE_##id##_##a,
#define SETTING_WORDS_2(id, a, ...) SETTING_WORDS_1(id, a) SETTING_WORDS_1(id, __VA_ARGS__)
#define SETTING_WORDS_3(id, a, ...) SETTING_WORDS_1(id, a) SETTING_WORDS_2(id, __VA_ARGS__)
#define SETTING_WORDS_4(id, a, ...) SETTING_WORDS_1(id, a) SETTING_WORDS_3(id, __VA_ARGS__)
#define SETTING_WORDS_5(id, a, ...) SETTING_WORDS_1(id, a) SETTING_WORDS_4(id, __VA_ARGS__)
#define SETTING_WORDS_6(id, a, ...) SETTING_WORDS_1(id, a) SETTING_WORDS_5(id, __VA_ARGS__)
#define SETTING_EACH_WORD(...) SETTING_EACH_WORD_(__VA_ARGS__)
#define SETTING_EACH_WORD_(id, ...)                                                                \
    SETTING_PICK(__VA_ARGS__, SETTING_WORDS_6, SETTING_WORDS_5, SETTING_WORDS_4, SETTING_WORDS_3,  \
                 SETTING_WORDS_2, SETTING_WORDS_1, )                                               \
    (id, __VA_ARGS__)

#define SETTING_ENUM_CHOICE(id, words)                                                             \
    enum choice_##id { SETTING_EACH_WORD(id, SETTING_WORDS words) };
#define SETTING_ENUM_STRING(id, range)
#define SETTING_ENUM_SIZE(id, range)
#define SETTING_ENUM_SIZE_OR_AUTO(id, range)
#define SETTING_ENUM_SECONDS(id, range)
#define SETTING_ENUM_COUNT(id, range)
#define SETTING_ENUM_COUNT_OR_AUTO(id, range)
#define X(id, aliases, kind, initial, range, text) SETTING_ENUM_##kind(id, range)
SETTINGS_TABLE(X)
#undef X

/* Reads the environment. A bad value fails after all are read, so that each is reported once. */
gshmem_status_t settings_load(void);
/* A warning for each GSHMEM_… variable that no row names; one PE of a job calls it. */
void settings_warn_unknown(void);

int64_t settings_number(enum setting s); /* SIZE in bytes, SECONDS, COUNT; CHOICE: its index */
const char *settings_string(enum setting s); /* as it was set; CHOICE: the word in the table */
/* The variable that gave the value ("GSHMEM_HEAP_SIZE"), or NULL if it is the default. */
const char *settings_source(enum setting s);
const char *settings_variable(enum setting s); /* "GSHMEM_HEAP_SIZE", for messages */
const char *settings_other_names(enum setting s); /* as in the row, or NULL (other_names.h) */
/* What the environment says of a STRING now, whether settings were loaded or not. False, after a
 * line: it has a value that is refused. */
bool settings_look(enum setting s, char *text, size_t size);

/* ---- For modules, which may have been compiled with another table ---- */

/* A setting's name, to ask for it: the compiler knows the row. */
#define SETTING_NAME(id) ((void)SETTING_##id, #id)

/* The same by name. A module's table was compared before (settings_find_other), so that a name
 * that this library does not have is an error in its code. */
int64_t settings_number_of(const char *name);
const char *settings_string_of(const char *name);

/* The table as a module was compiled with it, a line for each row. */
#define X(id, aliases, kind, initial, range, text) #id " " #kind " " #range "\n"
static const char settings_layout[] __attribute__((unused)) = SETTINGS_TABLE(X);
#undef X
/* The first row of such a table that this library does not have, or has with another kind or range;
 * false: it has all, wherever they stand. The name is written to `name`. */
bool settings_find_other(const char *layout, char *name, size_t size);

/* What "auto" stands for here, written to text; or "". */
typedef const char *settings_automatic(enum setting s, char *text, size_t size);
/* One line a setting: variable, value, meaning, and where the value is from. Only settings that
 * contain the words of `pattern` (NULL: all); * and ? as in file names. Returns how many. */
int settings_print(FILE *to, const char *pattern, settings_automatic *automatic);

/* "64", "16K", "1.5G", "2MiB" to bytes; false if it is not a size. */
bool settings_parse_size(const char *text, int64_t *bytes);

#endif
