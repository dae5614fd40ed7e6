/* A job started by a unique id, against strangers on its port, PEs that were started wrong, PEs
 * that break off, and a PE 0 that is not one. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bootstrap/builtin.h"
#include "bootstrap/uid/frame.h"
#include "bootstrap/uid/id.h"
#include "bootstrap/uid/siphash.h"
#include "runtime/base/system.h"
#include "check.h"
#include "drive.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"

/* Seconds that are not to pass: only what is stuck takes so long, on a busy machine too. */
enum { LONG = 100 };

/* ---- The good side: a PE in a process of its own ---- */

/* What a PE ends with: its status, and the part of its message that has to be there. */
struct ending {
    gshmem_status_t status;
    const char *part;
};

static gshmem_status_t take_part(const gshmem_uniqueid_t *uid, int pe, int n_pes, int seconds)
{
    struct bootstrap_request request = drive_request();
    struct bootstrap *b;

    request.uid = uid;
    request.pe = pe;
    request.n_pes = n_pes;
    request.timeout_seconds = seconds;
    gshmem_status_t status = bootstrap_uid.open(&request, &b);
    if (status)
        return status;
    (void)((status = b->ops->publish(b, "abc", 3)) || (status = b->ops->fence(b)));
    b->ops->close(b);
    return status;
}

static pid_t start_pe(const gshmem_uniqueid_t *uid, int pe, int n_pes, int seconds,
                      struct ending end)
{
    pid_t child = fork();

    CHECK(child >= 0);
    if (child)
        return child;
    alarm(LONG + 20);
    gshmem_status_t status = take_part(uid, pe, n_pes, seconds);
    if (status != end.status || (status && !strstr(last_error_text(), end.part)))
        CHECK_FAIL("PE %d ended with %d, expected %d, and \"%s\" in \"%s\"", pe, status, end.status,
                   end.part, last_error_text());
    _exit(0);
}

/* PE 0 makes the id in its own process, and hands it to the test. */
static pid_t start_root(gshmem_uniqueid_t *uid, int n_pes, int seconds, struct ending end)
{
    int ends[2];

    CHECK_EQ(pipe(ends), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(LONG + 20);
        CHECK_EQ(gshmem_get_uniqueid(uid), GSHMEM_OK);
        CHECK_EQ(write(ends[1], uid, sizeof *uid), (ssize_t)sizeof *uid);
        gshmem_status_t status = take_part(uid, 0, n_pes, seconds);
        if (status != end.status || (status && !strstr(last_error_text(), end.part)))
            CHECK_FAIL("PE 0 ended with %d, expected %d, and \"%s\" in \"%s\"", status, end.status,
                       end.part, last_error_text());
        _exit(0);
    }
    CHECK_EQ(read(ends[0], uid, sizeof *uid), (ssize_t)sizeof *uid);
    close(ends[0]);
    close(ends[1]);
    return child;
}

