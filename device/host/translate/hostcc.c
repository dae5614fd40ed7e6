/* gshmem-hostcc: compiles .cu sources for the host device.
 *
 *     gshmem-hostcc COMPILER… -- ARGUMENT…
 *     gshmem-hostcc --translate < preprocessed > translated
 *
 * The arguments are the C++ compiler's. Each .cu among them is preprocessed by it, translated here,
 * and compiled by it; then the rest is left to one last run of the compiler, with objects in the
 * place of the sources. gshmemcc calls this, with the folders of headers and libraries in place. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/descriptor.h"
#include "command.h"
#include "translate.h"

struct job {
    struct command compiler;
    struct command options;  /* for every .cu, without inputs and outputs */
    struct command rest;     /* the last command, objects in the place of sources */
    const char *output;      /* after -o */
    const char *depend_file; /* after -MF */
    bool depend, depend_named;
    bool clang, compile_only, assemble_only, preprocess_only, check_only, standard,
        thread_sanitizer;
    size_t sources, other_inputs;
    struct command cuda;     /* sources by another name than .cu, behind -x cu */
    char folder[64]; /* of temporary files; "": none yet */
};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool is_source(const struct job *job, const char *word)
{
    size_t n = strlen(word);

    for (size_t i = 0; i < job->cuda.count; i++) {
        if (strcmp(job->cuda.words[i], word) == 0)
            return true;
    }
    return n > 3 && strcmp(word + n - 3, ".cu") == 0 && *word != '-';
}

static bool one_of(const char *word, const char *const *list)
{
    for (; *list; list++) {
        if (strcmp(word, *list) == 0)
            return true;
    }
    return false;
}

/* --- One source --- */

/* Which of the two the compiler is shows in what it defines. */
static bool compiler_is_clang(const struct job *job)
{
    struct command c = {NULL, 0};
    char line[512];
    bool clang = false;
    int from = -1;

    hostcc_add_all(&c, &job->compiler);
    for (const char *const *w = (const char *const[]){"-dM", "-E", "-x", "c", "/dev/null", NULL};
         *w; w++)
        hostcc_add(&c, *w);
    pid_t pid = hostcc_start(&c, &from);
    FILE *in = fdopen(from, "r");
    while (in && fgets(line, sizeof line, in))
        clang = clang || strstr(line, "__clang__");
    if (in)
        fclose(in);
    hostcc_finish(pid);
    hostcc_clear(&c);
    return clang;
}

static struct command preprocessing(const struct job *job, const char *source, const char *object)
{
    static const char *const words[] = {"-x",       "c++",           "-E", "-D__CUDACC__",
                                        "-include", "cuda_runtime.h", NULL};
    struct command c = {NULL, 0};

    hostcc_add_all(&c, &job->compiler);
    hostcc_add_all(&c, &job->options);
    for (const char *const *w = words; *w; w++)
        hostcc_add(&c, *w);
    if (job->depend && !job->depend_file) {
        char file[4096];
        int base =
            (int)strlen(object) - (int)strlen(strrchr(object, '.') ? strrchr(object, '.') : "");
        snprintf(file, sizeof file, "%.*s.d", base, object);
        hostcc_add(&c, "-MF");
        hostcc_add(&c, file);
    }
    if (job->depend && !job->depend_named) {
        hostcc_add(&c, "-MT");
        hostcc_add(&c, object);
    }
    hostcc_add(&c, source);
    return c;
}

/* Preprocesses and translates; the result goes to a stream. */
static int translate_one(const struct job *job, const char *source, const char *object, FILE *to)
{
    struct command c = preprocessing(job, source, object);
    int from = -1;
    pid_t pid = hostcc_start(&c, &from);
    bool ok = pid > 0 && translate_source(from, to) && fflush(to) == 0;
    if (from >= 0)
        close(from);
    int status = hostcc_finish(pid);

    hostcc_clear(&c);
    return status ? status : !ok;
}

static bool make_folder(struct job *job)
{
    const char *tmp = getenv("TMPDIR");

    if (job->folder[0])
        return true;
    snprintf(job->folder, sizeof job->folder, "%s/gshmem-hostcc-XXXXXX",
             tmp && strlen(tmp) < 32 ? tmp : "/tmp");
    if (mkdtemp(job->folder))
        return true;
    fprintf(stderr, "gshmem-hostcc: %s: %s\n", job->folder, strerror(errno));
    job->folder[0] = 0;
    return false;
}

/* Options that wrote the list of headers have done so when the source was preprocessed. */
static void add_without_depend(struct command *c, const struct command *options)
{
    static const char *const single[] = {"-MD", "-MMD", "-MP", "-MG", NULL};
    static const char *const pairs[] = {"-MF", "-MT", "-MQ", NULL};

    for (size_t i = 0; i < options->count; i++) {
        if (one_of(options->words[i], pairs))
            i++;
        else if (!one_of(options->words[i], single) && !begins(options->words[i], "-MF"))
            hostcc_add(c, options->words[i]);
    }
}

