#include "runtime/memory/request.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/log.h"

const char *const heap_call_name[] = {
    [HEAP_MALLOC] = "gshmem_malloc",   [HEAP_CALLOC] = "gshmem_calloc",
    [HEAP_ALIGN] = "gshmem_align",     [HEAP_MALLOC_WITH_HINTS] = "gshmem_malloc_with_hints",
    [HEAP_REALLOC] = "gshmem_realloc", [HEAP_FREE] = "gshmem_free",
    [HEAP_REGISTER] = "gshmem_buffer_register_symmetric",
    [HEAP_UNREGISTER] = "gshmem_buffer_unregister_symmetric",
};

void request_refuse(struct request *r, enum request_word word, gshmem_status_t status,
                    const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(r->why, sizeof r->why, format, args);
    va_end(args);
    r->word[word] = status;
}

void request_refuse_failed(struct request *r, gshmem_status_t status)
{
    const char *text = last_error_text(), *name = request_name(r);
    size_t length = strlen(name);

    if (strncmp(text, name, length) == 0 && strncmp(text + length, ": ", 2) == 0)
        text += length + 2;
    request_refuse(r, REQUEST_MEMORY, status, "%s", text);
    r->said = true;
}
