/* Multicast by a switch between GPUs, in kernels: one address stands for an object's copies on all
 * PEs of a team. A store to it is stored in all copies; a load that reduces returns their
 * combination.
 *
 * The switch knows 4- and 8-byte integers, float and double, half and bfloat16. Sums of integers
 * wrap and are the same whatever the order. The switch chooses the order in which it combines
 * floating-point numbers: all members get the same bits, which can differ from those of other
 * algorithms (half and bfloat16 are summed up in float, and rounded once).
 *
 * Each object then has two addresses: its own, and the multicast address. Between accesses by one
 * and by the other, each thread executes PTX's fence.proxy.alias (a proxy is there a kind of
 * access, not GSHMEM's thread). The rounds of a call order all accesses among the PEs. */
#ifndef GSHMEM_DEVICE_MULTICAST_H
#define GSHMEM_DEVICE_MULTICAST_H

#include "gshmem/device/atomic.h"
#include "gshmem/device/team.h"

/* NULL: there is no multicast address for all of these bytes. */
GSHMEM_KERNEL char *gshmem_kernel_multicast(const struct gshmem_device_team *t, const void *object,
                                            size_t bytes)
{
    const size_t offset = (uintptr_t)object - t->ctx.heap.base;
    const uint64_t covered = gshmem_device_load(&t->multicast_bytes);

    return offset < covered && bytes <= covered - offset ? (char *)(uintptr_t)t->multicast + offset
                                                         : NULL;
}

GSHMEM_KERNEL void *gshmem_kernel_mc_ptr(gshmem_team_t team, const void *ptr)
{
    const struct gshmem_device_team *t = gshmem_kernel_team(team);

    return t ? gshmem_kernel_multicast(t, ptr, 1) : NULL;
}

GSHMEM_EITHER void *gshmem_mc_ptr(gshmem_team_t team, const void *ptr)
{
    GSHMEM_RETURN(gshmem_kernel_mc_ptr(team, ptr), gshmem_on_host::gshmem_mc_ptr(team, ptr));
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

struct gshmem_switch_word {
    uint32_t part[4]; /* 16 bytes */
};

GSHMEM_KERNEL void gshmem_switch_fence(void)
{
    asm volatile("fence.proxy.alias;" ::: "memory");
}

GSHMEM_KERNEL void gshmem_switch_store(char *there, const struct gshmem_switch_word *w)
{
    asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(there),
                 "f"(__uint_as_float(w->part[0])), "f"(__uint_as_float(w->part[1])),
                 "f"(__uint_as_float(w->part[2])), "f"(__uint_as_float(w->part[3]))
                 : "memory");
}

/* The switch's combination of 16 bytes, in one, two or four loads. */
#define GSHMEM_SWITCH_LOAD_1(operation)                                                            \
    asm volatile("multimem.ld_reduce.relaxed.sys.global." operation " {%0, %1, %2, %3}, [%4];"     \
                 : "=r"(w.part[0]), "=r"(w.part[1]), "=r"(w.part[2]), "=r"(w.part[3])              \
                 : "l"(there)                                                                      \
                 : "memory")
#define GSHMEM_SWITCH_LOAD_4(operation)                                                            \
    asm volatile("multimem.ld_reduce.relaxed.sys.global." operation " %0, [%4];\n\t"               \
                 "multimem.ld_reduce.relaxed.sys.global." operation " %1, [%4+4];\n\t"             \
                 "multimem.ld_reduce.relaxed.sys.global." operation " %2, [%4+8];\n\t"             \
                 "multimem.ld_reduce.relaxed.sys.global." operation " %3, [%4+12];"                \
                 : "=r"(w.part[0]), "=r"(w.part[1]), "=r"(w.part[2]), "=r"(w.part[3])              \
                 : "l"(there)                                                                      \
                 : "memory")
#define GSHMEM_SWITCH_LOAD_2(operation)                                                            \
    asm volatile("{\n\t.reg .b64 a, b;\n\t"                                                        \
                 "multimem.ld_reduce.relaxed.sys.global." operation " a, [%4];\n\t"                \
                 "multimem.ld_reduce.relaxed.sys.global." operation " b, [%4+8];\n\t"              \
                 "mov.b64 {%0, %1}, a;\n\tmov.b64 {%2, %3}, b;\n\t}"                               \
                 : "=r"(w.part[0]), "=r"(w.part[1]), "=r"(w.part[2]), "=r"(w.part[3])              \
                 : "l"(there)                                                                      \
                 : "memory")