static int compile_one(struct job *job, const char *source, const char *object)
{
    char path[128];
    struct command c = {NULL, 0};

    if (!make_folder(job))
        return 1;
    snprintf(path, sizeof path, "%s/source.ii", job->folder);
    FILE *to = fopen(path, "w");
    if (!to) {
        fprintf(stderr, "gshmem-hostcc: %s: %s\n", path, strerror(errno));
        return 1;
    }
    int status = translate_one(job, source, object, to);
    if (fclose(to) != 0)
        status = status ? status : 1;
    if (!status) {
        hostcc_add_all(&c, &job->compiler);
        add_without_depend(&c, &job->options);
        hostcc_add(&c, "-Wno-unknown-pragmas");
        hostcc_add(&c, "-x");
        hostcc_add(&c, "c++-cpp-output");
        hostcc_add(&c, path);
        hostcc_add(&c, job->check_only ? "-fsyntax-only" : job->assemble_only ? "-S" : "-c");
        if (!job->check_only) {
            hostcc_add(&c, "-o");
            hostcc_add(&c, object);
        }
        status = hostcc_run(&c);
    }
    unlink(path);
    return status;
}

/* --- All of it --- */

static void add_option(struct job *job, const char *word, const char *value)
{
    hostcc_add(&job->options, word);
    hostcc_add(&job->rest, word);
    if (value) {
        hostcc_add(&job->options, value);
        hostcc_add(&job->rest, value);
    }
    job->standard = job->standard || begins(word, "-std=");
    job->depend = job->depend || strcmp(word, "-MD") == 0 || strcmp(word, "-MMD") == 0;
    job->depend_named = job->depend_named || strcmp(word, "-MT") == 0 || strcmp(word, "-MQ") == 0;
    if (strcmp(word, "-MF") == 0)
        job->depend_file = value;
    if (begins(word, "-fsanitize=") && strstr(word, "thread"))
        job->thread_sanitizer = true;
}

static const char *const takes_value[] = {
    "-I",       "-L",          "-D",      "-U",     "-include", "-imacros", "-isystem",
    "-iquote",  "-idirafter",  "-MF",     "-MT",    "-MQ",      "-z",       "-T",
    "-Xlinker", "-Xassembler", "-Xclang", "-mllvm", "-u",       "-x",       "-Xpreprocessor",
    "--param",  NULL};

/* A name in the temporary folder for the object of source number n. */
static char *hostcc_object_of(const struct job *job, size_t n)
{
    char *path = NULL;

    if (asprintf(&path, "%s/%zu.o", job->folder, n) < 0)
        return NULL;
    return path;
}

static void read_arguments(struct job *job, char **arguments)
{
    bool cuda = false;

    for (char **a = arguments; *a; a++) {
        const char *word = *a;

        if (strcmp(word, "-x") == 0 && a[1]) {
            cuda = strcmp(*++a, "cu") == 0;
            if (!cuda)
                add_option(job, word, *a);
            continue;
        }
        if (cuda && (*word != '-' || !word[1]) && (a == arguments || strcmp(a[-1], "-o") != 0))
            hostcc_add(&job->cuda, word);
        if (strcmp(word, "-o") == 0 && a[1]) {
            job->output = *++a;
            hostcc_add(&job->rest, word);
            hostcc_add(&job->rest, job->output);
        } else if (strcmp(word, "-c") == 0 || strcmp(word, "-S") == 0 || strcmp(word, "-E") == 0 ||
                   strcmp(word, "-fsyntax-only") == 0) {
            job->compile_only = job->compile_only || word[1] == 'c';
            job->assemble_only = job->assemble_only || word[1] == 'S';
            job->preprocess_only = job->preprocess_only || word[1] == 'E';
            job->check_only = job->check_only || word[1] == 'f';
            hostcc_add(&job->rest, word);
        } else if (is_source(job, word)) {
            job->sources++;
            hostcc_add(&job->rest, word);
        } else if (one_of(word, takes_value) && a[1]) {
            add_option(job, word, a[1]);
            a++;
        } else if (begins(word, "-l") || begins(word, "-Wl,") || begins(word, "-L")) {
            hostcc_add(&job->rest, word);
        } else if (*word == '-' && word[1]) {
            add_option(job, word, NULL);
        } else {
            job->other_inputs++;
            hostcc_add(&job->rest, word);
        }
    }
}

