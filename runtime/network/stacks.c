#define _GNU_SOURCE
#include "runtime/network/stacks.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/program_counter.h"
#include "runtime/node/threads.h"

enum {
    HANDLER_MS = 100,      /* that a running thread has to answer a signal */
    STACK_WORDS = 2048,    /* of a sleeping thread that are looked through */
    CODE_RANGES = 256,     /* of files; what is called in others is not seen */
    HANDLER_FRAMES = 4,    /* at most, of the handler and the system, before the thread's own */
    STACK_SIGNAL = SIGURG, /* which programs ignore, unless they say otherwise */
};

/* ---- A thread that runs: a signal's handler takes its stack ----
 *
 * Only to threads that run: to one that sleeps in a system call a signal would be a change, since
 * some calls end by it. And only where the program has left the signal alone; the host device uses
 * it, too, whose handler gets the signals that are not ours. */

static struct {
    _Atomic int32_t tid; /* the thread whose handler may write; 0: none */
    _Atomic bool done;
    struct where_thread *to;
    struct sigaction before; /* what the signal did: nothing, or the host device's */
} sample;

static void take_own_stack(int number, siginfo_t *info, void *context)
{
    const int error = errno;
    int32_t tid = (int32_t)syscall(SYS_gettid);
    void *frame[HANDLER_FRAMES + WHERE_FRAMES];

    /* acquire: pairs with the release in sample_by_signal; a handler that is late finds 0 */
    if (atomic_compare_exchange_strong_explicit(&sample.tid, &tid, -1, memory_order_acquire,
                                                memory_order_relaxed)) {
        const uint64_t at = program_counter(context);
        struct where_thread *to = sample.to;
        int n = backtrace(frame, HANDLER_FRAMES + WHERE_FRAMES), first = 0;
        while (first < n && (uint64_t)(uintptr_t)frame[first] != at)
            first++;
        to->frame[to->frames++] = at + 1; /* like an address behind a call */
        for (int i = first + 1; i < n && to->frames < WHERE_FRAMES; i++)
            to->frame[to->frames++] = (uint64_t)(uintptr_t)frame[i];
        /* release: pairs with the acquire in sample_by_signal */
        atomic_store_explicit(&sample.done, true, memory_order_release);
    } else if (sample.before.sa_handler != SIG_DFL) {
        sample.before.sa_sigaction(number, info, context);
    }
    errno = error;
}

static bool may_replace(const struct sigaction *action)
{
    Dl_info info;

    if (action->sa_handler == SIG_DFL)
        return true;
    return action->sa_flags & SA_SIGINFO &&
           dladdr((void *)(uintptr_t)action->sa_sigaction, &info) && info.dli_fname &&
           strstr(info.dli_fname, "libgshmem_host.so");
}

/* The host device's handler, which may be called from this one, goes on with another CUDA thread:
 * it has to be on the stack of the one that it has interrupted. */
static void sample_by_signal(struct where_thread *t)
{
    struct sigaction ours = {.sa_sigaction = take_own_stack, .sa_flags = SA_SIGINFO | SA_RESTART};
    int32_t tid = t->tid;

    if (sigaction(STACK_SIGNAL, NULL, &sample.before) != 0 || !may_replace(&sample.before))
        return;
    ours.sa_flags |= sample.before.sa_handler == SIG_DFL ? SA_ONSTACK : 0;
    if (sigaction(STACK_SIGNAL, &ours, NULL) != 0)
        return;
    sample.to = t;
    atomic_store_explicit(&sample.done, false, memory_order_relaxed);
    atomic_store_explicit(&sample.tid, tid, memory_order_release);
    if (syscall(SYS_tgkill, getpid(), tid, STACK_SIGNAL) == 0) {
        for (int ms = 0;
             ms < HANDLER_MS && !atomic_load_explicit(&sample.done, memory_order_acquire); ms++)
            clock_sleep(CLOCK_MS);
    }
    /* A handler that has begun is at work, and ends soon. */
    if (!atomic_compare_exchange_strong_explicit(&sample.tid, &tid, 0, memory_order_relaxed,
                                                 memory_order_relaxed)) {
        while (!atomic_load_explicit(&sample.done, memory_order_acquire))
            clock_sleep(CLOCK_MS);
        atomic_store_explicit(&sample.tid, 0, memory_order_relaxed);
    }
    sigaction(STACK_SIGNAL, &sample.before, NULL);
}

void stacks_prepare(void)
{
    void *frame[4];

    backtrace(frame, 4); /* the first call loads a library */
}

/* ---- A thread that sleeps: its stack is looked through ---- */

