/* CUDA's short vectors: int4, float2, uint3, …, with make_int4() and the like, and dim3. */
#ifndef GSHMEM_HOST_DEVICE_VECTOR_TYPES_H
#define GSHMEM_HOST_DEVICE_VECTOR_TYPES_H

#include "toolkit.h"

#ifdef __cplusplus
#define GSHMEM_HOST_MAKE(declaration) static inline constexpr declaration
#else
#define GSHMEM_HOST_MAKE(declaration) static inline declaration
#endif

/* A vector is aligned as its loads on a GPU require. */
#define GSHMEM_HOST_VECTOR(name, type, align2, align4)                                             \
    typedef struct name##1 {                                                                       \
        type x;                                                                                    \
    } name##1;                                                                                     \
    typedef struct __attribute__((aligned(align2))) name##2 {                                      \
        type x, y;                                                                                 \
    } name##2;                                                                                     \
    typedef struct name##3 {                                                                       \
        type x, y, z;                                                                              \
    } name##3;                                                                                     \
    typedef struct __attribute__((aligned(align4))) name##4 {                                      \
        type x, y, z, w;                                                                           \
    } name##4;                                                                                     \
    GSHMEM_HOST_MAKE(name##1 make_##name##1(type x))                                               \
    {                                                                                              \
        return name##1{x};                                                                         \
    }                                                                                              \
    GSHMEM_HOST_MAKE(name##2 make_##name##2(type x, type y))                                       \
    {                                                                                              \
        return name##2{x, y};                                                                      \
    }                                                                                              \
    GSHMEM_HOST_MAKE(name##3 make_##name##3(type x, type y, type z))                               \
    {                                                                                              \
        return name##3{x, y, z};                                                                   \
    }                                                                                              \
    GSHMEM_HOST_MAKE(name##4 make_##name##4(type x, type y, type z, type w))                       \
    {                                                                                              \
        return name##4{x, y, z, w};                                                                \
    }

#ifdef __cplusplus
GSHMEM_HOST_VECTOR(char, signed char, 2, 4)
GSHMEM_HOST_VECTOR(uchar, unsigned char, 2, 4)
GSHMEM_HOST_VECTOR(short, short, 4, 8)
GSHMEM_HOST_VECTOR(ushort, unsigned short, 4, 8)
GSHMEM_HOST_VECTOR(int, int, 8, 16)
GSHMEM_HOST_VECTOR(uint, unsigned, 8, 16)
GSHMEM_HOST_VECTOR(long, long, 16, 16)
GSHMEM_HOST_VECTOR(ulong, unsigned long, 16, 16)
GSHMEM_HOST_VECTOR(longlong, long long, 16, 16)
GSHMEM_HOST_VECTOR(ulonglong, unsigned long long, 16, 16)
GSHMEM_HOST_VECTOR(float, float, 8, 16)
GSHMEM_HOST_VECTOR(double, double, 16, 16)
#else
typedef struct uint3 {
    unsigned x, y, z;
} uint3;
#endif

typedef struct dim3 {
    unsigned x, y, z;
#ifdef __cplusplus
    constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz)
    {
    }
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z)
    {
    }
    constexpr operator uint3() const
    {
        return uint3{x, y, z};
    }
#endif
} dim3;

typedef struct CUstream_st *cudaStream_t;

#undef GSHMEM_HOST_VECTOR
#undef GSHMEM_HOST_MAKE

#endif