/* a/b.cu to b.o, as compilers name what they make. */
static char *default_object(const char *source, const char *suffix)
{
    const char *base = strrchr(source, '/') ? strrchr(source, '/') + 1 : source;
    const char *dot = strrchr(base, '.');
    char *path = NULL;

    if (asprintf(&path, "%.*s%s", dot ? (int)(dot - base) : (int)strlen(base), base, suffix) < 0)
        return NULL;
    return path;
}

static int separately(struct job *job)
{
    int status = 0;

    if (job->output && job->sources + job->other_inputs > 1) {
        fprintf(stderr, "gshmem-hostcc: -o names one file, but there are several sources\n");
        return 1;
    }
    for (size_t i = 0; i < job->rest.count && !status; i++) {
        const char *source = job->rest.words[i];

        if (!is_source(job, source) || (i && strcmp(job->rest.words[i - 1], "-o") == 0))
            continue;
        char *object = default_object(source, job->assemble_only ? ".s" : ".o");
        const char *name = job->output ? job->output : object;
        if (!name) {
            status = 1;
        } else if (job->preprocess_only) {
            FILE *to = job->output ? fopen(job->output, "w") : stdout;
            status = to ? translate_one(job, source, object, to) : 1;
            if (!to)
                fprintf(stderr, "gshmem-hostcc: %s: %s\n", job->output, strerror(errno));
            else if (to != stdout && fclose(to) != 0)
                status = 1;
        } else {
            status = compile_one(job, source, name);
        }
        free(object);
    }
    return status;
}

/* What is not .cu is the compiler's own affair. */
static int last_run(struct job *job, bool objects)
{
    struct command c = {NULL, 0};
    size_t n = 0;

    hostcc_add_all(&c, &job->compiler);
    for (size_t i = 0; i < job->rest.count; i++) {
        const char *word = job->rest.words[i];

        if (!is_source(job, word)) {
            hostcc_add(&c, word);
        } else if (objects) {
            char *object = hostcc_object_of(job, n++);
            hostcc_add(&c, object ? object : "");
            free(object);
        }
    }
    return hostcc_run(&c);
}

static int together(struct job *job)
{
    int status = 0;
    size_t n = 0;

    if (!make_folder(job))
        return 1;
    for (size_t i = 0; i < job->rest.count && !status; i++) {
        if (!is_source(job, job->rest.words[i]))
            continue;
        char *object = hostcc_object_of(job, n++);
        status = object ? compile_one(job, job->rest.words[i], object) : 1;
        free(object);
    }
    if (!status)
        status = last_run(job, true);
    for (size_t i = 0; i < n; i++) {
        char *object = hostcc_object_of(job, i);
        if (object)
            unlink(object);
        free(object);
    }
    return status;
}

int main(int argc, char **argv)
{
    struct job job = {.folder = ""};
    int i = 1, status;

    if (descriptor_fill_standard() != 0) { /* pipes and files must not become one of them */
        fprintf(stderr, "gshmem-hostcc: /dev/null: %s\n", strerror(errno));
        return 1;
    }
    if (argc == 2 && strcmp(argv[1], "--translate") == 0)
        return !translate_source(STDIN_FILENO, stdout) || fflush(stdout) != 0;
    for (; i < argc && strcmp(argv[i], "--") != 0; i++)
        hostcc_add(&job.compiler, argv[i]);
    if (i == argc || !job.compiler.count) {
        fprintf(stderr, "usage: gshmem-hostcc COMPILER… -- ARGUMENT…\n");
        return 2;
    }
    read_arguments(&job, argv + i + 1);
    if (!job.standard)
        hostcc_add(&job.options, "-std=gnu++17");
    /* Then volatile accesses, by which kernels wait, are no races. */
    job.clang = compiler_is_clang(&job);
    if (job.clang) /* options for one step are there in the other */
        hostcc_add(&job.options, "-Wno-unused-command-line-argument");
    if (job.thread_sanitizer && job.clang) {
        hostcc_add(&job.options, "-mllvm");
        hostcc_add(&job.options, "-tsan-distinguish-volatile=1");
    } else if (job.thread_sanitizer) {
        hostcc_add(&job.options, "--param=tsan-distinguish-volatile=1");
    }
    hostcc_on_signals(hostcc_interrupt);
    if (job.compile_only || job.assemble_only || job.preprocess_only || job.check_only) {
        status = separately(&job);
        if (!status && job.other_inputs)
            status = last_run(&job, false);
    } else {
        status = together(&job);
    }
    if (job.folder[0])
        rmdir(job.folder);
    hostcc_clear(&job.compiler);
    hostcc_clear(&job.options);
    hostcc_clear(&job.rest);
    hostcc_clear(&job.cuda);
    if (hostcc_interrupted) {
        signal(hostcc_interrupted, SIG_DFL);
        raise(hostcc_interrupted);
    }
    return status;
}
