/* A module of PTX as the library knows it, and the functions of the library that its code calls:
 * threads, shared memory, time. */
#ifndef GSHMEM_HOST_DEVICE_PTX_MODULE_H
#define GSHMEM_HOST_DEVICE_PTX_MODULE_H

#include "../execution.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct gshmem_host_ptx_parameter {
    u32 offset, bytes;
};

struct gshmem_host_ptx_module;

struct gshmem_host_ptx_kernel {
    struct gshmem_host_kernel record; /* first; the library's, but for its unpack */
    void (*body)(const u8 *parameters);
    const char *name;
    const struct gshmem_host_ptx_parameter *parameter;
    u32 parameters;
    u32 bytes;  /* of all parameters */
    u32 shared; /* static shared memory; what is dynamic lies behind it */
    u32 block[3]; /* the only size that its blocks may have; zeros: any */
    struct gshmem_host_ptx_module *module; /* the library's */
};

struct gshmem_host_ptx_variable {
    const char *name;
    void *at;
    size_t bytes;
    int constant;
};

struct gshmem_host_ptx_module {
    size_t size;     /* of this struct */
    const char *key; /* a hash of the PTX, by which its host code finds it */
    const char *file, *version, *target;
    u64 instructions;
    struct gshmem_host_ptx_kernel *const *kernel;
    u32 kernels;
    u32 variables;
    const struct gshmem_host_ptx_variable *variable;
    struct gshmem_host_ptx_module *next; /* the library's, as what follows */
    int taken;                           /* somebody has it; under the library's lock */
    int said;                            /* a line was printed about it */
};
void gshmem_host_ptx_register(struct gshmem_host_ptx_module *module);
void gshmem_host_ptx_unregister(struct gshmem_host_ptx_module *module);
/* Sets the function that waiting kernels call to make progress. Code that knows the job calls
 * this. */
void gshmem_host_ptx_while_waiting(void (*progress)(void));
void gshmem_host_ptx_launch(struct gshmem_host_ptx_kernel *kernel, void **arguments);

/* Each block has this much memory of the library's before its shared memory. */
#define PTX_BLOCK_STATE 3072
#define PTX_BARRIERS    16

u32 gshmem_host_ptx_dynamic(void); /* where dynamic shared memory begins */
u32 gshmem_host_ptx_shared_bytes(int dynamic);
int gshmem_host_ptx_space(u64 address); /* 0 global, 1 local, 2 shared */
u64 gshmem_host_ptx_stack(void); /* an address that is the same for all functions of a thread */
u32 gshmem_host_ptx_worker(void);
u32 gshmem_host_ptx_workers(void);
u64 gshmem_host_ptx_grid(void);
u32 gshmem_host_ptx_grid_barrier(int half);
void gshmem_host_ptx_exit(void) __attribute__((noreturn));
void gshmem_host_ptx_polls(u64 address); /* lets other threads run */

/* Barriers with a number. threads: how many come to it; 0: all of the block. The first is quicker
 * for barrier 0, and for modules in which no thread may arrive there without waiting. */
u32 gshmem_host_ptx_barrier(u32 number, u32 threads, int kind, int predicate, const char *file,
                            int line);
u32 gshmem_host_ptx_barrier_counted(u32 number, u32 threads, int kind, int predicate,
                                    const char *file, int line);
void gshmem_host_ptx_arrive(u32 number, u32 threads, const char *file, int line);
void gshmem_host_ptx_cluster_arrive(void);
void gshmem_host_ptx_cluster_wait(void);

/* What kernels call by CUDA's names: results and arguments as arrays of bytes. */
void gshmem_host_ptx_printf(u8 *result, u8 *format, u8 *arguments);
void gshmem_host_ptx_malloc(u8 *result, u8 *bytes);
void gshmem_host_ptx_free(u8 *pointer);
void gshmem_host_ptx_range_begins(u8 *name);
void gshmem_host_ptx_range_ends(void);
void gshmem_host_ptx_assert(u8 *message, u8 *file, u8 *line, u8 *function, u8 *char_size)
    __attribute__((noreturn));

/* Addresses that stand for memory of several devices. */
enum ptx_multimem { PTX_STORE, PTX_ADD, PTX_MIN, PTX_MAX, PTX_AND, PTX_OR, PTX_XOR };
enum ptx_element {
    PTX_B32,
    PTX_B64,
    PTX_U32,
    PTX_S32,
    PTX_U64,
    PTX_S64,
    PTX_F32,
    PTX_F64,
    PTX_F16,
    PTX_BF16,
    PTX_F16X2,
    PTX_BF16X2,
    PTX_F16X2_WIDE,
    PTX_BF16X2_WIDE
};
u64 gshmem_host_ptx_multimem_load(const char *at, int operation, int element, const char *file,
                                  int line);
