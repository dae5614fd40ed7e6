/* Lines that are put together, and call stacks in them. */
#ifndef GSHMEM_RUNTIME_WHERE_STACK_TEXT_H
#define GSHMEM_RUNTIME_WHERE_STACK_TEXT_H

#include "runtime/where/lines.h"
#include "runtime/where/where.h"

enum { TEXT_BYTES = 1024 };

/* A text that is put together; what does not fit is left out. Names may come from files and PEs of
 * another user: a terminal does not get their control characters. */
struct text {
    char at[TEXT_BYTES];
    size_t used;
};

__attribute__((format(printf, 2, 3))) void text_add(struct text *t, const char *format, ...);

/* The frames of the program, the innermost first. A call of the C library that it is in comes
 * before them; false: there is nothing to say. */
bool text_add_stack(struct text *t, const struct lines *lines, const struct where_page *page,
                    const uint64_t *frame, uint32_t n);

/* The thread that began the process, or another one if that has ended; NULL: none is known. */
const struct where_thread *stack_of_main(const struct where_pe *p);
/* "beside it, a thread of PE 1 runs in compute (a.c:7)": a thread besides the main one that is not
 * in a wait; without the PE where the line is of that PE. false: there is none. */
bool text_add_running(struct text *t, const struct where_pe *p, bool name_pe,
                      const struct lines *lines);

#endif
