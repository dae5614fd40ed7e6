/* A thread of the program that runs kernels, and so writes into the trace, while the job ends: it is held up by a signal
 * within the library, and the trace stays until it has gone on. */
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>

#include <gshmem.h>

#include "check.h"

enum { JOBS = 8, HELD_MS = 50 };

static uintptr_t code, code_end; /* of libgshmem */
static std::atomic<bool> held, done;

static int find_library(struct dl_phdr_info *of, size_t size, void *nothing)
{
    (void)size, (void)nothing;
    for (int i = 0; strstr(of->dlpi_name, "/libgshmem.so") && i < of->dlpi_phnum; i++) {
        if (of->dlpi_phdr[i].p_type == PT_LOAD && of->dlpi_phdr[i].p_flags & PF_X) {
            code = of->dlpi_addr + of->dlpi_phdr[i].p_vaddr;
            code_end = code + of->dlpi_phdr[i].p_memsz;
        }
    }
    return 0;
}

static uintptr_t instruction_of(const void *context)
{
    const ucontext_t *c = (const ucontext_t *)context;

#if defined(__x86_64__)
    return (uintptr_t)c->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return c->uc_mcontext.pc;
#else
    return (void)c, code; /* anywhere */
#endif
}

static void hold_up(int signal, siginfo_t *info, void *context)
{
    const struct timespec time = {0, HELD_MS * 1000000};
    const uintptr_t at = instruction_of(context);

    (void)signal, (void)info;
    if (held || at < code || at >= code_end)
        return;
    held = true;
    nanosleep(&time, NULL);
}

__global__ void nothing_at_all(void)
{
}

static void *run_kernels(void *nothing)
{
    while (!done) {
        nothing_at_all<<<1, 1>>>();
        CHECK(cudaDeviceSynchronize() == cudaSuccess);
    }
    return nothing;
}

int main()
{
    struct sigaction action = {};
    pthread_t thread;

    dl_iterate_phdr(find_library, NULL);
    CHECK(code);
    action.sa_sigaction = hold_up;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    held = true;
    CHECK_EQ(pthread_create(&thread, NULL, run_kernels, NULL), 0);
    for (int i = 0; i < JOBS; i++) {
        CHECK_OK(gshmem_init());
        CHECK_OK(gshmem_barrier_all());
        held = false;
        while (!held) {
            CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
            usleep(100);
        }
        CHECK_OK(gshmem_finalize());
    }
    done = true;
    CHECK_EQ(pthread_join(thread, NULL), 0);
    return 0;
}