void gshmem_host_ptx_multimem_store(char *at, u64 value, int operation, int element, int order,
                                    const char *file, int line);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

/* After a load that may be a poll of what others write. */
static inline void ptx_may_poll(const char *at)
{
    if (gshmem_host_may_rest())
        gshmem_host_ptx_polls((u64)(uintptr_t)at);
}

/* The block's shared memory: offset 0. */
static inline char *ptx_shared(void)
{
    return (char *)gshmem_host_dynamic_here + PTX_BLOCK_STATE;
}

#define ptx_dynamic gshmem_host_ptx_dynamic()

static inline u32 ptx_lowest(u32 mask)
{
    return mask ? (u32)__builtin_ctz(mask) : 32;
}

/* The lane that shfl reads from: b and c are its operands; inside: whether it is in the segment. */
#define PTX_SHUFFLE(name, lane_wanted, is_inside)                                                  \
    static inline u32 ptx_shuffle_##name(u32 b, u32 c, u8 *inside)                                 \
    {                                                                                              \
        const u32 lane = gshmem_host_lane(), segments = c >> 8 & 31;                               \
        const s32 most = (s32)((lane & segments) | (c & 31 & ~segments));                          \
        const u32 least = lane & segments, by = b & 31;                                            \
        const s32 wanted = (s32)(lane_wanted);                                                     \
        (void)least, (void)by;                                                                     \
        *inside = is_inside;                                                                       \
        return *inside ? (u32)wanted : lane;                                                       \
    }
PTX_SHUFFLE(up, lane - by, wanted >= most)
PTX_SHUFFLE(down, lane + by, wanted <= most)
PTX_SHUFFLE(bfly, lane ^ by, wanted <= most)
PTX_SHUFFLE(idx, least | (by & ~segments), wanted <= most)

#define PTX_KERNEL(number, function, ptx_name, rows, count, all_bytes, static_shared, block_x,     \
                   block_y, block_z)                                                               \
    static struct gshmem_host_ptx_kernel kernel_##number;                                          \
    static void unpack_##number(void **arguments)                                                  \
    {                                                                                              \
        gshmem_host_ptx_launch(&kernel_##number, arguments);                                       \
    }                                                                                              \
    static struct gshmem_host_ptx_kernel kernel_##number = {{0, ptx_name, unpack_##number, 0, 0},  \
                                                            function,                              \
                                                            ptx_name,                              \
                                                            rows,                                  \
                                                            count,                                 \
                                                            all_bytes,                             \
                                                            static_shared,                         \
                                                            {block_x, block_y, block_z},           \
                                                            0};

/* The constructor comes before those of nvcc's host code, which look for the module. */
#define PTX_MODULE(hash, ptx_file, ptx_version, ptx_target, count, list, n, variables,             \
                   n_variables)                                                                    \
    static struct gshmem_host_ptx_module module = {                                                \
        sizeof module, hash,      ptx_file, ptx_version,    ptx_target, count, list, n,            \
        n_variables,   variables, 0,        PTX_OF_LIBRARY, 0};                                    \
    __attribute__((constructor(101))) static void begin(void)                                      \
    {                                                                                              \
        gshmem_host_ptx_register(&module);                                                         \
    }                                                                                              \
    __attribute__((destructor(101))) static void end(void)                                         \
    {                                                                                              \
        gshmem_host_ptx_unregister(&module);                                                       \
    }                                                                                              \
    PTX_FIND_BY_FUNCTION

/* A library that was made of one module for cuModuleLoadData: that call finds the module by a
 * function, and no host code looks for it. */
#define PTX_MODULE_OF_LIBRARY "gshmem_host_ptx_module_of_library"
#ifdef GSHMEM_PTX_LIBRARY
#define PTX_OF_LIBRARY 1
#define PTX_FIND_BY_FUNCTION                                                                       \
    __attribute__((visibility("default"))) struct gshmem_host_ptx_module *                         \
    gshmem_host_ptx_module_of_library(void)                                                        \
    {                                                                                              \
        return &module;                                                                            \
    }
#else
#define PTX_OF_LIBRARY 0
#define PTX_FIND_BY_FUNCTION
#endif

#endif
