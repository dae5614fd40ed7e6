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

static void elf_search(const struct image *i, uint64_t at, bool function, struct best *best)
{
    const ElfW(Ehdr) *header = elf_at(i, 0, sizeof *header);

    if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_shentsize != sizeof(ElfW(Shdr)))
        return;
    const ElfW(Shdr) *section =
        elf_at(i, header->e_shoff, (uint64_t)header->e_shnum * sizeof *section);
    /* The full table first; a stripped file has only that of what it exports. */
    for (int wanted = 0; section && wanted < 2 && !best->name; wanted++) {
        for (int s = 0; s < header->e_shnum; s++) {
            if (section[s].sh_type == (wanted == 0 ? SHT_SYMTAB : SHT_DYNSYM) &&
                section[s].sh_link < header->e_shnum)
                search_table(i, &section[s], &section[section[s].sh_link], at, function, best);
        }
    }
}

bool symbols_find(const char *path, uint64_t at, bool function, char *name, size_t size,
                  uint64_t *offset)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct best best = {.name = NULL};
    struct stat st;

    if (fd < 0)
        return false;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        void *base = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (base != MAP_FAILED) {
            const struct image image = {base, (size_t)st.st_size};
            elf_search(&image, at, function, &best);
            if (best.name) {
                snprintf(name, size, "%.*s", (int)strnlen(best.name, best.room), best.name);
                *offset = at - best.value;
            }
            munmap(base, (size_t)st.st_size);
        }
    }
    close(fd);
    return best.name != NULL;
}
