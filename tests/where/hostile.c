/* Asking where who listens is not a PE, or not sane: a stranger is not asked, and nothing that an
 * answer has makes the asker take all memory, or reaches a terminal. */
#include <pthread.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "../check.h"
#include "runtime/where/where.h"

static pid_t of_test; /* tests of other builds may run */

enum { STRANGER = 65534, MS = 20000, QUESTIONS = 3 };

static struct asked target(uint32_t user, const char *name)
{
    struct asked a = {.user = user};

    a.name.sun_family = AF_UNIX;
    int n = snprintf(a.name.sun_path + 1, sizeof a.name.sun_path - 1, "gshmem-%s-%d", name,
                     (int)of_test);
    a.name_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    return a;
}

static int hostile_listen(const struct asked *a)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0 && bind(fd, (const struct sockaddr *)&a->name, a->name_bytes) == 0);
    CHECK(listen(fd, 4) == 0);
    return fd;
}

/* ---- A stranger has taken the name since it was tried ---- */

static int bytes_asked_of(int listening)
{
    char bytes[256];
    int fd = accept(listening, NULL, NULL);
    ssize_t n = recv(fd, bytes, sizeof bytes, 0);

    close(fd);
    return n > 0 ? (int)n : 0;
}

static void test_stranger(void)
{
    const uint32_t own = geteuid();
    struct asked a = target(own == 0 ? 0 : own + 1, "stranger");
    struct asking question = {.to = &a, .question = WHERE_WHO, .fd = -1};
    int ready[2], status;
    char byte = 0;

    CHECK(pipe(ready) == 0);
    pid_t child = fork();
    if (child == 0) {
        const bool cannot = own == 0 && setuid(STRANGER) != 0; /* root of some containers */
        int fd = cannot ? -1 : hostile_listen(&a);
        if (write(ready[1], &byte, 1) != 1)
            _exit(1);
        _exit(!cannot && bytes_asked_of(fd) != 0);
    }
    CHECK(read(ready[0], &byte, 1) == 1);
    ask_all(&question, 1, MS);
    CHECK(!question.complete);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0); /* 1: it was asked */
}

/* ---- Answers that are not sane ---- */

static struct where_answer given;

static void *answer_questions(void *argument)
{
    for (int i = 0; i < QUESTIONS; i++) {
        struct where_ask ask;
        int fd = accept(*(int *)argument, NULL, NULL);
        if (recv(fd, &ask, sizeof ask, MSG_WAITALL) == (ssize_t)sizeof ask)
            send(fd, &given, sizeof given, MSG_NOSIGNAL);
        close(fd);
    }
    return NULL;
}

static bool ask_and_collect(struct asked *a, struct where_job *job)
{
    struct asking question = {.to = a, .question = WHERE_WHO, .fd = -1};

    ask_all(&question, 1, MS);
    CHECK(question.complete);
    a->answer = question.answer;
    a->has_answered = 1;
    a->pid = getpid();
    return where_collect(a, 1, a, MS, job);
}

/* Two jobs of a user may have the same name. */
static void test_names(void)
{
    struct asked a = {.has_answered = 1, .answer = {.n_pes = 2, .number = 1, .job = "mpi"}}, b = a;

    CHECK(where_same_job(&a, &b));
    b.answer.pe = 1;
    CHECK(where_same_job(&a, &b));
    b.answer.number = 2;
    CHECK(!where_same_job(&a, &b));
}

static size_t peak_kib(void)
{
    struct rusage usage;

    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return (size_t)usage.ru_maxrss;
}

static void test_answers(void)
{
    struct asked a = target(geteuid(), "hostile");
    struct where_job job;
    pthread_t thread;
    char *text = NULL;
    size_t bytes;
    int fd = hostile_listen(&a);

    given = (struct where_answer){.magic = WHERE_MAGIC,
                                  .version = WHERE_VERSION,
                                  .n_pes = (1 << 20) - 1,
                                  .nodes = 1,
                                  .job = "a\033[2Jb",
                                  .program = "c\nd"};
    CHECK(pthread_create(&thread, NULL, answer_questions, &fd) == 0);
    CHECK(!ask_and_collect(&a, &job)); /* so many PEs no machine could report */
    CHECK_STR(a.answer.job, "a?[2Jb");
    CHECK_STR(a.answer.program, "c?d");
    given.n_pes = 1 << 16;
    CHECK(ask_and_collect(&a, &job)); /* the third question is for the pages */
    CHECK(peak_kib() < 256 << 10);
    struct culprit culprit;
    FILE *to = open_memstream(&text, &bytes);
    CHECK(to && culprit_find(&job, &culprit));
    report_print(&job, &culprit, 0, "", to);
    fclose(to);
    CHECK_HAS(text, "PEs 0-65535: does not answer");
    CHECK(!strchr(text, '\033'));
    free(text);
    free(culprit.pe);
    where_free(&job);
    CHECK(pthread_join(thread, NULL) == 0);
}

int main(void)
{
    of_test = getpid();
    test_stranger();
    test_names();
    test_answers();
    return 0;
}
