#define _GNU_SOURCE
#include "nth.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fiber.h"
#include "object.h"
#include "program.h"
#include "record.h"

enum { SITES = 1024, BLOCKS = 1 << 16 };

static const struct {
    const char *name;
    int error;
} kinds[] = {
#define X(name, error) {#name, error},
    NTH_KINDS(X)
#undef X
};

/* A place in the library that makes such calls. */
struct site {
    enum nth_kind kind;
    const void *from;
    uint64_t first, second, last;
};

static struct {
    bool on, fails, always;
    int pe;
    enum nth_kind kind;
    uint64_t number;
    uint64_t said_at;
    uint64_t calls[NTH_KINDS_ALL];
    struct site site[SITES];
    int sites;
    struct {
        void *memory;
        const void *from;
    } block[BLOCKS]; /* by address; a free entry ends a search, and none is removed */
} nth;

bool nth_choose(const char *what)
{
    char kind[32], plus = 0;
    unsigned long long number;
    int n = sscanf(what, "%d:%31[a-z_]:%llu%c", &nth.pe, kind, &number, &plus);

    nth.on = true;
    nth.fails = n >= 3;
    if (!nth.fails)
        return n == 1;
    nth.number = number;
    nth.always = n == 4 && plus == '+';
    while (nth.kind < NTH_KINDS_ALL && strcmp(kinds[nth.kind].name, kind) != 0)
        nth.kind++;
    return nth.kind < NTH_KINDS_ALL && (n == 3 || nth.always);
}

static uintptr_t nth_offset(const void *from)
{
    Dl_info library;

    return dladdr(from, &library) ? (uintptr_t)from - (uintptr_t)library.dli_fbase : 0;
}

bool nth_is_library(const void *from)
{
    Dl_info library;

    return dladdr(from, &library) && strstr(library.dli_fname, "libgshmem-simulated");
}

static void note_site(enum nth_kind kind, const void *from, uint64_t number)
{
    int i = 0;

    while (i < nth.sites && (nth.site[i].from != from || nth.site[i].kind != kind))
        i++;
    if (i == nth.sites && i < SITES)
        nth.site[nth.sites++] = (struct site){kind, from, number, 0, 0};
    else if (i < SITES && !nth.site[i].second)
        nth.site[i].second = number;
    if (i < SITES)
        nth.site[i].last = number;
}

static bool is_watched(void)
{
    return nth.on && fiber_current && fiber_current->pe->number == nth.pe &&
           !fiber_current->pe->ended;
}

bool nth_fails(enum nth_kind kind, const void *from)
{
    if (!is_watched() || !nth_is_library(from))
        return false;
    const uint64_t number = ++nth.calls[kind];
    note_site(kind, from, number);
    if (!nth.fails || kind != nth.kind || number < nth.number ||
        (number > nth.number && !nth.always))
        return false;
    record("PE %d: %s %llu fails, made from %#lx", nth.pe, kinds[kind].name,
           (unsigned long long)number, (unsigned long)nth_offset(from));
    judge.by_call = true;
    program_allow_failures(FAULT_CUT, fiber_current->pe);
    fiber_pass(100 * US); /* who tries again at once has an end, too */
    errno = kinds[kind].error;
    return true;
}

void nth_says(const struct pe *pe)
{
    if (nth.fails && pe->number == nth.pe)
        nth.said_at = fiber_time();
}

bool nth_is_said(uint64_t within)
{
    return nth.always && nth.said_at && world.now - nth.said_at < within;
}

/* ---- Memory that is not freed ---- */

static size_t block_of(const void *memory)
{
    size_t i = (uintptr_t)memory / 16 * UINT64_C(0x9e3779b97f4a7c15) >> 48;

    while (nth.block[i].memory && nth.block[i].memory != memory)
        i = (i + 1) % BLOCKS;
    return i;
}

void nth_allocated(void *memory, const void *from)
{
    if (!memory || !is_watched())
        return;
    const size_t i = block_of(memory);
    nth.block[i].memory = memory;
    nth.block[i].from = from;
}

void nth_freed(const void *memory)
{
    if (memory && nth.on)
        nth.block[block_of(memory)].from = NULL;
}

void nth_print(void)
{
    const struct pe *pe = &world.pe[nth.pe];
    int blocks = 0, descriptors = 0;

    for (int i = 0; i < nth.sites; i++) {
        const struct site *s = &nth.site[i];
        printf("site %s %#lx %llu %llu %llu\n", kinds[s->kind].name,
               (unsigned long)nth_offset(s->from), (unsigned long long)s->first,
               (unsigned long long)s->second, (unsigned long long)s->last);
    }
    if (!pe->ended)
        return;
    for (int i = 0; i < pe->objects; i++)
        descriptors += pe->object[i] != NULL;
    for (size_t i = 0; i < BLOCKS; i++) {
        if (nth.block[i].memory && nth.block[i].from) {
            blocks++;
            printf("block %#lx\n", (unsigned long)nth_offset(nth.block[i].from));
        }
    }
    printf("left %d %d\n", blocks, descriptors);
}
