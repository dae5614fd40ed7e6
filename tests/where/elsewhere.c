/* A PE of another node is not judged by this machine's processes and clock: its process number is here
 * that of a stopped process, and its clock shows another time. The same PE on this node is stopped. */
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"
#include "runtime/where/where.h"

enum { MS = 20000 };

static const uint64_t second = 1000000000u;

static struct where_answer answer;
static struct where_member here, there;
static int node_of_there;

static struct asked target(void)
{
    struct asked a = {.user = geteuid(), .pid = getpid(), .has_answered = 1};

    a.name.sun_family = AF_UNIX;
    int n = snprintf(a.name.sun_path + 1, sizeof a.name.sun_path - 1, "gshmem-elsewhere-%d",
                     (int)getpid());
    a.name_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    return a;
}

/* PE 0, until the main thread shuts the socket down. */
static void *be_asked(void *argument)
{
    struct where_ask ask;
    int fd;

    while ((fd = accept(*(int *)argument, NULL, NULL)) >= 0) {
        if (recv(fd, &ask, sizeof ask, MSG_WAITALL) == (ssize_t)sizeof ask) {
            const bool both = node_of_there == 0 && ask.question == WHERE_NODE;
            answer.members = ask.question == WHERE_NODE ? 1u + both : ask.question == WHERE_OTHERS;
            send(fd, &answer, sizeof answer, MSG_NOSIGNAL);
            if (ask.question == WHERE_NODE)
                send(fd, &here, sizeof here, MSG_NOSIGNAL);
            if (both || ask.question == WHERE_OTHERS)
                send(fd, &there, sizeof there, MSG_NOSIGNAL);
        }
        close(fd);
    }
    return NULL;
}

static struct where_member member(int pe, pid_t pid, uint64_t now)
{
    struct where_member m = {.pe = pe, .life = WHERE_LIVES, .has_page = 1, .now = now};

    m.page.magic = WHERE_MAGIC;
    m.page.version = WHERE_VERSION;
    m.page.pe = pe;
    m.page.pid = pid;
    m.page.now = now;
    m.page.claimed = 1;
    m.page.wait[0] = (struct where_wait){.kind = WHERE_COLLECTIVE,
                                         .tid = pid,
                                         .since = now - 3 * second,
                                         .seen = now,
                                         .segment = -1,
                                         .peers = 1,
                                         .peer = {1 - pe},
                                         .call = "gshmem_barrier_all"};
    return m;
}

static void collect(const struct asked *a, int node, struct where_job *job, char *text, size_t size)
{
    struct culprit culprit;
    FILE *to = fmemopen(text, size, "w");

    answer.nodes = node + 1;
    node_of_there = there.node = node;
    CHECK(where_collect(a, 1, a, MS, job));
    CHECK(to && culprit_find(job, &culprit));
    report_print(job, &culprit, 0, "", to);
    fclose(to);
    free(culprit.pe);
}

int main(void)
{
    const pid_t parent = getpid(), child = fork();
    struct asked a = target();
    struct where_job job;
    char text[4096] = "";
    pthread_t thread;
    int fd, status;

    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* also where the test fails */
        if (getppid() != parent)
            _exit(0);
        raise(SIGSTOP);
        _exit(0);
    }
    CHECK(child > 0);
    CHECK(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
    answer = (struct where_answer){.magic = WHERE_MAGIC, .version = WHERE_VERSION, .n_pes = 2,
                                   .pid = getpid(), .job = "j", .program = "p"};
    a.answer = answer;
    here = member(0, getpid(), 1000 * second);
    there = member(1, child, 100 * second); /* another clock, and a number that is another's here */
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && bind(fd, (const struct sockaddr *)&a.name, a.name_bytes) == 0);
    CHECK(listen(fd, 4) == 0);
    CHECK(pthread_create(&thread, NULL, be_asked, &fd) == 0);

    a.answer.nodes = 2;
    collect(&a, 1, &job, text, sizeof text);
    CHECK_EQ(job.pe[1].state, STATE_WAITS);
    CHECK_EQ(job.pe[1].pid, 0);
    CHECK_HAS(text, "  PEs 0,1: in gshmem_barrier_all");
    CHECK_HAS(text, "(for 3 s)");
    CHECK(!strstr(text, "is stopped"));
    where_free(&job);

    a.answer.nodes = 1;
    collect(&a, 0, &job, text, sizeof text);
    CHECK_EQ(job.pe[1].state, STATE_STOPPED);
    CHECK_HAS(text, "because of PE 1, which is stopped");
    where_free(&job);

    shutdown(fd, SHUT_RDWR);
    CHECK(pthread_join(thread, NULL) == 0);
    kill(child, SIGKILL);
    CHECK(waitpid(child, NULL, 0) == child);
    return 0;
}
