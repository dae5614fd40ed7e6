#define _GNU_SOURCE
#include "runtime/where/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/where/function_name.h"
#include "runtime/where/symbols.h"

enum {
    ADDRESSES = 400,   /* that it is given at most */
};

struct lines {
    struct line *line;
    size_t n, room;
};

struct lines *lines_new(void)
{
    return calloc(1, sizeof(struct lines));
}

void lines_free(struct lines *l)
{
    if (l)
        free(l->line);
    free(l);
}

static const struct where_module *find_module(const struct where_page *page, uint64_t at)
{
    const uint32_t known = page ? page->modules : 0;
    const uint32_t n = known < WHERE_MODULES ? known : WHERE_MODULES;

    for (uint32_t i = 0; i < n; i++) {
        if (at >= page->module[i].begin && at < page->module[i].end)
            return &page->module[i];
    }
    return NULL;
}

static struct line *find_line(const struct lines *l, const char *path, uint64_t at)
{
    for (size_t i = 0; i < l->n; i++) {
        if (l->line[i].at == at && l->line[i].path && strcmp(l->line[i].path, path) == 0)
            return &l->line[i];
    }
    return NULL;
}

void lines_add(struct lines *l, const struct where_page *page, uint64_t at)
{
    const struct where_module *m = find_module(page, at);

    if (!l || !m || find_line(l, m->path, at - m->bias))
        return;
    if (l->n == l->room) {
        size_t room = l->room ? 2 * l->room : 64;
        struct line *grown = realloc(l->line, room * sizeof *grown);
        if (!grown)
            return;
        l->line = grown;
        l->room = room;
    }
    l->line[l->n] = (struct line){.path = m->path, .at = at - m->bias};
    l->n++;
}

const struct line *lines_find(const struct lines *l, const struct where_page *page, uint64_t at)
{
    const struct where_module *m = find_module(page, at);

    return l && m ? find_line(l, m->path, at - m->bias) : NULL;
}

/* ---- addr2line ---- */

/* Where its output is read from; *pid: the process. -1: it could not be started. */
static int start_program(char *const *argument, pid_t *pid)
{
    int out[2], null;

    if (pipe2(out, O_CLOEXEC) != 0)
        return -1;
    *pid = fork();
    if (*pid == 0) {
        null = open("/dev/null", O_RDWR);
        dup2(null, STDIN_FILENO);
        dup2(null, STDERR_FILENO);
        dup2(out[1], STDOUT_FILENO);
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execvp(argument[0], argument);
        _exit(127);
    }
    close(out[1]);
    if (*pid > 0)
        return out[0];
    close(out[0]);
    return -1;
}

static char *lines_read(int fd, uint64_t until)
{
    size_t used = 0, room = 1 << 16;
    char *text = malloc(room);
    ssize_t n = 0;

    while (text) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        const uint64_t now = clock_ns();
        if (now >= until || poll(&ready, 1, (int)((until - now) / CLOCK_MS) + 1) <= 0 ||
            (n = read(fd, text + used, room - used - 1)) <= 0)
            break;
        used += (size_t)n;
        if (room - used < 4096) {
            char *grown = realloc(text, room *= 2);
            if (!grown)
                break;
            text = grown;
        }
    }
    if (text)
        text[used] = 0;
    return text;
}

/* Whether a name of ours is in it, as C++ prints functions: with types and namespaces. What it is
 * made for does not count. */
static bool is_of_gshmem(const char *function)
{
    const char *arguments = strchr(function, '<');

    static const char *const names[] = {"gshmem_", "shmem_", "nvshmem_", "nvshmemx_"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *at = strstr(function, names[i]);
        if (at && (!arguments || at < arguments) && (at == function || strchr(" :(*", at[-1])))
            return true;
    }
    return false;
}

static char *next_line(char **at)
{
    char *line = *at, *end = line ? strchr(line, '\n') : NULL;

    if (!line || !*line)
        return NULL;
    if (end)
        *end = 0;
    *at = end ? end + 1 : NULL;
    return line;
}

/* On the host device a kernel's code may be in a function of ours that is made for it: its name.
 * NULL: it is no such function, or the place is in our headers. */
static const char *kernel_of(const char *function, const char *source)
{
    const char *at = strstr(function, "gshmem_host::kernel<");

    at = at && !strstr(source, "/gshmem/") ? strstr(at, "&(") : NULL;
    return at ? at + 2 : NULL;
}

