/* Whether the program, and each library that it has loaded, was compiled with headers whose inline
 * code reads this library's structures rightly. It knows the ELF note of gshmem/base.h and nothing
 * of the job. */
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "gshmem/base.h"
#include "runtime/base/log.h"
#include "runtime/life.h"

/* The note, as base.h writes it. */
struct layout_note {
    uint32_t name_bytes, bytes, type;
    char name[8];
    uint32_t layout, major, minor, patch;
};

_Static_assert(sizeof(struct layout_note) == 36, "three words, the name padded to 8, four words");

/* The first object found to have another layout. */
struct stranger {
    const char *path; /* "": the program */
    struct layout_note note;
};

/* Looks through the notes of a segment, which have a header of three words, and name and contents,
 * each padded to `align`. */
static bool layout_differs(const char *at, size_t bytes, size_t align, struct stranger *found)
{
    Elf64_Nhdr head;

    while (bytes >= sizeof head) {
        memcpy(&head, at, sizeof head);
        const size_t name = (head.n_namesz + align - 1) & -align;
        const size_t room = sizeof head + name + ((head.n_descsz + align - 1) & -align);
        if (room > bytes)
            return false;
        if (head.n_namesz == 7 && head.n_descsz == 16 && head.n_type == 1 &&
            memcmp(at + sizeof head, "GSHMEM", 7) == 0) {
            memcpy(&found->note, at, sizeof found->note);
            if (found->note.layout != GSHMEM_LAYOUT)
                return true;
        }
        at += room;
        bytes -= room;
    }
    return false;
}

static int look_at_object(struct dl_phdr_info *object, size_t size, void *context)
{
    struct stranger *found = context;

    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_NOTE)
            continue;
        found->path = object->dlpi_name;
        if (layout_differs((const char *)(object->dlpi_addr + segment->p_vaddr), segment->p_memsz,
                           segment->p_align == 8 ? 8 : 4, found))
            return 1;
    }
    return 0;
}

gshmem_status_t layout_check(void)
{
    struct stranger found;

    if (!dl_iterate_phdr(look_at_object, &found))
        return GSHMEM_OK;
    return fail(GSHMEM_ERR_UNSUPPORTED,
                "gshmem_init: %s was compiled with headers of GSHMEM %u.%u.%u (layout %u), and "
                "this library is GSHMEM %s (layout %d): compile it again with this library's "
                "headers, or run it with the library that it was compiled for",
                found.path[0] ? found.path : "this program", found.note.major, found.note.minor,
                found.note.patch, found.note.layout, GSHMEM_VERSION_TEXT, GSHMEM_LAYOUT);
}
