// Init and finalize by an object's life, templates over the functions without a type, std::complex.
#include <complex>
#include <vector>

#include <shmem.h>

struct Job {
    Job() { shmem_init(); }
    ~Job() { shmem_finalize(); }
};

template <class T> static bool passes_on(T value)
{
    static T cell;
    int n = shmem_n_pes(), me = shmem_my_pe();

    shmem_p(&cell, static_cast<T>(value + static_cast<T>(me)), (me + 1) % n);
    shmem_barrier_all();
    return shmem_g(&cell, me) == static_cast<T>(value + static_cast<T>((me + n - 1) % n));
}

static std::complex<double> source, sum;
static long counter;

int main()
{
    Job job;
    int n = shmem_n_pes();

    source = std::complex<double>(1, 2);
    bool good = passes_on(3) && passes_on(5L) && passes_on(2.5) && passes_on(static_cast<short>(7));
    good &= shmem_sum_reduce(SHMEM_TEAM_WORLD, &sum, &source, 1) == 0;
    good &= sum == std::complex<double>(n, 2 * n);
    shmem_atomic_add(&counter, 2L, 0);
    shmem_barrier_all();
    std::vector<long> got(1);
    shmem_getmem(got.data(), &counter, sizeof counter, 0);
    return good && got[0] == 2L * n ? 0 : 1;
}
