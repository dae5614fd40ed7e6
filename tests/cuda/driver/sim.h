/* A simulation of NVIDIA's driver, for tests: libcuda.so.1 with the entry points that GSHMEM calls, over
 * memfd and mmap. There is no GPU in it: memory is the machine's, and a stream is a list of work that a
 * thread does when somebody waits for it, and if nobody does, some time later. Kernels are real: the PTX of
 * a module runs, with all its blocks and threads, on the machinery of the host device (kernels.c). They
 * alone can touch "GPU" memory.
 *
 * It is stricter than a driver: "GPU" addresses cannot be loaded from or stored to by the CPU, memory
 * begins as junk, ranges must be mapped and accessible, and what is still open when the process
 * exits makes it fail with status 99. The environment says what it pretends:
 *
 *     SIM_GPUS=2            how many GPUs (CUDA_VISIBLE_DEVICES chooses among them)
 *     SIM_MEMORY=1073741824 bytes of each
 *     SIM_VERSION=13000     the driver's version
 *     SIM_PEER=0            no GPU reaches another's memory
 *     SIM_VMM=0             no virtual memory management
 *     SIM_POSIX=0           its memory cannot be exported as descriptors
 *     SIM_FABRIC=1          and can be as fabric handles
 *     SIM_HOSTS=2           how many hosts gshmemrun pretends, each with GPUs of its own
 *     SIM_DOMAIN=7          its GPUs are in an NVLink domain with that name (the first letter counts), and
 *     SIM_CLIQUES=0,0,1     in these cliques, by PE
 *     SIM_JOINED=0          but have not joined it
 *     SIM_MULTICAST=1       a switch connects its GPUs
 *     SIM_DMA_BUF=1         it exports dma-bufs
 *     SIM_ORDERING=0        kernels that run may see a word that a NIC has written before what it wrote earlier;
 *                           -1: nor does the driver say how that is
 *     SIM_FLUSHES=0         the driver does not flush such writes
 *     SIM_IN_PLACE=0        GPUs do not see registered host memory at its own address
 *     SIM_FAIL=cuMemCreate@3=2   the third call of cuMemCreate answers 2; several with commas; @0: all
 *     SIM_FAIL_PE=1         only in that PE of gshmemrun
 *     SIM_DELAY_MS=20       how long work waits for somebody to wait for it
 *     SIM_COPY_MS=5         how much longer a large copy takes than it does
 *     SIM_DEATHS=1          processes die in this test: what they had open by CUDA IPC is not told apart
 *     SIM_TRANSLATION=x.so  the library's kernels, translated otherwise (tests/cuda/planted)
 *     SIM_LOG=1             every call on stderr */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/cuda/driver.h"

/* tests/nth, where it is loaded: whether the call that is made from there fails. */
bool nth_simulated_fails(const char *call, const void *from) __attribute__((weak, visibility("default")));

#define SIM_API __attribute__((visibility("default")))

enum { CUDA_LAUNCH_FAILED = 719 };
enum { SIM_GPUS_MOST = 8, SIM_OBJECTS = 4096 };

#define X(name, symbol, arguments) SIM_API cuda_result symbol arguments;
CUDA_DRIVER(X)
CUDA_DRIVER_NEWER(X)
#undef X

/* All entry points begin with it: counts the call, and whether it is to fail. */
#define SIM_ENTER()                                                                                \
    do {                                                                                           \
        cuda_result sim_fault = sim_enter(__func__, __builtin_return_address(0));                  \
        if (sim_fault)                                                                             \
            return sim_fault;                                                                      \
    } while (0)

cuda_result sim_enter(const char *call, const void *from);
/* For a test, by dlsym: the nth call of that from now on answers result; 0: none does. */
SIM_API void sim_fail(const char *call, long nth, int result);
/* The same way: how many calls of that there were. */
SIM_API long sim_calls(const char *call);
/* The same way: a kernel that fills a GPU runs there from now on, or ends; none begins while it does. */
SIM_API void sim_occupy(cuda_gpu gpu, bool occupy);
/* The same way, for a test that plays the NIC: it writes to GPU memory, and reads, which flushes what it wrote. */
SIM_API void sim_nic_write(cuda_address at, const void *data, size_t bytes);
SIM_API void sim_nic_flush(void);
/* The same way: what a kernel that runs sees there; false: nothing is. */
SIM_API bool sim_look(void *to, cuda_address at, size_t bytes);
bool sim_nic_attribute(int *value, enum cuda_attribute which);
long sim_setting(const char *name, long otherwise);
void sim_lock(void);
void sim_unlock(void);

