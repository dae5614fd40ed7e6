/* Finds the program's writable data: which segments may be moved into the shared file, and their
 * identity. */
#define _GNU_SOURCE
#include "runtime/memory/data.h"

#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/log.h"

/* Libraries that asked, by an address inside each; they may ask before there is a job. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const void *asked[DATA_SEGMENT_MAX - 1];
static int asked_count;

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t page_up(size_t at)
{
    return (at + page_bytes() - 1) & -page_bytes();
}

static size_t page_down(size_t at)
{
    return at & -page_bytes();
}

struct search {
    const void *inside;             /* a variable of the object that is searched; NULL: the
                                       executable */
    struct data_segments *segments; /* where to add what is found; NULL: only search */
    bool past_first;                /* the executable comes first */
    const void *object;             /* the object that was found, by its program headers; NULL:
                                       none */
    bool executable;                /* whether that is the executable */
    bool full;                      /* there were more segments than the table holds */
};

static uint64_t digest_more(uint64_t digest, const void *bytes, size_t n)
{
    /* FNV-1a */
    for (size_t i = 0; i < n; i++)
        digest = (digest ^ ((const unsigned char *)bytes)[i]) * 1099511628211u;
    return digest;
}

/* Where there is no build id: the parts of the object's file that no one writes, its code for one,
 * by words. The dynamic linker changes these only in objects with text relocations. With
 * AddressSanitizer they contain bytes that belong to no variable. */
__attribute__((no_sanitize("address"))) static uint64_t
digest_content(uint64_t digest, const struct dl_phdr_info *object)
{
    typedef uint64_t __attribute__((aligned(1), may_alias)) word_anywhere;

    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &object->dlpi_phdr[i];
        const char *at = (const char *)(object->dlpi_addr + p->p_vaddr);
        uint64_t word;

        if (p->p_type != PT_LOAD || !(p->p_flags & PF_R) || p->p_flags & PF_W)
            continue;
        for (size_t have = 0; have + sizeof word <= p->p_filesz; have += sizeof word) {
            /* not memcpy, which a sanitizer intercepts */
            word = *(const word_anywhere *)(at + have);
            digest = (digest ^ word) * 1099511628211u;
            digest ^= digest >> 32;
        }
    }
    return digest;
}

static bool has_text_relocations(const struct dl_phdr_info *object)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &object->dlpi_phdr[i];
        const ElfW(Dyn) *d = (const void *)(object->dlpi_addr + p->p_vaddr);

        for (; p->p_type == PT_DYNAMIC && d->d_tag != DT_NULL; d++) {
            if (d->d_tag == DT_TEXTREL || (d->d_tag == DT_FLAGS && d->d_un.d_val & DF_TEXTREL))
                return true;
        }
    }
    return false;
}

/* The linker's build id, if the notes contain one. */
static uint64_t digest_build_id(uint64_t digest, uintptr_t notes, size_t size)
{
    while (size >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *note = (const void *)notes;
        size_t name = (note->n_namesz + 3u) & ~(size_t)3, text = (note->n_descsz + 3u) & ~(size_t)3;
        const char *owner = (const char *)(note + 1);

        size -= sizeof *note;
        if (name > size || text > size - name)
            return digest;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(owner, "GNU", 4) == 0)
            return digest_more(digest, owner + name, note->n_descsz);
        notes += sizeof *note + name + text;
        size -= name + text;
    }
    return digest;
}

static void digest_object(uint64_t *digest, const struct dl_phdr_info *object)
{
    bool identified = false;

    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &object->dlpi_phdr[i];

        if (p->p_type == PT_LOAD) {
            uint64_t shape[] = {p->p_vaddr, p->p_filesz, p->p_memsz, p->p_flags};
            *digest = digest_more(*digest, shape, sizeof shape);
        }
        if (p->p_type == PT_NOTE) {
            uint64_t before = *digest;
            *digest = digest_build_id(before, object->dlpi_addr + p->p_vaddr, p->p_memsz);
            identified |= *digest != before;
        }
    }
    if (!identified && !has_text_relocations(object))
        *digest = digest_content(*digest, object);
}

static void add_segment(struct search *s, uintptr_t begin, uintptr_t end, uintptr_t file_end,
                        int protection)
{
    struct data_segments *to = s->segments;

    if (to->n == DATA_SEGMENT_MAX) {
        s->full = true;
        return;
    }
    to->segment[to->n++] = (struct data_segment){
        .base = begin,
        .bytes = end - begin,
        .offset = to->bytes,
        .initialised = file_end > begin ? file_end - begin : 0,
        .protection = protection,
    };
    to->bytes += end - begin;
}

