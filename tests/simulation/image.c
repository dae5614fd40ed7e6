#define _GNU_SOURCE
#include "image.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PARTS_MOST = 4,
    LINE = 64,
    RUNS_MOST = 1024,
};

/* Bytes that follow each other in memory, and in a copy. */
struct part {
    char *at;
    size_t offset, bytes;
};

/* Most variables are 0 in all PEs, or threads, for the whole run. So the lines that were anything
 * else in one of them are copied ("hot"), and the others are only looked at when what owns them
 * stops running: one that is not 0 any more becomes hot. */
struct variables {
    struct part part[PARTS_MOST]; /* .data and .bss; not what a compiler counts coverage in */
    int parts;
    size_t bytes;
    char *first;  /* the values at the start */
    bool *is_hot; /* of each line */
    struct part hot[RUNS_MOST], cold[RUNS_MOST];
    int hots, colds;
};

static struct variables process, thread;

static void give_up(const char *what)
{
    perror(what);
    exit(2);
}

static void add_part(struct variables *v, uintptr_t at, uintptr_t end)
{
    v->part[v->parts++] = (struct part){(char *)at, v->bytes, end - at};
    v->bytes += (end - at + LINE - 1) / LINE * LINE;
}

static void add_line(struct part *runs, int *n, struct part line)
{
    struct part *last = *n ? &runs[*n - 1] : NULL;

    if (last && last->at + last->bytes == line.at) {
        last->bytes += line.bytes;
        return;
    }
    if (*n == RUNS_MOST) {
        fprintf(stderr, "simulation: the library's variables are in more than %d pieces\n", *n);
        exit(2);
    }
    runs[(*n)++] = line;
}

static void find_runs(struct variables *v)
{
    v->hots = v->colds = 0;
    for (int i = 0; i < v->parts; i++) {
        const struct part *p = &v->part[i];
        for (size_t k = 0; k < p->bytes; k += LINE) {
            const struct part line = {p->at + k, p->offset + k,
                                      p->bytes - k < LINE ? p->bytes - k : LINE};
            if (v->is_hot[line.offset / LINE])
                add_line(v->hot, &v->hots, line);
            else
                add_line(v->cold, &v->colds, line);
        }
    }
}

/* The C library's comparison is the fastest loop at hand, and the zeros stay in the cache. */
static bool is_zero(const char *at, size_t bytes)
{
    static const char zeros[1024];

    for (; bytes > sizeof zeros; at += sizeof zeros, bytes -= sizeof zeros) {
        if (memcmp(at, zeros, sizeof zeros) != 0)
            return false;
    }
    return memcmp(at, zeros, bytes) == 0;
}

/* Lines of a run that are not 0 become hot; they are 0 in all other copies. */
static void heat(struct variables *v, const struct part *run)
{
    for (size_t k = 0; k < run->bytes; k += LINE) {
        if (!is_zero(run->at + k, run->bytes - k < LINE ? run->bytes - k : LINE))
            v->is_hot[(run->offset + k) / LINE] = true;
    }
}

static void copy_out(char *to, const struct part *runs, int n)
{
    for (int i = 0; i < n; i++)
        memcpy(to + runs[i].offset, runs[i].at, runs[i].bytes);
}

static void variables_begin(struct variables *v)
{
    v->first = calloc(1, v->bytes);
    v->is_hot = calloc(v->bytes / LINE + 1, sizeof *v->is_hot);
    if (!v->first || !v->is_hot)
        give_up("simulation: memory");
    copy_out(v->first, v->part, v->parts);
    for (int i = 0; i < v->parts; i++)
        heat(v, &v->part[i]);
    find_runs(v);
}

static void *variables_new(const struct variables *v)
{
    void *at = malloc(v->bytes);

    if (!at)
        give_up("simulation: memory");
    return memcpy(at, v->first, v->bytes);
}

static void variables_save(struct variables *v, char *to)
{
    bool changed = false;

    for (int i = 0; i < v->colds; i++) {
        const struct part *run = &v->cold[i];
        if (is_zero(run->at, run->bytes))
            continue;
        heat(v, run);
        changed = true;
    }
    if (changed)
        find_runs(v);
    copy_out(to, v->hot, v->hots);
}