/* What is open: each kind is counted, and what is left at the end is told. */
enum sim_kind {
    SIM_CONTEXT, SIM_RESERVATION, SIM_PIECE, SIM_MAPPING, SIM_ALLOCATION, SIM_IMPORT, SIM_PINNED,
    SIM_STREAM, SIM_REGISTRATION, SIM_EVENT, SIM_MODULE, SIM_GRAPH, SIM_BINDING, SIM_KINDS
};
void sim_opened(enum sim_kind kind);
void sim_closed(enum sim_kind kind);
/* Something that a real driver would not tell, and that must not happen. */
void sim_blame(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Attributes of GPUs that are the same for all, and are not the driver's basic ones. */
bool sim_attribute(int *value, enum cuda_attribute which);

/* The host of this PE, and the clique of its GPU. */
int sim_host(void);
int sim_clique(void);
char sim_domain(void); /* 0: none */

int sim_gpus(void);
int sim_visible(int ordinal); /* which GPU of the machine that is */
bool sim_gpu_exists(cuda_gpu gpu);
bool sim_reaches(cuda_gpu gpu, cuda_gpu peer);
cuda_gpu sim_current(void); /* -1: no context */

/* A multicast object: memory of its own, which nobody touches, and what all processes know of it. */
struct sim_multicast {
    uint32_t gpus;  /* that it is for; 0: this is none */
    uint32_t added; /* a bit for each of the machine */
    uint32_t bound;
};
cuda_result sim_multicast_create(size_t bytes, int types, cuda_piece *object);
/* What is known of a handle, and its size; NULL: it is none. To be let go of. */
struct sim_multicast *sim_multicast_open(cuda_piece handle, size_t *bytes);
void sim_multicast_close(struct sim_multicast *m);
bool sim_is_bound(cuda_address at, size_t bytes); /* with the lock held: to one, by this process */

/* What is mapped at a GPU's address; false: nothing is. */
struct sim_place {
    cuda_address at;
    size_t bytes;
    int fd;   /* of the memory, from its beginning */
    int type; /* of the handles it may be exported as */
    cuda_gpu gpu;
};
bool sim_find(cuda_address at, struct sim_place *place);

/* For streams: a copy between any two addresses, of the GPU or not. */
cuda_result sim_copy(cuda_address to, cuda_address from, size_t bytes);
cuda_result sim_fill(cuda_address at, unsigned char byte, size_t bytes);

/* Kernels of this GPU may touch its memory, and what it has access to, until they have ended. */
void sim_expose(cuda_gpu gpu, bool expose);

/* Modules, and their kernels, on one GPU each; what fails is told as the host device tells it. */
struct sim_module;
struct sim_function;
cuda_result sim_module_load(struct sim_module **module, cuda_gpu gpu, const void *image);
bool sim_module_exists(const struct sim_module *module);
cuda_result sim_module_unload(struct sim_module *module);
cuda_result sim_module_function(struct sim_function **function, struct sim_module *module,
                                const char *name);
cuda_result sim_module_global(cuda_address *at, size_t *bytes, const struct sim_module *module,
                              const char *name);
cuda_gpu sim_function_gpu(const struct sim_function *function);

/* A launch, with its arguments, which are copied: they may be gone when the kernel runs. It is freed by free.
 * size: of the grid, in blocks, and of a block. NULL: no memory. */
struct sim_grid;
struct sim_grid *sim_grid_make(const struct sim_function *function, const unsigned size[6],
                               unsigned shared, bool cooperative, void *const *arguments);
struct sim_grid *sim_grid_copy(const struct sim_grid *grid);
/* Runs it to its end. *stream: one of the host device's, made here where it is NULL. */
cuda_result sim_grid_run(struct sim_grid *grid, void **stream);
void sim_grid_end_stream(void *stream);

/* Streams, for contexts: the work of all of a GPU's, done; and its default stream, ended. */
void sim_finish(cuda_gpu gpu);
void sim_end_default(cuda_gpu gpu);
/* Whether this thread must not do what could not be captured. */
bool sim_captures(void);
/* Takes over a launch, for a stream; and whether one has not ended. */
cuda_result sim_launch(cuda_stream stream, struct sim_grid *grid);
bool sim_launches(void);

/* What programs call, and the library does not. */
SIM_API cuda_result cuLaunchCooperativeKernel(cuda_function kernel, unsigned grid_x, unsigned grid_y,
                                              unsigned grid_z, unsigned block_x, unsigned block_y,
                                              unsigned block_z, unsigned shared, cuda_stream stream,
                                              void **arguments);
typedef struct sim_graph *cuda_graph;
SIM_API cuda_result cuStreamBeginCapture_v2(cuda_stream stream, int mode);
SIM_API cuda_result cuStreamEndCapture(cuda_stream stream, cuda_graph *graph);
SIM_API cuda_result cuGraphInstantiateWithFlags(cuda_graph *exec, cuda_graph graph,
                                                unsigned long long flags);
SIM_API cuda_result cuGraphLaunch(cuda_graph exec, cuda_stream stream);
SIM_API cuda_result cuGraphExecDestroy(cuda_graph exec);
SIM_API cuda_result cuGraphDestroy(cuda_graph graph);

#endif
