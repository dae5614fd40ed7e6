#define _GNU_SOURCE
#include "runtime/network/crash.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/program_counter.h"
#include "runtime/network/stacks.h"

enum {
    FRAMES = 24,
    SHOWN = 8,              /* frames whose source lines are looked up */
    STACK_NEAR = 16384,   /* bytes around a thread's stack pointer that are still of its stack */
    END_SECONDS = 20,       /* after which a process that cannot say it ends all the same */
    LINES_MS = 5000,        /* that this may take for one file */
    ALTERNATE_BYTES = 65536 /* of the stack on which a thread that has used up its own is handled */
};

/* Their names: strsignal may translate them, which takes memory. */
static const struct {
    int number;
    const char *name;
} signals[] = {
    {SIGSEGV, "Segmentation fault"},    {SIGBUS, "Bus error"},
    {SIGFPE, "Arithmetic exception"},   {SIGILL, "Illegal instruction"},
    {SIGTRAP, "Trace/breakpoint trap"}, {SIGABRT, "Aborted"},
};

/* Read by the handler. */
static struct {
    int pe;
    pid_t owner;
    _Atomic pid_t crashing;                       /* the thread that says it; 0: none has crashed */
    void (*name_thread)(char *text, size_t size); /* of the host device; NULL: it is not there */
    int (*in_kernel)(void);
    void *alternate; /* the stack of the thread that began the job */
} crash;