static void finish(pid_t child)
{
    int status;

    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

/* ---- The bad side: by hand ---- */

static int knock(const gshmem_uniqueid_t *uid)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct uid_id id;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    CHECK(uid_id_decode(uid, &id));
    to.sin_port = id.port;
    CHECK_EQ(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* The other side may have hung up: it tries several addresses, and takes the first one that answers. */
static void say(int fd, const void *bytes, size_t n)
{
    const ssize_t said = send(fd, bytes, n, MSG_NOSIGNAL);

    CHECK(said == (ssize_t)n || (said < 0 && (errno == EPIPE || errno == ECONNRESET)));
}

static void hear(int fd, void *bytes, size_t n)
{
    CHECK_EQ(recv(fd, bytes, n, MSG_WAITALL), (ssize_t)n);
}

static void frame(int fd, uint32_t type, const void *payload, size_t n)
{
    struct uid_header h = {type, (uint32_t)n};

    say(fd, &h, sizeof h);
    say(fd, payload, n);
}

/* Waits until the other side has hung up. */
static void is_turned_away(int fd)
{
    char bytes[512];

    while (recv(fd, bytes, sizeof bytes, 0) > 0)
        ;
    close(fd);
}

/* Says JOIN as a PE that knows the secret (or does not). */
static int join_as(const gshmem_uniqueid_t *uid, int pe, int n_pes, bool knows)
{
    struct uid_join j = {.version = UID_VERSION, .pe = pe, .n_pes = n_pes, .machine = "elsewhere"};
    struct uid_hello hello;
    struct uid_header h;
    struct uid_id id;
    int fd = knock(uid);

    CHECK(uid_id_decode(uid, &id));
    CHECK(system_random(j.nonce, sizeof j.nonce));
    id.secret[7] ^= !knows;
    hear(fd, &h, sizeof h);
    hear(fd, &hello, sizeof hello);
    CHECK_EQ(h.type, UID_HELLO);
    uid_proof_set(j.proof, uid_join_proof(id.secret, hello.nonce, &j));
    frame(fd, UID_JOIN, &j, sizeof j);
    return fd;
}

static void strangers_do_not_matter(void)
{
    struct uid_header huge = {UID_JOIN, 0xfffffff0};
    struct uid_join j = {.version = UID_VERSION, .pe = 1, .n_pes = 2};
    gshmem_uniqueid_t uid;
    pid_t root = start_root(&uid, 2, LONG, (struct ending){GSHMEM_OK, ""});
    int silent = knock(&uid), half = knock(&uid), gone = knock(&uid);

    say(half, "GET / HTTP/1.0\r\n\r\n", 5);
    say(gone, &huge, 4);
    close(gone);
    int fd = knock(&uid);
    say(fd, "GET / HTTP/1.0\r\n\r\n", 18);
    is_turned_away(fd);
    fd = knock(&uid);
    say(fd, &huge, sizeof huge);
    is_turned_away(fd);
    fd = knock(&uid); /* before it has heard the nonce */
    frame(fd, UID_JOIN, &j, sizeof j);
    is_turned_away(fd);
    is_turned_away(join_as(&uid, 1, 2, false));
    is_turned_away(join_as(&uid, 0, 77, false));
    pid_t other = start_pe(&uid, 1, 2, LONG, (struct ending){GSHMEM_OK, ""});
    finish(other);
    finish(root);
    close(silent);
    close(half);
}

/* Far more strangers than PE 0 speaks to at one time, all of them silent, and as many as this process may have
 * connections. They are there before any other PE. */
static void a_crowd_only_delays(void)
{
    enum { MOST = 10000, SPARE = 50 };
    gshmem_uniqueid_t uid;
    static int fd[MOST];
    struct rlimit limit;
    int n = 0;

    pid_t root = start_root(&uid, 3, LONG, (struct ending){GSHMEM_OK, ""});
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max < MOST + SPARE ? limit.rlim_max : MOST + SPARE;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while (n < MOST && n + SPARE < (int)limit.rlim_cur)
        fd[n++] = knock(&uid);
    CHECK(n > 500);
    pid_t other = start_pe(&uid, 2, 3, LONG, (struct ending){GSHMEM_OK, ""});
    finish(start_pe(&uid, 1, 3, LONG, (struct ending){GSHMEM_OK, ""}));
    finish(other);
    finish(root);
    for (int i = 0; i < n; i++)
        close(fd[i]);
}

/* A PE that joins in order and then does what it should not. */
static void mistakes_end_start_up(void)
{
    static const struct {
        int pe, n_pes;
        const char *part;
    } wrong[] = {
        {1, 4, "was told n_pes = 4, PE 0 was told n_pes = 3"},
        {0, 3, "the PEs that join PE 0 are 1..2"},
        {3, 3, "the PEs that join PE 0 are 1..2"},
        {-1, 3, "the PEs that join PE 0 are 1..2"},
        {2, 3, "another process, on elsewhere, has joined as PE 2"},
    };
    gshmem_uniqueid_t uid;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct ending end = {GSHMEM_ERR_MISMATCH, wrong[i].part};
        pid_t root = start_root(&uid, 3, LONG, end);
        int first = join_as(&uid, 2, 3, true);
        struct pollfd welcomed = {.fd = first, .events = POLLIN};
        poll(&welcomed, 1, 10000);
        int second = join_as(&uid, wrong[i].pe, wrong[i].n_pes, true);
        finish(root);
        close(first);
        close(second);
    }
}

enum broken { LEAVES, TALKS_NONSENSE, WRONG_ROUND, ABORTS };

static void break_off(enum broken how, struct ending end)
{
    gshmem_uniqueid_t uid;
    struct uid_abort a = {.status = 1, .pe = 1, .text = "had enough"};
    struct uid_blob blob = {.round = 77};
    pid_t root = start_root(&uid, 3, LONG, end);
    /* The third PE hears the reason from PE 0. */
    pid_t other = start_pe(&uid, 2, 3, LONG, end);
    int fd = join_as(&uid, 1, 3, true);
    char in[sizeof(struct uid_header) * 2 + sizeof(struct uid_welcome) + 3 * sizeof(int32_t)];

    hear(fd, in, sizeof in); /* the welcome and the hosts */
    if (how == TALKS_NONSENSE)
        say(fd, "nonsense nonsense", 17);
    if (how == WRONG_ROUND)
        frame(fd, UID_BLOB, &blob, 4);
    if (how == ABORTS)
        frame(fd, UID_ABORT, &a, sizeof a);
    if (how == LEAVES)
        close(fd);
    finish(root);
    finish(other);
    if (how != LEAVES)
        close(fd);
}

static void the_missing_are_named(void)
{
    gshmem_uniqueid_t uid;
    struct ending late = {GSHMEM_ERR_TIMEOUT, "have not called gshmem_init_attr: 1, 3-5, 7"};
    enum { SECONDS = 5 }; /* by then those who come have come */
    pid_t root = start_root(&uid, 8, SECONDS, late);
    pid_t two = start_pe(&uid, 2, 8, LONG, late), six = start_pe(&uid, 6, 8, LONG, late); /* PE 0 tells them */

    finish(root);
    finish(two);
    finish(six);
}

/* ---- A PE 0 that is none ---- */

static void wrong_ids_are_refused(void)
{
    gshmem_uniqueid_t uid, damaged;

    CHECK_EQ(gshmem_get_uniqueid(&uid), GSHMEM_OK);
    damaged = uid;
    damaged.opaque[60] ^= 1;
    finish(start_pe(&damaged, 1, 2, 1, (struct ending){GSHMEM_ERR_ARGUMENT, "not the bytes"}));
    finish(start_pe(&uid, 2, 2, 1, (struct ending){GSHMEM_ERR_ARGUMENT, "pe 2 of n_pes 2"}));
    finish(start_pe(&uid, -1, 2, 1, (struct ending){GSHMEM_ERR_ARGUMENT, "pe -1 of n_pes 2"}));
    finish(start_pe(&uid, 0, 0, 1, (struct ending){GSHMEM_ERR_ARGUMENT, "n_pes 0"}));
    /* A child of the process that made it. */
    finish(start_pe(&uid, 0, 2, 1, (struct ending){GSHMEM_ERR_BOOTSTRAP, "must be the process"}));
    finish(start_pe(&uid, 1, 2, 1, (struct ending){GSHMEM_ERR_TIMEOUT, "no word from it"}));
    CHECK_EQ(take_part(&uid, 0, 1, 1), GSHMEM_OK);
    CHECK_EQ(take_part(&uid, 0, 1, 1), GSHMEM_ERR_BOOTSTRAP); /* used before */
    finish(start_pe(&uid, 1, 2, 1, (struct ending){GSHMEM_ERR_UNREACHABLE, "Connection refused"}));
}

enum impostor { SAYS_NONSENSE, DOES_NOT_KNOW, ENDS_THE_JOB, HANGS_UP, BAD_HOSTS, BAD_ROUND, HUGE_ROUND };

/* False: it has hung up. */
static bool hear_join(int fd, struct uid_hello *hello, struct uid_join *j)
{
    struct uid_header h;

    *hello = (struct uid_hello){.version = UID_VERSION};
    frame(fd, UID_HELLO, hello, sizeof *hello);
    return recv(fd, &h, sizeof h, MSG_WAITALL) == sizeof h && recv(fd, j, sizeof *j, MSG_WAITALL) == sizeof *j;
}

static void answer_join(int fd, const struct uid_id *id, bool knows)
{
    struct uid_hello hello;
    struct uid_welcome welcome;
    struct uid_join j;
    unsigned char secret[UID_SECRET_BYTES];

    memcpy(secret, id->secret, sizeof secret);
    secret[20] ^= !knows;
    if (!hear_join(fd, &hello, &j))
        return;
    uid_proof_set(welcome.proof, uid_welcome_proof(secret, hello.nonce, &j));
    frame(fd, UID_WELCOME, &welcome, sizeof welcome);
}

/* Serves PE 1 of 2 on the id's own port, wrongly, until it has ended as it should. */
static void impersonate(pid_t pe, const int *listener, int listeners, const struct uid_id *id, enum impostor how)
{
    static const int32_t hosts[2] = {0, 0}, far[2] = {0, 99};
    static const unsigned char round[4 + 2 * 2] = {1, 0, 0, 0, 0xff, 0xff, 0, 0};
    struct uid_header huge = {UID_ROUND, 0x7fffffff};
    struct uid_abort a = {.status = GSHMEM_ERR_ABORTED, .text = "so there"};
    struct uid_hello hello;
    struct uid_join j;
    struct pollfd ready[UID_ADDRESSES];
    int i = 0, status;
    pid_t ended;

    for (int k = 0; k < listeners; k++)
        ready[k] = (struct pollfd){.fd = listener[k], .events = POLLIN};
    while ((ended = waitpid(pe, &status, WNOHANG)) == 0) { /* PE 1 tries each address */
        if (poll(ready, (nfds_t)listeners, 20) <= 0)
            continue;
        for (i = 0; !ready[i].revents; i++)
            ;
        int fd = accept4(listener[i], NULL, NULL, 0);
        if (fd < 0)
            continue;
        if (how == SAYS_NONSENSE)
            say(fd, "HTTP/1.1 400 Bad Request and more than that", 43);
        if (how == HANGS_UP || how == SAYS_NONSENSE) {
            close(fd);
            continue;
        }
        if (how == ENDS_THE_JOB) { /* without a proof that it is PE 0 */
            hear_join(fd, &hello, &j);
            frame(fd, UID_ABORT, &a, sizeof a);
            close(fd);
            continue;
        }
        answer_join(fd, id, how != DOES_NOT_KNOW);
        if (how == BAD_HOSTS)
            frame(fd, UID_NODES, far, sizeof far);
        if (how == BAD_ROUND || how == HUGE_ROUND)
            frame(fd, UID_NODES, hosts, sizeof hosts);
        if (how == BAD_ROUND)
            frame(fd, UID_ROUND, round, sizeof round);
        if (how == HUGE_ROUND)
            say(fd, &huge, sizeof huge);
        char bytes[512];
        while (recv(fd, bytes, sizeof bytes, 0) > 0)
            ;
        close(fd);
    }
    CHECK_EQ(ended, pe);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void impostors_are_noticed(void)
{
    static const struct ending endings[] = {
        [SAYS_NONSENSE] = {GSHMEM_ERR_UNREACHABLE, "somebody else listens there"},
        [DOES_NOT_KNOW] = {GSHMEM_ERR_UNREACHABLE, "somebody else listens there"},
        [ENDS_THE_JOB] = {GSHMEM_ERR_UNREACHABLE, "somebody else listens there"},
        [HANGS_UP] = {GSHMEM_ERR_TIMEOUT, "it closes connections"}, /* as PE 0 does in a crowd */
        [BAD_HOSTS] = {GSHMEM_ERR_BOOTSTRAP, "says PE 1 is on node 99"},
        [BAD_ROUND] = {GSHMEM_ERR_BOOTSTRAP, "is not round 1"},
        [HUGE_ROUND] = {GSHMEM_ERR_BOOTSTRAP, "expected all blobs from PE 0, got a frame"},
    };

    for (int how = SAYS_NONSENSE; how <= HUGE_ROUND; how++) {
        gshmem_uniqueid_t uid;
        struct uid_id id;
        CHECK_EQ(gshmem_get_uniqueid(&uid), GSHMEM_OK);
        CHECK(uid_id_decode(&uid, &id));
        pid_t pe = start_pe(&uid, 1, 2, how == HANGS_UP ? 4 : LONG, endings[how]);
        int listener[UID_ADDRESSES], listeners = uid_take_listeners(&id, listener);
        impersonate(pe, listener, listeners, &id, (enum impostor)how);
        while (listeners > 0)
            close(listener[--listeners]);
    }
}

static void change_id(gshmem_uniqueid_t *uid, struct uid_id *id)
{
    static const unsigned char no_key[16];

    id->checksum = (uint32_t)siphash(no_key, id, offsetof(struct uid_id, checksum));
    memcpy(uid->opaque, id, sizeof *id);
}

/* On a PE's own host somebody else may listen at addresses that PE 0 has on its host, greet as PE 0 does, and then keep
 * silent: for ever, so that the PE, which comes to PE 0's own address last, must not wait for it. */
static void silent_impostors_only_delay(void)
{
    enum { SILENT = 3 };
    struct sockaddr_in at = {.sin_family = AF_INET};
    struct uid_hello hello = {.version = UID_VERSION};
    gshmem_uniqueid_t uid;
    struct pollfd door[SILENT];
    struct uid_id id;

    pid_t root = start_root(&uid, 2, LONG, (struct ending){GSHMEM_OK, ""});
    CHECK(uid_id_decode(&uid, &id));
    at.sin_port = id.port;
    id.n_addresses = SILENT + 1;
    for (int i = 0; i <= SILENT; i++) {
        const unsigned char mapped[16] = {[10] = 0xff, 0xff, 127, 0, 0, (unsigned char)(i < SILENT ? 77 + i : 1)};
        memcpy(id.address[i], mapped, sizeof mapped);
        memcpy(&at.sin_addr, mapped + 12, sizeof at.sin_addr);
        if (i == SILENT)
            break;
        door[i] = (struct pollfd){.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), .events = POLLIN};
        CHECK_EQ(bind(door[i].fd, (struct sockaddr *)&at, sizeof at), 0);
        CHECK_EQ(listen(door[i].fd, 100), 0);
    }
    change_id(&uid, &id);
    pid_t other = start_pe(&uid, 1, 2, LONG, (struct ending){GSHMEM_OK, ""}), ended;
    int status;
    while ((ended = waitpid(other, &status, WNOHANG)) == 0) {
        if (poll(door, SILENT, 20) <= 0)
            continue;
        for (int i = 0; i < SILENT; i++) {
            int fd = door[i].revents ? accept(door[i].fd, NULL, NULL) : -1;
            if (fd >= 0)
                frame(fd, UID_HELLO, &hello, sizeof hello); /* it stays open */
        }
    }
    CHECK_EQ(ended, other);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    finish(root);
    for (int i = 0; i < SILENT; i++)
        close(door[i].fd);
}

/* An id that names IPv6 alone works as well; left out on a machine without it. */
static void ipv6_is_enough(void)
{
    static const unsigned char loopback[16] = {[15] = 1};
    gshmem_uniqueid_t uid;
    struct uid_id id;
    int probe = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    bool here = probe >= 0 && bind(probe, (struct sockaddr *)&at, sizeof at) == 0;

    close(probe);
    if (!here)
        return;
    pid_t root = start_root(&uid, 2, LONG, (struct ending){GSHMEM_OK, ""});
    CHECK(uid_id_decode(&uid, &id));
    memcpy(id.address[0], loopback, sizeof loopback);
    id.n_addresses = 1;
    change_id(&uid, &id);
    finish(start_pe(&uid, 1, 2, LONG, (struct ending){GSHMEM_OK, ""}));
    finish(root);
}

int main(void)
{
    setenv("GSHMEM_LOG", "none", 1);
    log_set_level(LOG_NONE);
    strangers_do_not_matter();
    mistakes_end_start_up();
    break_off(LEAVES, (struct ending){GSHMEM_ERR_PEER_DEAD, "PE 1 on elsewhere has left before"});
    break_off(TALKS_NONSENSE, (struct ending){GSHMEM_ERR_BOOTSTRAP, "is not GSHMEM's wire"});
    break_off(WRONG_ROUND, (struct ending){GSHMEM_ERR_MISMATCH, "PE 1 is not in round 1"});
    break_off(ABORTS, (struct ending){GSHMEM_ERR_ABORTED, "PE 1 has ended the job: had enough"});
    the_missing_are_named();
    wrong_ids_are_refused();
    impostors_are_noticed();
    silent_impostors_only_delay();
    ipv6_is_enough();
    a_crowd_only_delays();
    return 0;
}