static void variables_load(const struct variables *v, const char *from)
{
    for (int i = 0; i < v->hots; i++)
        memcpy(v->hot[i].at, from + v->hot[i].offset, v->hot[i].bytes);
}

/* The pages of the largest variable, which only the Python package uses: they are two thirds of all
 * variables, so they are left out, and cannot be written. */
static void find_left_out(const char *file, const ElfW(Ehdr) *header, uintptr_t base,
                          uintptr_t *begin, uintptr_t *end)
{
    const ElfW(Shdr) *section = (const void *)(file + header->e_shoff);
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    for (int i = 0; i < header->e_shnum; i++) {
        const ElfW(Sym) *symbol = (const void *)(file + section[i].sh_offset);
        if (section[i].sh_type != SHT_SYMTAB)
            continue;
        const char *names = file + section[section[i].sh_link].sh_offset;
        for (size_t k = 0; k < section[i].sh_size / sizeof *symbol; k++) {
            if (symbol[k].st_size < 4 * page || strcmp(names + symbol[k].st_name, "noted") != 0)
                continue;
            *begin = (base + symbol[k].st_value + page - 1) & ~(page - 1);
            *end = (base + symbol[k].st_value + symbol[k].st_size) & ~(page - 1);
            if (mprotect((void *)*begin, *end - *begin, PROT_READ))
                give_up("mprotect");
        }
    }
}

/* By the section headers of the library's file, which say where its variables are. */
static void read_sections(const char *path, uintptr_t base)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat s;

    if (fd < 0 || fstat(fd, &s) != 0)
        give_up(path);
    const char *file = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (file == MAP_FAILED)
        give_up(path);
    const ElfW(Ehdr) *header = (const void *)file;
    const ElfW(Shdr) *section = (const void *)(file + header->e_shoff);
    const char *names = file + section[header->e_shstrndx].sh_offset;
    uintptr_t out = 0, out_end = 0;
    find_left_out(file, header, base, &out, &out_end);
    for (int i = 0; i < header->e_shnum; i++) {
        const char *name = names + section[i].sh_name;
        if ((strcmp(name, ".data") != 0 && strcmp(name, ".bss") != 0) ||
            process.parts + 2 > PARTS_MOST)
            continue;
        const uintptr_t at = base + section[i].sh_addr, end = at + section[i].sh_size;
        if (out < out_end && at <= out && out_end <= end) {
            add_part(&process, at, out);
            add_part(&process, out_end, end);
        } else {
            add_part(&process, at, end);
        }
    }
    munmap((void *)file, (size_t)s.st_size);
    close(fd);
}

static int image_visit(struct dl_phdr_info *object, size_t size, void *unused)
{
    const uintptr_t own = (uintptr_t)object->dlpi_tls_data;

    (void)size, (void)unused;
    if (!strstr(object->dlpi_name, "gshmem-simulated"))
        return 0;
    for (int i = 0; own && i < object->dlpi_phnum; i++) {
        if (object->dlpi_phdr[i].p_type == PT_TLS)
            add_part(&thread, own, own + object->dlpi_phdr[i].p_memsz);
    }
    read_sections(object->dlpi_name, object->dlpi_addr);
    return 1;
}

void image_begin(void)
{
    if (!dl_iterate_phdr(image_visit, NULL) || !process.parts || !thread.parts) {
        fprintf(stderr, "simulation: the variables of libgshmem-simulated.so are not found\n");
        exit(2);
    }
    variables_begin(&process);
    variables_begin(&thread);
}

void *image_new_process(void)
{
    return variables_new(&process);
}

void *image_new_thread(void)
{
    return variables_new(&thread);
}

void image_save_process(void *to)
{
    variables_save(&process, to);
}

void image_load_process(const void *from)
{
    variables_load(&process, from);
}

void image_save_thread(void *to)
{
    variables_save(&thread, to);
}

void image_load_thread(const void *from)
{
    variables_load(&thread, from);
}
