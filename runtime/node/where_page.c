#define _GNU_SOURCE
#include "runtime/node/where_page.h"

#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/node/node.h"

/* ---- Files whose code runs ---- */

static void name_module(char path[WHERE_PATH], const char *name)
{
    char own[PATH_MAX];
    ssize_t n = -1;

    if (!*name) { /* the program itself has no name here */
        n = readlink("/proc/self/exe", own, sizeof own - 1);
        own[n > 0 ? n : 0] = 0;
        name = n > 0 ? own : program_invocation_name;
    }
    memset(path, 0, WHERE_PATH);
    memcpy(path, name, strnlen(name, WHERE_PATH - 1));
}

/* One pass over the files that are loaded now. */
struct refresh {
    struct where_page *page;
    bool loaded[WHERE_MODULES];
};

static uint32_t find_slot(const struct where_page *page, uint64_t begin)
{
    const uint32_t n = atomic_load_explicit(&page->modules, memory_order_relaxed);
    uint32_t i = 0;

    while (i < n && page->module[i].begin != begin)
        i++;
    return i;
}

static bool is_file(const struct where_module *m, const char *name)
{
    return !*name || strncmp(m->path, name, WHERE_PATH - 1) == 0;
}

static int add_module(struct dl_phdr_info *info, size_t size, void *context)
{
    struct refresh *r = context;
    struct where_page *page = r->page;
    uint64_t begin = UINT64_MAX, end = 0;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD)
            continue;
        uint64_t at = info->dlpi_addr + p->p_vaddr;
        begin = at < begin ? at : begin;
        end = at + p->p_memsz > end ? at + p->p_memsz : end;
    }
    if (begin >= end)
        return 0;
    const uint32_t n = atomic_load_explicit(&page->modules, memory_order_relaxed);
    uint32_t i = find_slot(page, begin);
    if (i == n) /* else the place of a file that was unloaded */
        i = find_slot(page, 0);
    if (i == WHERE_MODULES)
        return 0;
    struct where_module *m = &page->module[i];
    r->loaded[i] = true;
    if (i < n && m->begin == begin && is_file(m, info->dlpi_name))
        return 0;
    m->end = 0; /* nobody finds it while it changes */
    m->begin = begin;
    m->bias = info->dlpi_addr;
    name_module(m->path, info->dlpi_name);
    atomic_signal_fence(memory_order_release);
    m->end = end;
    if (i == n)
        /* release: a reader that sees the count sees the module */
        atomic_store_explicit(&page->modules, n + 1, memory_order_release);
    return 0;
}

void where_page_refresh(struct node *node)
{
    struct refresh r = {.page = node->page};

    if (!node->page)
        return;
    dl_iterate_phdr(add_module, &r);
    const uint32_t n = atomic_load_explicit(&node->page->modules, memory_order_relaxed);
    for (uint32_t i = 0; i < n; i++) {
        if (!r.loaded[i])
            node->page->module[i].begin = node->page->module[i].end = 0;
    }
}

/* ---- The page ---- */

void where_page_begin(struct node *node, size_t offset, int pe)
{
    node->page_offset = offset;
    node->page =
        (struct where_page *)(void *)(node->arena + node_system_offset(&node->layout, node->index) +
                                      offset);
    node->page->pe = pe;
    node->page->pid = getpid();
    name_module(node->page->program, "");
    where_page_refresh(node);
    node->page->version = WHERE_VERSION;
    node->page->magic = WHERE_MAGIC;
}

void where_page_tell_time(struct node *node, uint64_t now)
{
    if (node->page)
        atomic_store_explicit(&node->page->now, now, memory_order_relaxed);
}

const struct where_page *where_page_of(const struct node *node, int index)
{
    return node->page ? (const struct where_page *)(const void *)(node->arena +
                                                                  node_system_offset(&node->layout,
                                                                                     index) +
                                                                  node->page_offset)
                      : NULL;
}

/* ---- Records ---- */

/* A thread's number does not change, and a child of fork shows nothing. */
static int32_t own_number(void)
{
    static _Thread_local int32_t number;

    if (!number)
        number = gettid();
    return number;
}

/* The main thread's wait decides what is said of the PE: a record is kept for it. */
static int claim_any(struct where_page *page, bool kernel)
{
    const bool is_main = !kernel && own_number() == page->pid;
    const uint32_t kept = is_main ? 0 : 1u << WHERE_OF_MAIN;
    uint32_t taken = atomic_load_explicit(&page->claimed, memory_order_relaxed);

    while (~(taken | kept)) {
        const int i = __builtin_ctz(~(taken | kept));
        /* acquire: pairs with the release in where_page_release */
        if (atomic_compare_exchange_weak_explicit(&page->claimed, &taken, taken | 1u << i,
                                                  memory_order_acquire, memory_order_relaxed))
            return i;
    }
    atomic_fetch_add_explicit(&page->more, 1, memory_order_relaxed);
    return -1;
}

static _Thread_local bool hidden;

void where_page_hide(void)
{
    hidden = true;
}

static _Thread_local bool of_stream;

void where_page_of_stream(bool is)
{
    of_stream = is;
}

struct where_wait *where_page_claim(struct node *node, const char *call, uint64_t since,
                                    bool kernel)
{
    const int i = node->page && !hidden ? claim_any(node->page, kernel) : -1;

    if (i < 0)
        return NULL;
    struct where_wait *w = &node->page->wait[i];
    where_write_begin(w);
    w->kind = WHERE_UNKNOWN;
    w->tid = of_stream ? -own_number() : own_number();
    w->team = w->segment = -1;
    w->round = 0;
    w->peers = 0;
    w->at = 0;
    w->frames = 0;
    w->since = w->seen = since;
    w->text[0] = 0;
    size_t n = strnlen(call, WHERE_NAME - 1);
    memcpy(w->call, call, n);
    w->call[n] = 0;
    where_write_end(w);
    return w;
}

void where_page_release(struct node *node, struct where_wait *w)
{
    if (!node->page || w < node->page->wait || w >= node->page->wait + WHERE_WAITS)
        return;
    /* release: pairs with the acquire of the next claim */
    atomic_fetch_and_explicit(&node->page->claimed, ~(1u << (w - node->page->wait)),
                              memory_order_release);
}