static bool copy_own(uint64_t from, void *to, size_t bytes)
{
    struct iovec here = {to, bytes}, there = {(void *)(uintptr_t)from, bytes};

    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

/* Where code is: bytes of data may look like a call. */
struct code {
    int n;
    uint64_t begin[CODE_RANGES], end[CODE_RANGES];
};

static int add_code(struct dl_phdr_info *info, size_t size, void *context)
{
    struct code *code = context;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum && code->n < CODE_RANGES; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
            continue;
        code->begin[code->n] = info->dlpi_addr + p->p_vaddr;
        code->end[code->n++] = info->dlpi_addr + p->p_vaddr + p->p_memsz;
    }
    return 0;
}

static bool is_code(const struct code *code, uint64_t at)
{
    for (int i = 0; i < code->n; i++) {
        if (at >= code->begin[i] && at < code->end[i])
            return true;
    }
    return false;
}

/* Whether the instruction before that address is a call. */
static bool follows_call(uint64_t at)
{
    unsigned char code[8];

    if (at < sizeof code || !copy_own(at - sizeof code, code, sizeof code))
        return false;
#if defined(__x86_64__)
    if (code[3] == 0xe8)
        return true;
    for (int length = 2; length <= 7; length++) {
        if (code[8 - length] == 0xff && (code[9 - length] & 0x38) == 0x10)
            return true;
    }
    return false;
#elif defined(__aarch64__)
    uint32_t word;
    memcpy(&word, code + 4, sizeof word);
    return (word & 0xfc000000u) == 0x94000000u || (word & 0xfffffc1fu) == 0xd63f0000u;
#else
    return false;
#endif
}

static uint32_t look_through(const struct code *code, uint64_t sp, uint64_t *frame, uint32_t most)
{
    uint64_t word[64];
    uint32_t n = 0;

    sp &= ~7ull;
    for (int at = 0; at < STACK_WORDS && n < most; at += 64, sp += sizeof word) {
        if (!copy_own(sp, word, sizeof word))
            break;
        for (int i = 0; i < 64 && n < most; i++) {
            if (is_code(code, word[i]) && follows_call(word[i]))
                frame[n++] = word[i];
        }
    }
    return n;
}

uint32_t stacks_look_through(uint64_t from, uint64_t *frame, uint32_t most)
{
    struct code code = {.n = 0};

    dl_iterate_phdr(add_code, &code);
    return look_through(&code, from, frame, most);
}

static void guess_stack(const struct code *code, struct where_thread *t)
{
    char path[64], line[256];
    unsigned long long sp = 0, pc = 0;

    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", t->tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    if (fd >= 0)
        close(fd);
    line[n > 0 ? n : 0] = 0;
    char *last = strrchr(line, ' ');
    if (!last)
        return;
    *last = 0;
    char *before = strrchr(line, ' ');
    if (!before || sscanf(before, " %llx", &sp) != 1 || sscanf(last + 1, "%llx", &pc) != 1)
        return;
    t->guessed = 1;
    t->frame[t->frames++] = pc;
    t->frames += look_through(code, sp, t->frame + t->frames, WHERE_FRAMES - t->frames);
}

/* ---- All threads ---- */

/* Whether it lives, and is the program's, or runs a kernel of the program's on the CPU. */
static bool read_state(struct where_thread *t, const struct threads_one *of_main)
{
    struct threads_one one;

    if (threads_read(t->tid, &one) != THREADS_FOUND)
        return false;
    snprintf(t->name, sizeof t->name, "%.*s", (int)sizeof t->name - 1, one.name);
    t->state = one.state;
    if (strcmp(one.name, "gshmem-worker") == 0)
        return one.state == 'R';
    return !threads_has_ended(&one) && !threads_is_a_library(&one, of_main);
}

static bool has_taken(const struct where_stacks *out, int32_t tid)
{
    uint32_t i = 0;

    while (i < out->threads && out->thread[i].tid != tid)
        i++;
    return i < out->threads;
}

static void stacks_take_one(int32_t tid, bool any, const struct threads_one *of_main,
                            const struct code *code, struct where_stacks *out)
{
    struct where_thread *t = &out->thread[out->threads];

    memset(t, 0, sizeof *t);
    t->tid = tid;
    if (tid <= 0 || has_taken(out, tid) || !read_state(t, of_main) ||
        !(any || t->state == 'R' || tid == getpid()))
        return;
    if (t->state == 'R')
        sample_by_signal(t);
    else
        guess_stack(code, t);
    out->threads++;
}

void stacks_take(struct where_stacks *out)
{
    DIR *tasks = opendir("/proc/self/task");
    struct threads_one of_main = {.name = ""};
    struct code code = {.n = 0};
    struct dirent *entry;

    memset(out, 0, sizeof *out);
    threads_read(getpid(), &of_main);
    dl_iterate_phdr(add_code, &code);
    for (int any = 0; tasks && any <= 1; any++) {
        while ((entry = readdir(tasks)) && out->threads < WHERE_THREADS)
            stacks_take_one(atoi(entry->d_name), any, &of_main, &code, out);
        rewinddir(tasks);
    }
    if (tasks)
        closedir(tasks);
}
