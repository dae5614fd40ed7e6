/* Places in the program that call: which they are, and their source lines. */
#define _GNU_SOURCE
#include <execinfo.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/memory/caller.h"
#include "runtime/races/parts.h"

enum {
    FRAMES = 24,
    KNOWN = 16384, /* return addresses, by call; more are looked up each time */
    OURS = 0xffff,
};

/* A return address that has been looked up. */
struct races_known {
    const void *from;
    const char *call; /* NULL: of a frame, whatever the call */
    uint16_t site;    /* OURS: in code of ours; 0 of a frame: in the program */
};

struct races_known *races_known_new(void)
{
    return calloc(KNOWN, sizeof(struct races_known));
}

static struct races_known *find_known(struct races *r, const void *from, const char *call)
{
    uint64_t hash = ((uintptr_t)from ^ (uintptr_t)call << 7) * 0x9e3779b97f4a7c15u;

    for (unsigned i = 0; i < 16; i++) {
        struct races_known *k = &r->known[((hash >> 40) + i) % KNOWN];
        if (!k->from || (k->from == from && k->call == call))
            return k;
    }
    return NULL;
}

static bool is_of_ours(struct races *r, const void *from)
{
    struct races_known *k = find_known(r, from, NULL);

    if (k && k->from)
        return k->site == OURS;
    const bool ours = caller_is_of_ours(from);
    if (k)
        *k = (struct races_known){from, NULL, ours ? OURS : 0};
    return ours;
}

static const void *find_caller(struct races *r)
{
    void *frame[FRAMES];
    const int n = backtrace(frame, FRAMES);

    for (int i = 0; i < n; i++) {
        if (!is_of_ours(r, frame[i]))
            return frame[i];
    }
    return NULL;
}

static void site_find_path(const struct caller_place *p, char *path, size_t size)
{
    char *whole = realpath(p->path, NULL);

    snprintf(path, size, "%s", whole ? whole : p->path);
    free(whole);
}

static uint16_t enter_site(struct races *r, const void *from, const char *call)
{
    const struct caller_place p = caller_place(from);
    struct races_site *s;

    if (r->own->sites + 1 >= RACES_SITES)
        return 0;
    s = &r->own->site[++r->own->sites];
    snprintf(s->call, sizeof s->call, "%s", call);
    caller_name(s->name, sizeof s->name, from);
    if (p.file)
        site_find_path(&p, s->path, sizeof s->path);
    s->at = p.at;
    s->key = 0xcbf29ce484222325u ^ p.at;
    for (const char *c = s->path; *c; c++)
        s->key = (s->key ^ (unsigned char)*c) * 0x100000001b3u;
    return (uint16_t)r->own->sites;
}

uint16_t races_site_of(struct races *r, const struct races_call *call)
{
    const void *from = call->from ? call->from : find_caller(r);
    struct races_known *k = find_known(r, from, call->name);
    uint16_t site;

    if (k && k->from)
        return k->site;
    site = enter_site(r, from, call->name);
    if (k && from)
        *k = (struct races_known){from, call->name, site};
    return site;
}

/* ---- Source lines ---- */

/* Runs addr2line and reads what it writes; the number of bytes. */
static size_t ask_addr2line(const char *path, uint64_t at, char *text, size_t size)
{
    extern char **environ;
    char number[24];
    char *argument[] = {(char *)"addr2line", (char *)"-fiC", (char *)"-e", (char *)(uintptr_t)path,
                        number, NULL};
    posix_spawn_file_actions_t actions;
    size_t used = 0;
    ssize_t got = 1;
    int end[2];
    pid_t pid;

    snprintf(number, sizeof number, "%#llx", (unsigned long long)at);
    if (pipe2(end, O_CLOEXEC) != 0)
        return 0;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, end[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    const int failed = posix_spawnp(&pid, argument[0], &actions, NULL, argument, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(end[1]);
    while (!failed && got > 0 && used + 1 < size &&
           (got = read(end[0], text + used, size - 1 - used)) > 0)
        used += (size_t)got;
    close(end[0]);
    if (!failed)
        waitpid(pid, NULL, 0);
    text[used] = 0;
    return used;
}

/* Our headers. */
static bool is_our_file(const char *file)
{
    return strstr(file, "/include/gshmem") || strstr(file, "/include/nvshmem") ||
           strstr(file, "/include/shmem");
}

/* "halo.c:12 (main)". A kernel of the host device is in a function of its own without a name. */
static void write_line(char *text, size_t size, char *function, char *file)
{
    const char *name = strrchr(file, '/');

    file[strcspn(file, " ")] = 0; /* (discriminator 3) */
    function[strcspn(function, "(")] = 0;
    if (strcmp(function, "operator") == 0 || strstr(function, "gshmem_host::"))
        snprintf(text, size, "%s", name ? name + 1 : file);
    else
        snprintf(text, size, "%s (%s)", name ? name + 1 : file, function);
}

/* Of code that is inlined there are several lines, the innermost first: the first one of the
 * program. */
static bool site_find_line(const struct races_site *s, char *text, size_t size)
{
    char answer[8192];
    char *function = answer, *file, *next;

    if (!s->path[0] || !ask_addr2line(s->path, s->at, answer, sizeof answer))
        return false;
    for (; function && *function; function = next) {
        if (!(file = strchr(function, '\n')))
            return false;
        *file++ = 0;
        next = strchr(file, '\n');
        if (next)
            *next++ = 0;
        if (is_our_file(file) && next && *next)
            continue;
        if (strncmp(file, "??", 2) == 0 || strstr(file, ":?"))
            return false;
        write_line(text, size, function, file);
        return true;
    }
    return false;
}

void races_site_text(const struct races_site *s, char *text, size_t size)
{
    if (!site_find_line(s, text, size))
        snprintf(text, size, "%s", s->name[0] ? s->name : "an unknown place");
}