/* The load of an operation, for a type. The caller has tested gshmem_switch_can: any other
 * operation ends the kernel. */
#define GSHMEM_SWITCH_ORDERED(load, op, sum, type)                                                 \
    if (op == GSHMEM_OP_SUM)                                                                       \
        load("add." sum);                                                                          \
    else if (op == GSHMEM_OP_MIN)                                                                  \
        load("min." type);                                                                         \
    else if (op == GSHMEM_OP_MAX)                                                                  \
        load("max." type);                                                                         \
    else                                                                                           \
        __trap()
#define GSHMEM_SWITCH_BITS(load, op, type)                                                         \
    if (op == GSHMEM_OP_AND)                                                                       \
        load("and." type);                                                                         \
    else if (op == GSHMEM_OP_OR)                                                                   \
        load("or." type);                                                                          \
    else                                                                                           \
        load("xor." type)

template <class T> GSHMEM_KERNEL constexpr bool gshmem_switch_real(void)
{
    return gshmem_class_of(gshmem_type_of<T>()) == GSHMEM_CLASS_real ||
           gshmem_class_of(gshmem_type_of<T>()) == GSHMEM_CLASS_small;
}

GSHMEM_KERNEL bool gshmem_switch_on_bits(int op)
{
    return op == GSHMEM_OP_AND || op == GSHMEM_OP_OR || op == GSHMEM_OP_XOR;
}

/* Whether the switch has this operation for this type. */
template <class T> GSHMEM_KERNEL bool gshmem_switch_can(int op)
{
    const enum gshmem_type type = gshmem_type_of<T>();
    const bool ordered = op == GSHMEM_OP_SUM || op == GSHMEM_OP_MIN || op == GSHMEM_OP_MAX;

    if (type == GSHMEM_TYPE_FLOAT || type == GSHMEM_TYPE_DOUBLE)
        return op == GSHMEM_OP_SUM;
    if (type == GSHMEM_TYPE_HALF || type == GSHMEM_TYPE_BFLOAT16)
        return ordered;
    if (type == GSHMEM_TYPE_INT32 || type == GSHMEM_TYPE_UINT32 || type == GSHMEM_TYPE_INT64 ||
        type == GSHMEM_TYPE_UINT64)
        return ordered || gshmem_switch_on_bits(op);
    return false;
}

template <class T> GSHMEM_KERNEL void gshmem_switch_load_real(int op, const char *there,
                                                              struct gshmem_switch_word *to)
{
    struct gshmem_switch_word w = {};

    if (sizeof(T) == 8) {
        asm volatile("{\n\t.reg .f64 a, b;\n\t"
                     "multimem.ld_reduce.relaxed.sys.global.add.f64 a, [%4];\n\t"
                     "multimem.ld_reduce.relaxed.sys.global.add.f64 b, [%4+8];\n\t"
                     "mov.b64 {%0, %1}, a;\n\tmov.b64 {%2, %3}, b;\n\t}"
                     : "=r"(w.part[0]), "=r"(w.part[1]), "=r"(w.part[2]), "=r"(w.part[3])
                     : "l"(there)
                     : "memory");
    } else if (sizeof(T) == 4) {
        float f[4];
        asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(f[0]), "=f"(f[1]), "=f"(f[2]), "=f"(f[3])
                     : "l"(there)
                     : "memory");
        for (int i = 0; i < 4; i++)
            w.part[i] = __float_as_uint(f[i]);
    } else if (gshmem_type_of<T>() == GSHMEM_TYPE_BFLOAT16) {
        GSHMEM_SWITCH_ORDERED(GSHMEM_SWITCH_LOAD_1, op, "acc::f32.v4.bf16x2", "v4.bf16x2");
    } else {
        GSHMEM_SWITCH_ORDERED(GSHMEM_SWITCH_LOAD_1, op, "acc::f32.v4.f16x2", "v4.f16x2");
    }
    *to = w;
}

template <class T> GSHMEM_KERNEL void gshmem_switch_load_integer(int op, const char *there,
                                                                 struct gshmem_switch_word *to)
{
    const bool negative = (T)-1 < (T)0;
    struct gshmem_switch_word w = {};

