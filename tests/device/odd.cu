/* Source that is easy to read wrongly: what looks like a launch and is none, launches in odd places,
 * declarations of every shape. */
#include <cstdio>
#include <functional>
#include <ostream>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "device.h"

template <class A, class B> struct two {
    A a;
    B b;
};

struct printable {
    int value;
    template <class T> friend std::ostream &operator<<(std::ostream &to, const two<T, printable> &x);
};

template <class T> std::ostream &operator<<(std::ostream &to, const two<T, printable> &x)
{
    return to << x.b.value;
}

template std::ostream &operator<< <int>(std::ostream &, const two<int, printable> &);

static const char *const text = "k<<<1, 2>>>(x) __global__ __shared__"; // k<<<3, 4>>>(y);
static const char *const raw = R"=(k<<<1,2>>>(" ) __shared__ int q; )=";
static const long separated = 1'000'000;
/* k<<<5, 6>>>(z); __shared__ int no; */

static __global__ void __launch_bounds__(64, 2) set(int *__restrict__ out, const int value = 3)
{
    out[threadIdx.x] = value;
}

__launch_bounds__(64) __global__ static void set_again(int *out, int value)
{
#pragma unroll
    for (int i = 0; i < 1; i++)
        out[threadIdx.x] = value >> 1 > 2 ? value >> 1 : -1;
}

template <typename T, T N = (T)(1 << 2)> __global__ void shifted(T *out)
{
    *out = N;
}

template <template <class, class> class Box, class A, class B, int... Numbers>
__global__ void nested(int *out, Box<A, std::vector<std::vector<B>>> *, A add)
{
    int all[] = {Numbers...};

    for (int n : all)
        *out += n + (int)add;
}

template <typename T, typename = typename std::enable_if<sizeof(T) == 4>::type>
__global__ void constrained(T *out, T (*function)(T))
{
    if constexpr (sizeof(T) == 4)
        *out = function ? function(T(4)) : T(5);
}

struct with_kernels {
    template <int N> static void go(int *out)
    {
        set<<<(N > 2 ? 1 : 1), N>>>(out, N);
    }
    int grid = 1;
    dim3 block() const
    {
        return dim3(2);
    }
};

template <class T, unsigned N> struct tile {
    static __device__ T *place()
    {
        __shared__ __align__(16) T first[N], second[(N > 2 ? N : 2)][2];

        return threadIdx.x ? first : &second[0][0];
    }
};

__global__ void use_tiles(int *out)
{
    float *f = tile<float, 33>::place();
    double *d = tile<double, 3>::place();
    __shared__ two<int, two<int, float>> pair, *pointer; __shared__ unsigned long long wide;

    if (threadIdx.x == 0) {
        pair.b.a = 6;
        pointer = &pair;
        wide = sizeof pair;
    }
    __syncthreads();
    f[threadIdx.x ? threadIdx.x : 60] = d[threadIdx.x ? 2 : 5] = 1;
    __syncthreads();
    out[threadIdx.x] = pointer->b.a + (int)wide;
}

#define DECLARE(type, name, count) __shared__ type name[count]
#define KERNEL(name, type)                                                                         \
    __global__ void name(type *out)                                                                \
    {                                                                                              \
        DECLARE(type, here, 64);                                                                   \
        DECLARE(type, there, 64);                                                                  \
        here[threadIdx.x] = (type)threadIdx.x;                                                     \
        there[threadIdx.x] = 1;                                                                    \
        __syncthreads();                                                                           \
        out[threadIdx.x] = here[63 - threadIdx.x] + there[threadIdx.x];                            \
    }
KERNEL(by_macro_int, int)
KERNEL(by_macro_float, float)

static int launches;

static int counted(int value)
{
    launches++;
    return value;
}

/* A launch whose argument launches. */
static int launch_inside(int *out)
{
    set<<<1, 1>>>(out + 40, 77);
    return 9;
}

int main()
{
    int *out = shared_array<int>(64);
    std::ostringstream stream;
    with_kernels object, *pointer = &object;
    std::function<void(int)> indirect = [=](int n) { set<<<1, 1>>>(out, n); };

    stream << two<int, printable>{1, {2}} << (8 >> 2 >> 1);
    std::string printed = stream.str();
    CHECK_STR(printed.c_str(), "21");
    CHECK(strlen(text) == 36 && strlen(raw) > 20 && separated == 1000000);

    out[0] ? set<<<1, 1>>>(out) : set_again<<<1, 1>>>(out, 8);
    CHECK_LAUNCH();
    CHECK_EQ(*out, 4);
    shifted<int, 1 << 4><<<1, 1>>>(out);
    CHECK_LAUNCH();
    CHECK_EQ(*out, 16);
    *out = 4;
    nested<two, char, int, 1, 2><<<1, 1>>>(out, (two<char, std::vector<std::vector<int>>> *)nullptr, 'a');
    CHECK_LAUNCH();
    CHECK_EQ(*out, 4 + 3 + 2 * 'a');
    constrained<<<1, 1>>>(out, (int (*)(int))nullptr);
    CHECK_LAUNCH();
    CHECK_EQ(*out, 5);
    with_kernels::go<4>(out);
    CHECK_LAUNCH();
    CHECK_EQ(out[3], 4);
    set<<<pointer->grid, pointer->block(), (size_t)(1 >> 1), nullptr>>>(out, counted(31));
    CHECK_LAUNCH();
    CHECK_EQ(out[1], 31);
    CHECK_EQ(launches, 1);
    indirect(17);
    CHECK_LAUNCH();
    CHECK_EQ(*out, 17);
    set<<<1, 1>>>(out, launch_inside(out));
    CHECK_LAUNCH();
    CHECK_EQ(*out, 9);
    CHECK_EQ(out[40], 77);
    void (*kernels[])(int *, int) = {set, set_again};
    for (auto kernel : kernels)
        kernel<<<1, 1>>>(out, 14);
    kernels[1]<<<1, 2>>>(out, 20);
    CHECK_LAUNCH();
    CHECK_EQ(*out, 10);
    use_tiles<<<2, 32>>>(out);
    CHECK_LAUNCH();
    CHECK_EQ(out[31], 6 + 12);
    by_macro_int<<<1, 64>>>(out);
    CHECK_LAUNCH();
    CHECK_EQ(out[0], 64);
    by_macro_float<<<1, 64>>>((float *)out);
    CHECK_LAUNCH();
    CHECK(((float *)out)[1] == 63.0f);
    CHECK_CUDA(cudaFree(out));
    return 0;
}
