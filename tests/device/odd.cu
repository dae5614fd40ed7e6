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

/* Lambdas use what is shared, and have no copy of it. */
__global__ void in_lambdas(int *out)
{
    __shared__ int words[64], total;
    int add = 1;
    auto at = [=](int i) { return words[i] + add; };
    auto of_itself = [=](int words) mutable { return words; };
    auto declares = [=] {
        int total = 5;
        return total;
    };
    auto nested = [=, &add]() -> int {
        auto inner = [=] { return total + words[0]; };
        return inner() + add - 1;
    };
    auto by_type = [=](decltype(total + 0) i) -> decltype(words[0] + total) { return i + total; };
    auto by_reference = [&] { return [=] { return total; }(); };

    words[threadIdx.x] = threadIdx.x + 10;
    if (threadIdx.x == 0)
        total = 1000;
    __syncthreads();
    out[threadIdx.x] = at(63 - threadIdx.x) + nested() + by_reference() + of_itself(7) + declares() + by_type(2);
}

/* Cases behind a declaration. */
__global__ void in_switch(int *out, int which)
{
    switch (which) {
    case 0:
        __shared__ int one;
        extern __shared__ int some[];
        one = some[1] = 7;
        out[0] = one + some[1];
        break;
    case 1:
        if (which)
            switch (out[1]) {
            default:
                __shared__ int another[2];
                another[1] = 9;
                out[0] = another[1];
                break;
            case 99:
                out[0] = 98;
            }
        break;
    default:
        out[0] = 3;
    }
}

/* One for all kernels of the file, seen as one likes. */
extern __shared__ __align__(16) unsigned char everywhere[];

__device__ int everywhere_at(int i)
{
    return reinterpret_cast<const int *>(everywhere)[i];
}

__global__ void by_casts(int *out)
{
    int *words = (int *)everywhere;
    float *floats = reinterpret_cast<float *>(everywhere + 64 * sizeof(int));

    words[threadIdx.x] = threadIdx.x + blockIdx.x;
    floats[threadIdx.x] = 0.5f;
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = everywhere_at(63 - threadIdx.x) + (int)(2 * floats[threadIdx.x]);
}

static void check_shared()
{
    int *out = shared_array<int>(256);

    in_lambdas<<<1, 64>>>(out);
    CHECK_LAUNCH();
    for (int i = 0; i < 64; i++)
        CHECK_EQ(out[i], 63 - i + 11 + 1010 + 1000 + 7 + 5 + 1002);
    for (int which = 0; which < 3; which++) {
        in_switch<<<1, 1, 64>>>(out, which);
        CHECK_LAUNCH();
        CHECK_EQ(out[0], which == 0 ? 14 : which == 1 ? 9 : 3);
    }
    by_casts<<<4, 64, 64 * (sizeof(int) + sizeof(float))>>>(out);
    CHECK_LAUNCH();
    for (int i = 0; i < 256; i++)
        CHECK_EQ(out[i], 63 - i % 64 + i / 64 + 1);
    CHECK_CUDA(cudaFree(out));
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
    check_shared();
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