static void crash_write(const char *text, size_t bytes)
{
    while (bytes) {
        ssize_t n = write(STDERR_FILENO, text, bytes);
        if (n <= 0 && errno != EINTR)
            return;
        text += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
}

__attribute__((format(printf, 1, 2))) static void crash_say(const char *format, ...)
{
    char line[512];
    va_list args;
    int used = snprintf(line, sizeof line, "gshmem[%d] crash: ", crash.pe);

    va_start(args, format);
    int n = vsnprintf(line + used, sizeof line - (size_t)used - 1, format, args);
    va_end(args);
    used += n < 0 ? 0 : n < (int)sizeof line - used - 1 ? n : (int)sizeof line - used - 2;
    line[used++] = '\n';
    crash_write(line, (size_t)used);
}

/* ---- Source lines: addr2line writes them, one process for each file ---- */

static void run_program(char *const *argument)
{
    /* Without the handlers that other libraries have for fork: their locks may be held. */
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    int null;

    if (pid == 0) {
        dup2(STDERR_FILENO, STDOUT_FILENO);
        if ((null = open("/dev/null", O_RDWR)) >= 0) {
            dup2(null, STDIN_FILENO);
            dup2(null, STDERR_FILENO);
        }
        execvp(argument[0], argument);
        _exit(127);
    }
    for (int ms = 0; pid > 0 && ms < LINES_MS; ms++) {
        if (waitpid(pid, NULL, WNOHANG) != 0)
            return;
        clock_sleep(CLOCK_MS);
    }
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
}

static bool is_of_library(const char *path)
{
    const char *name = strrchr(path, '/');

    name = name ? name + 1 : path;
    return strncmp(name, "libc.", 5) == 0 || strncmp(name, "ld-", 3) == 0 ||
           strncmp(name, "linux-vdso", 10) == 0;
}

/* A frame's file and the address in it; at: of an instruction in it. */
static bool find_file(uintptr_t at, const char **path, uintptr_t *offset)
{
    struct link_map *map = NULL;
    Dl_info info;

    if (!dladdr1((void *)at, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return false;
    *path = map->l_name && map->l_name[0] ? map->l_name : "/proc/self/exe";
    *offset = at - map->l_addr;
    return true;
}

/* The lines of frames from `first` on that are in one file: how many there are. */
static int say_lines(void *const *frame, int first, int n, const char *program)
{
    static char number[SHOWN][24];
    char *argument[5 + SHOWN] = {(char *)"addr2line", (char *)"-fipCs", (char *)"-e"};
    const char *path, *file = NULL;
    uintptr_t offset;
    int used = 0;

    for (int i = first; i < n && used < SHOWN; i++) {
        /* -1: of the call that the address follows */
        if (!find_file((uintptr_t)frame[i] - 1, &path, &offset) ||
            (file && strcmp(path, file) != 0))
            break;
        file = path;
        snprintf(number[used], sizeof number[used], "%#lx", (unsigned long)offset);
        argument[4 + used] = number[used];
        used++;
    }
    if (used && !is_of_library(file)) {
        argument[3] = (char *)(uintptr_t)(strcmp(file, "/proc/self/exe") == 0 ? program : file);
        run_program(argument);
    }
    return used ? used : 1;
}

static void say_stack(void *const *frame, int first, int n)
{
    char program[256];
    const char *path;
    uintptr_t offset;
    ssize_t bytes = readlink("/proc/self/exe", program, sizeof program - 1);

    program[bytes > 0 ? bytes : 0] = 0;
    for (int i = first; i < n; i++) {
        Dl_info info = {.dli_sname = NULL};
        if (!find_file((uintptr_t)frame[i] - 1, &path, &offset))
            continue;
        dladdr((char *)frame[i] - 1, &info);
        crash_say("  %s%s%s+0x%lx", info.dli_sname ? info.dli_sname : "",
                  info.dli_sname ? " in " : "",
                  strcmp(path, "/proc/self/exe") == 0 ? program : path, (unsigned long)offset);
    }
    for (int i = first; i < n && i < first + SHOWN;)
        i += say_lines(frame, i, n, program);
}

/* ---- The handler ---- */

/* The thread may have crashed with a lock that is needed here, such as malloc's: then the process
 * ends by SIGALRM. */
static void end_anyway(void)
{
    sigset_t alarms;

    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    signal(SIGALRM, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    alarm(END_SECONDS);
}

/* The address that was used is known of a fault that the processor has described: not of a signal
 * that a process sent, nor of an address that is none. */
static bool has_address(int number, const siginfo_t *info)
{
    return (number == SIGSEGV || number == SIGBUS) && info->si_code > 0 &&
           info->si_code != SI_KERNEL;
}

/* Whether it is right below, or at the end of, the thread's stack. */
static bool has_used_up_stack(int number, const siginfo_t *info, const void *context)
{
    const uintptr_t at = (uintptr_t)info->si_addr, sp = stack_pointer(context);

    return has_address(number, info) && sp && at < sp + STACK_NEAR && at + STACK_NEAR >= sp;
}

static const char *name_signal(int number)
{
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        if (signals[i].number == number)
            return signals[i].name;
    }
    return "?";
}

/* Of a thread that has jumped to where no code is, as by a function pointer that is not set, the
 * stack cannot be followed from there (backtrace reads at that address): its callers are looked for
 * on it. */
static int find_callers(const void *context, void **frame, int most)
{
    uint64_t caller[FRAMES];
    const uint32_t n = stacks_look_through(stack_pointer(context), caller, (uint32_t)most);

    for (uint32_t i = 0; i < n; i++)
        frame[i] = (void *)(uintptr_t)caller[i];
    return (int)n;
}

static void say_crash(int number, const siginfo_t *info, const void *context)
{
    void *frame[FRAMES];
    const char *path;
    uintptr_t offset;
    char where[200] = "";
    const uintptr_t at = program_counter(context);

    if (crash.in_kernel && crash.name_thread && crash.in_kernel())
        crash.name_thread(where, sizeof where);
    crash_say("PE %d (process %d) got signal %d (%s)%s%s", crash.pe, (int)getpid(), number,
              name_signal(number), where[0] ? ", in " : "", where);
    if (has_address(number, info))
        crash_say("  it used address %p", info->si_addr);
    if (has_used_up_stack(number, info, context))
        crash_say("  the thread's stack is used up%s",
                  where[0] ? "; GSHMEM_HOST_STACK sets the size of those of kernels" : "");
    if (stack_pointer(context) && !find_file(at, &path, &offset)) {
        say_stack(frame, 0, find_callers(context, frame, FRAMES));
        return;
    }
    int n = backtrace(frame, FRAMES), first = 0;
    while (first < n && (uintptr_t)frame[first] != at)
        first++;
    if (first == n)
        first = n > 2 ? 2 : 0;
    else
        frame[first] = (char *)frame[first] + 1; /* like an address behind a call */
    say_stack(frame, first, n);
}

/* Once. Another thread that crashes meanwhile waits, so that the first one can say all; what
 * crashes while it does ends the process. */
static void take_crash(int number, siginfo_t *info, void *context)
{
    const pid_t own = gettid();
    pid_t first = 0;

    if (getpid() == crash.owner) {
        if (atomic_compare_exchange_strong_explicit(&crash.crashing, &first, own,
                                                    memory_order_relaxed, memory_order_relaxed)) {
            end_anyway();
            say_crash(number, info, context);
        } else if (first != own) {
            for (;;) /* the first one ends the process, or the alarm does */
                pause();
        }
    }
    signal(number, SIG_DFL);
    if (info->si_code <= 0 || number == SIGABRT || number == SIGTRAP)
        raise(number); /* else the instruction is tried again, and ends the process */
}

/* ---- Life ---- */

static void use_alternate_stack(void)
{
    stack_t now, ours = {.ss_size = ALTERNATE_BYTES};

    if (crash.alternate || sigaltstack(NULL, &now) != 0 || !(now.ss_flags & SS_DISABLE))
        return;
    ours.ss_sp = crash.alternate = malloc(ALTERNATE_BYTES);
    if (ours.ss_sp)
        sigaltstack(&ours, NULL);
}

/* The thread that answers has loaded what backtrace needs (stacks_prepare). */
void crash_begin(int pe)
{
    struct sigaction ours = {.sa_sigaction = take_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};

    crash.pe = pe;
    crash.owner = getpid();
    crash.name_thread =
        (void (*)(char *, size_t))(uintptr_t)dlsym(RTLD_DEFAULT, "gshmem_host_name_thread");
    crash.in_kernel = (int (*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "gshmem_host_in_kernel");
    use_alternate_stack();
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction before;
        if (sigaction(signals[i].number, NULL, &before) == 0 && !(before.sa_flags & SA_SIGINFO) &&
            before.sa_handler == SIG_DFL)
            sigaction(signals[i].number, &ours, NULL);
    }
}

/* The handlers stay: a process that crashes when it has left the job, in a function of atexit for
 * one, ends the job all the same. Code of kernels may be unloaded from now on. */
void crash_end(void)
{
    crash.name_thread = NULL;
    crash.in_kernel = NULL;
}
