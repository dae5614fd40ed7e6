#define _GNU_SOURCE
#include "image.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PARTS_MOST = 4 };

static struct {
    struct {
        char *at;
        size_t bytes;
    } part[PARTS_MOST]; /* .data and .bss; not what a compiler counts coverage in */
    int parts;
    char *thread;
    size_t thread_bytes;
    void *first_process, *first_thread;
    size_t process_bytes;
} image;

static void give_up(const char *what)
{
    perror(what);
    exit(2);
}

static void *image_allocate(size_t bytes)
{
    void *at = malloc(bytes ? bytes : 1);

    if (!at)
        give_up("simulation: memory");
    return at;
}

static void add_part(uintptr_t at, uintptr_t end)
{
    image.part[image.parts].at = (char *)at;
    image.part[image.parts++].bytes = end - at;
    image.process_bytes += end - at;
}

/* The pages of the largest variable, which only the Python package uses: they are two thirds of all
 * that changes with the PE, so they are left out, and cannot be written. */
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
            image.parts + 2 > PARTS_MOST)
            continue;
        const uintptr_t at = base + section[i].sh_addr, end = at + section[i].sh_size;
        if (out < out_end && at <= out && out_end <= end) {
            add_part(at, out);
            add_part(out_end, end);
        } else {
            add_part(at, end);
        }
    }
    munmap((void *)file, (size_t)s.st_size);
    close(fd);
}

static int image_visit(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)size, (void)unused;
    if (!strstr(object->dlpi_name, "gshmem-simulated"))
        return 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        if (object->dlpi_phdr[i].p_type == PT_TLS)
            image.thread_bytes = object->dlpi_phdr[i].p_memsz;
    }
    image.thread = object->dlpi_tls_data;
    read_sections(object->dlpi_name, object->dlpi_addr);
    return 1;
}

void image_begin(void)
{
    if (!dl_iterate_phdr(image_visit, NULL) || !image.parts || !image.thread) {
        fprintf(stderr, "simulation: the variables of libgshmem-simulated.so are not found\n");
        exit(2);
    }
    image.first_process = image_allocate(image.process_bytes);
    image.first_thread = image_allocate(image.thread_bytes);
    image_save_process(image.first_process);
    image_save_thread(image.first_thread);
}

void *image_new_process(void)
{
    return memcpy(image_allocate(image.process_bytes), image.first_process, image.process_bytes);
}

void *image_new_thread(void)
{
    return memcpy(image_allocate(image.thread_bytes), image.first_thread, image.thread_bytes);
}

void image_save_process(void *to)
{
    char *at = to;

    for (int i = 0; i < image.parts; at += image.part[i++].bytes)
        memcpy(at, image.part[i].at, image.part[i].bytes);
}

void image_load_process(const void *from)
{
    const char *at = from;

    for (int i = 0; i < image.parts; at += image.part[i++].bytes)
        memcpy(image.part[i].at, at, image.part[i].bytes);
}

void image_save_thread(void *to)
{
    memcpy(to, image.thread, image.thread_bytes);
}

void image_load_thread(const void *from)
{
    memcpy(image.thread, from, image.thread_bytes);
}