    if (sizeof(T) == 4 && gshmem_switch_on_bits(op)) {
        GSHMEM_SWITCH_BITS(GSHMEM_SWITCH_LOAD_4, op, "b32");
    } else if (sizeof(T) == 4 && negative) {
        GSHMEM_SWITCH_ORDERED(GSHMEM_SWITCH_LOAD_4, op, "u32", "s32");
    } else if (sizeof(T) == 4) {
        GSHMEM_SWITCH_ORDERED(GSHMEM_SWITCH_LOAD_4, op, "u32", "u32");
    } else if (gshmem_switch_on_bits(op)) {
        GSHMEM_SWITCH_BITS(GSHMEM_SWITCH_LOAD_2, op, "b64");
    } else if (negative) {
        GSHMEM_SWITCH_ORDERED(GSHMEM_SWITCH_LOAD_2, op, "u64", "s64");
    } else {
        GSHMEM_SWITCH_ORDERED(GSHMEM_SWITCH_LOAD_2, op, "u64", "u64");
    }
    *to = w;
}

#undef GSHMEM_SWITCH_BITS
#undef GSHMEM_SWITCH_ORDERED
#undef GSHMEM_SWITCH_LOAD_2
#undef GSHMEM_SWITCH_LOAD_4
#undef GSHMEM_SWITCH_LOAD_1

template <bool real> struct gshmem_switch_loads {
    template <class T>
    GSHMEM_KERNEL void load(int op, const char *there, struct gshmem_switch_word *to)
    {
        gshmem_switch_load_real<T>(op, there, to);
    }
};

template <> struct gshmem_switch_loads<false> {
    template <class T>
    GSHMEM_KERNEL void load(int op, const char *there, struct gshmem_switch_word *to)
    {
        gshmem_switch_load_integer<T>(op, there, to);
    }
};

/* Stores to all members' copies of `to`, the caller's own included. Returns how many bytes it has
 * stored, whole words from the beginning; the caller sends the rest in another way. */
template <int scope>
GSHMEM_KERNEL_RARE size_t gshmem_kernel_spread(const struct gshmem_device_team *t, void *to,
                                               const void *from, size_t bytes)
{
    const struct gshmem_switch_word *source = (const struct gshmem_switch_word *)from;
    const size_t words = bytes / sizeof *source;
    char *there = gshmem_kernel_multicast(t, to, bytes);

    if (scope != GSHMEM_SCOPE_BLOCK || !there || !from || ((uintptr_t)to | (uintptr_t)from) & 15)
        return 0;
    gshmem_switch_fence();
    for (size_t i = gshmem_kernel_rank<scope>(); i < words; i += gshmem_kernel_size<scope>()) {
        const uint4 loaded = ((const uint4 *)source)[i];
        const struct gshmem_switch_word w = {{loaded.x, loaded.y, loaded.z, loaded.w}};
        gshmem_switch_store(there + i * sizeof w, &w);
    }
    gshmem_switch_fence();
    return words * sizeof *source;
}

/* The switch combines the members' elements at source. The result is stored in out, and if
 * `everywhere` in all members' copies of out. Returns how many bytes have been combined, in whole
 * words; 0: the switch cannot do it. */
template <int scope, class T>
GSHMEM_KERNEL size_t gshmem_kernel_switch(bool everywhere, int op,
                                          const struct gshmem_device_team *t, T *out,
                                          const T *source, size_t bytes)
{
    const size_t words = bytes / sizeof(struct gshmem_switch_word);
    const char *from = gshmem_kernel_multicast(t, source, bytes);
    char *to = everywhere ? gshmem_kernel_multicast(t, out, bytes) : (char *)out;

    if (scope != GSHMEM_SCOPE_BLOCK || !gshmem_switch_can<T>(op) || !from || !to ||
        ((uintptr_t)out | (uintptr_t)source) & 15)
        return 0;
    gshmem_switch_fence();
    for (size_t i = gshmem_kernel_rank<scope>(); i < words; i += gshmem_kernel_size<scope>()) {
        struct gshmem_switch_word w;
        gshmem_switch_loads<gshmem_switch_real<T>()>::template load<T>(op, from + i * sizeof w, &w);
        if (everywhere)
            gshmem_switch_store(to + i * sizeof w, &w);
        else
            ((uint4 *)to)[i] = make_uint4(w.part[0], w.part[1], w.part[2], w.part[3]);
    }
    gshmem_switch_fence();
    return words * sizeof(struct gshmem_switch_word);
}

#else /* the CPU, and GPUs before such switches */

template <int scope>
GSHMEM_KERNEL size_t gshmem_kernel_spread(const struct gshmem_device_team *, void *, const void *,
                                          size_t)
{
    return 0;
}

template <int scope, class T>
GSHMEM_KERNEL size_t gshmem_kernel_switch(bool, int, const struct gshmem_device_team *, T *,
                                          const T *, size_t)
{
    return 0;
}

#endif
#endif