static void keep_line(struct line *line, const char *function, char *source)
{
    char *more = strstr(source, " (discriminator");
    const char *name = strrchr(source, '/');
    const char *const kernel = kernel_of(function, source);

    if (more)
        *more = 0;
    line->of_gshmem = !kernel && is_of_gshmem(function);
    if (kernel)
        snprintf(line->function, sizeof line->function, "kernel %.*s",
                 (int)strcspn(kernel, "(<>)"), kernel);
    else if (strncmp(function, "operator()", 10) ==
        0) /* the lambda that a kernel on the host device is */
        snprintf(line->function, sizeof line->function, "the kernel");
    else if (strcmp(function, "??") != 0)
        function_name_shorten(function, line->function, sizeof line->function);
    if (strncmp(source, "??", 2) != 0 && strstr(source, ":?") == NULL)
        snprintf(line->source, sizeof line->source, "%s", name ? name + 1 : source);
}

/* What they define is inlined in the program. addr2line may give it the program's name: "main", in
 * a header. */
static bool is_in_our_headers(const char *source)
{
    static const char *const folders[] = {"/gshmem/device/", "/gshmem/host_device/",
                                          "/nvshmem/device/"};

    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        if (strstr(source, folders[i]))
            return true;
    }
    return false;
}

/* For each address its number, then pairs of lines, a function and a place: first what was inlined,
 * last the function that it was inlined in. The first that is not of our headers counts. */
static void parse(struct lines *l, const char *path, char *text)
{
    struct line *line = NULL;
    bool kept = false;
    char *function, *source;

    while ((function = next_line(&text))) {
        if (strncmp(function, "0x", 2) == 0) {
            /* what was asked for is the byte before it: the call */
            line = find_line(l, path, strtoull(function, NULL, 16) + 1);
            kept = false;
            continue;
        }
        if (!(source = next_line(&text)))
            break;
        if (!line || kept)
            continue;
        const bool in_headers = is_in_our_headers(source);
        keep_line(line, function, source);
        line->in_gshmem |= line->of_gshmem || in_headers;
        kept = !line->of_gshmem && !in_headers;
    }
}

static void resolve_file(struct lines *l, const char *path, uint64_t until)
{
    char *argument[6 + ADDRESSES + 1] = {(char *)"addr2line", (char *)"-afiC", (char *)"-e",
                                         (char *)(uintptr_t)path};
    char(*number)[24] = calloc(ADDRESSES, sizeof *number);
    int n = 4, used = 0;
    pid_t pid;

    for (size_t i = 0; number && i < l->n && used < ADDRESSES; i++) {
        if (strcmp(l->line[i].path, path) != 0)
            continue;
        snprintf(number[used], sizeof number[used], "0x%llx",
                 (unsigned long long)(l->line[i].at - 1));
        argument[n++] = number[used++];
    }
    int fd = used ? start_program(argument, &pid) : -1;
    if (fd >= 0) {
        char *text = lines_read(fd, until);
        close(fd);
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        if (text)
            parse(l, path, text);
        free(text);
    }
    free(number);
}

/* Libraries of the system have symbols enough, and their lines say nothing to most. */
static bool is_of_system(const char *path)
{
    const char *name = strrchr(path, '/');

    name = name ? name + 1 : path;
    return strncmp(name, "libc.", 5) == 0 || strncmp(name, "libc-", 5) == 0 ||
           strncmp(name, "libpthread", 10) == 0 || strncmp(name, "ld-", 3) == 0 ||
           strncmp(name, "libgshmem", 9) == 0 || strncmp(name, "linux-vdso", 10) == 0;
}

static bool is_first_of_file(const struct lines *l, size_t i)
{
    for (size_t other = 0; other < i; other++) {
        if (strcmp(l->line[other].path, l->line[i].path) == 0)
            return false;
    }
    return true;
}

void lines_resolve(struct lines *l, uint64_t until)
{
    uint64_t offset;

    for (size_t i = 0; l && i < l->n; i++) {
        if (clock_ns() < until && is_first_of_file(l, i) && !is_of_system(l->line[i].path))
            resolve_file(l, l->line[i].path, until);
    }
    for (size_t i = 0; l && i < l->n; i++) {
        struct line *line = &l->line[i];
        if (!line->function[0])
            symbols_find(line->path, line->at - 1, true, line->function, sizeof line->function,
                         &offset);
    }
}

/* ---- Variables ---- */

bool lines_variable(const struct where_page *page, uint64_t at, char *text, size_t size)
{
    const struct where_module *m = find_module(page, at);
    char name[128];
    uint64_t offset;

    if (!m || !symbols_find(m->path, at - m->bias, false, name, sizeof name, &offset))
        return false;
    if (offset)
        snprintf(text, size, "%s+%llu", name, (unsigned long long)offset);
    else
        snprintf(text, size, "%s", name);
    return true;
}
