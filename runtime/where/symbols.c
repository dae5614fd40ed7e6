#define _GNU_SOURCE
#include "runtime/where/symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file as it lies in memory. Each place in it is checked: a file may be cut off, or not be what
 * it seems. */
struct image {
    const unsigned char *base;
    size_t bytes;
};

static const void *elf_at(const struct image *i, uint64_t offset, uint64_t bytes)
{
    return offset <= i->bytes && bytes <= i->bytes - offset ? i->base + offset : NULL;
}

struct best {
    uint64_t value;
    const char *name;
    size_t room; /* bytes that the name may have */
};

static void search_table(const struct image *i, const ElfW(Shdr) * table,
                         const ElfW(Shdr) * strings, uint64_t at, bool function, struct best *best)
{
    const ElfW(Sym) *symbol = elf_at(i, table->sh_offset, table->sh_size);
    const char *names = elf_at(i, strings->sh_offset, strings->sh_size);

    for (uint64_t n = symbol && names ? table->sh_size / sizeof *symbol : 0; n > 0; n--, symbol++) {
        const unsigned type = symbol->st_info & 15;
        const bool fits = function ? type == STT_FUNC || type == STT_GNU_IFUNC : type == STT_OBJECT;
        /* A function without a size ends where the next one begins. */
        if (!fits || symbol->st_shndx == SHN_UNDEF || symbol->st_value > at ||
            symbol->st_name >= strings->sh_size ||
            (symbol->st_size ? at - symbol->st_value >= symbol->st_size : !function))
            continue;
        if (!best->name || symbol->st_value > best->value)
            *best = (struct best){symbol->st_value, names + symbol->st_name,
                                  strings->sh_size - symbol->st_name};
    }
}

/* The table of symbols, and that of their names. The full one; a stripped file has only that of
 * what it exports. */
static bool elf_table(const struct image *i, uint32_t type, const ElfW(Shdr) * *table,
                      const ElfW(Shdr) * *strings)
{
    const ElfW(Ehdr) *header = elf_at(i, 0, sizeof *header);

    if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_shentsize != sizeof(ElfW(Shdr)))
        return false;
    const ElfW(Shdr) *section =
        elf_at(i, header->e_shoff, (uint64_t)header->e_shnum * sizeof *section);
    for (int s = 0; section && s < header->e_shnum; s++) {
        if (section[s].sh_type == type && section[s].sh_link < header->e_shnum) {
            *table = &section[s];
            *strings = &section[section[s].sh_link];
            return true;
        }
    }
    return false;
}

static void elf_search(const struct image *i, uint64_t at, bool function, struct best *best)
{
    const ElfW(Shdr) *table, *strings;

    if (elf_table(i, SHT_SYMTAB, &table, &strings))
        search_table(i, table, strings, at, function, best);
    if (!best->name && elf_table(i, SHT_DYNSYM, &table, &strings))
        search_table(i, table, strings, at, function, best);
}

static bool image_open(const char *path, struct image *i)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;

    i->base = MAP_FAILED;
    if (fd < 0)
        return false;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        i->bytes = (size_t)st.st_size;
        i->base = mmap(NULL, i->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    close(fd);
    return i->base != MAP_FAILED;
}

bool symbols_find(const char *path, uint64_t at, bool function, char *name, size_t size,
                  uint64_t *offset)
{
    struct best best = {.name = NULL};
    struct image image;

    if (!image_open(path, &image))
        return false;
    elf_search(&image, at, function, &best);
    if (best.name) {
        snprintf(name, size, "%.*s", (int)strnlen(best.name, best.room), best.name);
        *offset = at - best.value;
    }
    munmap((void *)image.base, image.bytes);
    return best.name != NULL;
}

static void each_variable(const struct image *i, symbols_each_fn *each, void *context)
{
    const ElfW(Shdr) *table, *strings;

    if (!elf_table(i, SHT_SYMTAB, &table, &strings) &&
        !elf_table(i, SHT_DYNSYM, &table, &strings))
        return;
    const ElfW(Sym) *symbol = elf_at(i, table->sh_offset, table->sh_size);
    const char *names = elf_at(i, strings->sh_offset, strings->sh_size);
    for (uint64_t n = symbol && names ? table->sh_size / sizeof *symbol : 0; n > 0; n--, symbol++) {
        const unsigned type = symbol->st_info & 15;
        if (type == STT_OBJECT && symbol->st_shndx != SHN_UNDEF && symbol->st_size &&
            symbol->st_name < strings->sh_size)
            each(context,
                 &(struct symbols_variable){symbol->st_value, symbol->st_size,
                                            names + symbol->st_name,
                                            strings->sh_size - symbol->st_name,
                                            symbol->st_info >> 4 == STB_LOCAL});
    }
}

void symbols_variables(const char *path, symbols_each_fn *each, void *context)
{
    struct image image;

    if (!image_open(path, &image))
        return;
    each_variable(&image, each, context);
    munmap((void *)image.base, image.bytes);
}
