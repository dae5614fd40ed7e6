/* CUDA source in, C++ for the host device out; both preprocessed.
 *
 * The preprocessor has gone before, so launches and __shared__ in macros and in headers of the
 * user's look like any others. Four things are not C++, and only those change:
 *
 *     k<T><<<g, b>>>(a);           (gshmem_host::configure(g, b), k<T>(a));
 *     __global__ void k(int a)     void k(int a)
 *     { body }                     { auto b = [=]() mutable { body };
 *                                    gshmem_host::kernel<void(int a), k>::launch("k", b); }
 *     __shared__ T a[3], b;        struct s { T a[3], b; }; auto &a = shared<s>().a; auto &b = …
 *     extern __shared__ T a[];     T *a = dynamic shared memory
 *     [=](int i) { return a[i]; }  [=](int i) { auto &a = shared<s>().a; { return a[i]; } }
 *
 * So a __global__ function becomes the call that launches it, with C++'s own rules for overloads,
 * template arguments and conversions; its parameters are captured by the lambda. Lines stay where
 * they are: what the compiler says is about the user's own.
 *
 * What is __shared__ has static storage for CUDA: lambdas do not copy it, and a case of a switch
 * may stand behind it. Here it is a reference, so lambdas that would copy it name it again, and
 * of a switch it stands in front. */
#define _GNU_SOURCE
#include "translate.h"

#include "syntax.h"

static void translate(struct translation *t)
{
    const struct source *s = &t->source;

    for (size_t i = 0; i < s->count;) {
        if (syntax_triple(t, i, "<") && !(i && syntax_is(t, i - 1, "operator"))) {
            i = translate_launch(t, i);
            continue;
        }
        if (syntax_is(t, i, "__global__")) {
            translate_kernel(t, i);
        } else if (syntax_is(t, i, "__shared__")) {
            i = translate_shared(t, i);
            continue;
        } else if (syntax_is(t, i, "__noinline__") && !syntax_is(t, i - 1, "(") &&
                   !syntax_is(t, i - 1, ",") && !syntax_is(t, i - 1, "::")) {
            /* No macro: C++ libraries use the word in attributes. */
            edits_remove(&t->edits, syntax_start_of(t, i), syntax_end_of(t, i));
            edits_insert(&t->edits, syntax_start_of(t, i), "__attribute__((noinline))");
        }
        i++;
    }
}

bool translate_source(int from, FILE *to)
{
    struct translation t = {.errors = 0};

    if (!source_read(&t.source, from))
        return false;
    translate(&t);
    if (t.edits.out_of_memory)
        fprintf(stderr, "gshmem-hostcc: translating: out of memory\n");
    bool ok = !t.errors && !t.edits.out_of_memory;
    if (ok)
        edits_write(&t.edits, t.source.text, t.source.length, to);
    edits_free(&t.edits);
    source_free(&t.source);
    return ok;
}