/* The writable segments of an object, without the parts that the dynamic linker has made
 * read-only. */
static void add_object(struct search *s, const struct dl_phdr_info *object)
{
    uintptr_t relro = 0, relro_end = 0;

    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &object->dlpi_phdr[i];
        if (p->p_type == PT_GNU_RELRO) {
            /* Rounded as the dynamic linker does: a page that is only partly RELRO stays
             * writable. */
            relro = page_down(object->dlpi_addr + p->p_vaddr);
            relro_end = page_down(object->dlpi_addr + p->p_vaddr + p->p_memsz);
        }
    }
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &object->dlpi_phdr[i];
        uintptr_t begin = page_down(object->dlpi_addr + p->p_vaddr);
        uintptr_t end = page_up(object->dlpi_addr + p->p_vaddr + p->p_memsz);

        if (p->p_type != PT_LOAD || !(p->p_flags & PF_W))
            continue;
        if (relro <= begin && relro_end > begin)
            begin = relro_end;
        if (begin < end)
            add_segment(s, begin, end, object->dlpi_addr + p->p_vaddr + p->p_filesz,
                        PROT_READ | PROT_WRITE | (p->p_flags & PF_X ? PROT_EXEC : 0));
    }
    digest_object(&s->segments->digest, object);
}

static bool has_variable(const struct dl_phdr_info *object, const void *at)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &object->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && p->p_flags & PF_W &&
            (uintptr_t)at - (object->dlpi_addr + p->p_vaddr) < p->p_memsz)
            return true;
    }
    return false;
}

static int visit(struct dl_phdr_info *object, size_t size, void *argument)
{
    struct search *s = argument;
    bool executable = !s->past_first;

    (void)size;
    s->past_first = true;
    if (s->inside ? !has_variable(object, s->inside) : !executable)
        return 0;
    s->object = object->dlpi_phdr;
    s->executable = executable;
    if (s->segments)
        add_object(s, object);
    return 1;
}

static struct search search(const void *inside, struct data_segments *segments)
{
    struct search s = {.inside = inside, .segments = segments};

    dl_iterate_phdr(visit, &s);
    return s;
}

static gshmem_status_t find_all(struct data_segments *found)
{
    struct search s = search(NULL, found);

    for (int i = 0; i < asked_count && !s.full; i++) {
        s = search(asked[i], found);
        if (!s.object)
            return fail(GSHMEM_ERR_STATE,
                        "gshmem_symmetric_data was given %p, but its library is no longer loaded",
                        asked[i]);
    }
    if (s.full)
        return fail(GSHMEM_ERR_UNSUPPORTED,
                    "symmetric variables: the program and the libraries that asked have more than "
                    "%d writable segments",
                    DATA_SEGMENT_MAX);
    return GSHMEM_OK;
}

gshmem_status_t data_find(struct data_segments *segments)
{
    struct data_segments found = {.digest = 14695981039346656037u};

    pthread_mutex_lock(&lock);
    gshmem_status_t status = find_all(&found);
    pthread_mutex_unlock(&lock);
    if (!status)
        *segments = found;
    return status;
}

static gshmem_status_t memory_data_ask(const void *inside, bool *of_library)
{
    struct search s = search(inside, NULL);

    if (!s.object)
        return fail(GSHMEM_ERR_ARGUMENT,
                    "gshmem_symmetric_data: %p is not a variable of the program or of a library",
                    inside);
    *of_library = !s.executable;
    if (s.executable)
        return GSHMEM_OK; /* its variables are symmetric by themselves */
    for (int i = 0; i < asked_count; i++) {
        if (search(asked[i], NULL).object == s.object)
            return GSHMEM_OK;
    }
    if (asked_count == DATA_SEGMENT_MAX - 1)
        return fail(GSHMEM_ERR_UNSUPPORTED, "gshmem_symmetric_data: more than %d libraries",
                    DATA_SEGMENT_MAX - 1);
    asked[asked_count++] = inside;
    return GSHMEM_OK;
}

gshmem_status_t data_ask(const void *inside, bool *of_library)
{
    pthread_mutex_lock(&lock);
    gshmem_status_t status = memory_data_ask(inside, of_library);
    pthread_mutex_unlock(&lock);
    return status;
}
