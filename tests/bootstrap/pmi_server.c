/* The PMI-1 client against launchers of the test's own: one that keeps to the wire, with the
 * smallest maxima or no map of hosts, and many that do not. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "drive.h"
#include "bootstrap/builtin.h"
#include "runtime/base/log.h"

enum {
    LINE = 2048,
    LONG = 100, /* seconds that are not to pass, on a busy machine either */
};

/* ---- Servers: each runs in a process of its own and reads a request before each reply ---- */

static bool read_request(int fd, char line[LINE])
{
    size_t n = 0;

    while (n < LINE - 1 && read(fd, line + n, 1) == 1) {
        if (line[n++] == '\n') {
            line[n - 1] = 0;
            return true;
        }
    }
    return false;
}

static void reply(int fd, const char *text, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n = send(fd, text, bytes, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        text += n;
        bytes -= (size_t)n;
    }
}

/* What a launcher of two PEs says to a PE 0 that publishes, fences and fetches from PE 1. */
static const char *const good[] = {
    "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
    "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n",
    "cmd=my_kvsname kvsname=kvs_1\n",
    "cmd=get_result rc=0 msg=success value=(vector,(0,1,2))\n",
    "cmd=put_result rc=0 msg=success\n",
    "cmd=barrier_out\n",
    "cmd=get_result rc=0 msg=success value=0003616263\n",
};
enum { INIT, MAXES, NAME, MAPPING, PUT, BARRIER, GET, STEPS };

struct defect {
    const char *name;
    int step;
    const char *says; /* instead; NULL: it closes the connection */
    gshmem_status_t status;
    const char *part; /* of the client's message */
};

#define REPEAT16(x) x x x x x x x x x x x x x x x x

static const struct defect defects[] = {
    {"closes at once", INIT, NULL, GSHMEM_ERR_BOOTSTRAP,
     "closed the connection before cmd=response"},
    {"closes in the barrier", BARRIER, NULL, GSHMEM_ERR_BOOTSTRAP,
     "closed the connection before cmd=barrier_out"},
    {"says something else", MAXES, "cmd=barrier_out\n", GSHMEM_ERR_BOOTSTRAP,
     "expected cmd=maxes from the launcher, got \"cmd=barrier_out\""},
    {"says nothing of rc", INIT, "cmd=response_to_init\n", GSHMEM_ERR_BOOTSTRAP, "rc=0"},
    {"refuses", INIT, "cmd=response_to_init pmi_version=1 rc=-1\n", GSHMEM_ERR_BOOTSTRAP, "rc=0"},
    {"speaks HTTP", INIT, "HTTP/1.1 400 Bad Request\n", GSHMEM_ERR_BOOTSTRAP, "400 Bad Request"},
    {"says bytes", INIT, "\x01\x02\xff\xfe\x7f", GSHMEM_ERR_BOOTSTRAP, "bytes that are not text"},
    {"says terminal codes", NAME, "cmd=my_kvsname kvsname=\x1b[2Jx\n", GSHMEM_ERR_BOOTSTRAP,
     "bytes that are not text: \"cmd=my_kvsname kvsname=?[2Jx"},
    {"never ends a line", NAME, "huge", GSHMEM_ERR_BOOTSTRAP, "a line without end"},
    {"stops in a line", NAME, "cmd=my_kvs", GSHMEM_ERR_TIMEOUT, "no cmd=my_kvsname"},
    {"says an empty line", NAME, "\n", GSHMEM_ERR_BOOTSTRAP, "expected cmd=my_kvsname"},
    {"has no name", NAME, "cmd=my_kvsname kvsname=\n", GSHMEM_ERR_BOOTSTRAP, "1 to 256 bytes"},
    {"has too long a name", NAME, "cmd=my_kvsname kvsname=" REPEAT16("0123456789abcdef0") "\n",
     GSHMEM_ERR_BOOTSTRAP, "1 to 256 bytes"},
    {"has no maxima", MAXES, "cmd=maxes\n", GSHMEM_ERR_BOOTSTRAP, "keylen_max >= 48"},
    {"has short keys", MAXES, "cmd=maxes kvsname_max=256 keylen_max=8 vallen_max=1024\n",
     GSHMEM_ERR_BOOTSTRAP, "keylen_max >= 48"},
    {"has no values", MAXES, "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=0\n",
     GSHMEM_ERR_BOOTSTRAP, "vallen_max >= 5"},
    {"has negative maxima", MAXES, "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=-1\n",
     GSHMEM_ERR_BOOTSTRAP, "vallen_max >= 5"},
    {"has endless maxima", MAXES,
     "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=99999999999999999999999\n",
     GSHMEM_ERR_BOOTSTRAP, "vallen_max >= 5"},
    {"maps in words", MAPPING, "cmd=get_result rc=0 value=everywhere\n", GSHMEM_ERR_BOOTSTRAP,
     "PMI_process_mapping"},
    {"maps nobody", MAPPING, "cmd=get_result rc=0 value=(vector,(0,0,0))\n", GSHMEM_ERR_BOOTSTRAP,
     "PMI_process_mapping"},
    {"maps to far hosts", MAPPING, "cmd=get_result rc=0 value=(vector,(99999999,1,2))\n",
     GSHMEM_ERR_BOOTSTRAP, "PMI_process_mapping"},
    {"does not put", PUT, "cmd=put_result rc=-1 msg=full\n", GSHMEM_ERR_BOOTSTRAP,
     "cmd=put_result rc=0"},
    {"is silent in the barrier", BARRIER, "", GSHMEM_ERR_TIMEOUT, "some PE did not get here"},
    {"fails the barrier", BARRIER, "cmd=barrier_out rc=-1\n", GSHMEM_ERR_BOOTSTRAP, "barrier_out"},
    {"lost the key", GET, "cmd=get_result rc=-1 msg=key_not_found value=unknown\n",
     GSHMEM_ERR_BOOTSTRAP, "no key gshmem-1-1-0: PE 1 has not published it"},
    {"has no value", GET, "cmd=get_result rc=0 msg=success\n", GSHMEM_ERR_BOOTSTRAP, "value"},
    {"has an empty value", GET, "cmd=get_result rc=0 value=\n", GSHMEM_ERR_BOOTSTRAP,
     "not what PE 1"},
    {"has half a length", GET, "cmd=get_result rc=0 value=00\n", GSHMEM_ERR_BOOTSTRAP,
     "not what PE"},
    {"has no digits", GET, "cmd=get_result rc=0 value=00zz61\n", GSHMEM_ERR_BOOTSTRAP,
     "not what PE"},
    {"has other digits", GET, "cmd=get_result rc=0 value=0003xxxxxx\n", GSHMEM_ERR_BOOTSTRAP,
     "is not what it has put"},
    {"has a longer value", GET, "cmd=get_result rc=0 value=000361626364\n", GSHMEM_ERR_BOOTSTRAP,
     "not what PE"},
    {"has a huge blob", GET, "cmd=get_result rc=0 value=ffff616263\n", GSHMEM_ERR_BOOTSTRAP,
     "not what PE"},
};

static void serve_defect(int fd, const struct defect *d)
{
    char line[LINE];

    for (int step = 0; step < STEPS && read_request(fd, line); step++) {
        const char *text = d && d->step == step ? d->says : good[step];
        if (!text)
            return;
        if (strcmp(text, "huge") == 0) {
            for (int i = 0; i < 100000; i++)
                reply(fd, "0123456789", 10);
            continue;
        }
        reply(fd, text, strlen(text));
    }
    while (read_request(fd, line)) { /* until the client has gone */
        if (strcmp(line, "cmd=finalize") == 0)
            reply(fd, "cmd=finalize_ack\n", 17);
    }
}

/* A launcher of one PE that keeps to the wire: a list of pairs, and these values at the most. */
struct pair {
    char key[64], value[1100];
};

static void serve_pairs(int fd, int value_max)
{
    static struct pair pairs[2000];
    int n = 0;
    char line[LINE], key[64], text[LINE];

    while (read_request(fd, line)) {
        int at = 0;
        if (strncmp(line, "cmd=init", 8) == 0) {
            snprintf(text, sizeof text, "%s", good[INIT]);
        } else if (strcmp(line, "cmd=get_maxes") == 0) {
            snprintf(text, sizeof text, "cmd=maxes kvsname_max=9 keylen_max=48 vallen_max=%d\n",
                     value_max);
        } else if (strcmp(line, "cmd=get_my_kvsname") == 0) {
            snprintf(text, sizeof text, "%s", good[NAME]);
        } else if (n < 2000 && sscanf(line, "cmd=put kvsname=kvs_1 key=%63s value=%1099s",
                                      pairs[n].key, pairs[n].value) == 2) {
            bool fits = (int)strlen(pairs[n++].value) < value_max;
            snprintf(text, sizeof text, "cmd=put_result rc=%d msg=x\n", fits ? 0 : -1);
        } else if (sscanf(line, "cmd=get kvsname=kvs_1 key=%63s", key) == 1) {
            while (at < n && strcmp(pairs[at].key, key) != 0)
                at++;
            snprintf(text, sizeof text, "cmd=get_result rc=%d msg=x value=%s\n", at < n ? 0 : -1,
                     at < n ? pairs[at].value : "unknown");
        } else if (strcmp(line, "cmd=barrier_in") == 0) {
            snprintf(text, sizeof text, "cmd=barrier_out\n");
        } else if (strcmp(line, "cmd=finalize") == 0) {
            snprintf(text, sizeof text, "cmd=finalize_ack\n");
        } else {
            snprintf(text, sizeof text, "cmd=what\n");
        }
        reply(fd, text, strlen(text));
    }
}

/* ---- The client ---- */

static gshmem_status_t converse(int seconds)
{
    struct bootstrap_request request = drive_request();
    struct bootstrap *b;
    char blob[BOOTSTRAP_BLOB_MAX];
    size_t bytes = 0;

    request.timeout_seconds = seconds;
    gshmem_status_t status = bootstrap_pmi.open(&request, &b);
    if (status)
        return status;
    (void)((status = b->ops->publish(b, "abc", 3)) || (status = b->ops->fence(b)) ||
           (status = b->ops->fetch(b, 1, blob, sizeof blob, &bytes)));
    if (!status && (bytes != 3 || memcmp(blob, "abc", 3) != 0))
        CHECK_FAIL("fetched %zu bytes", bytes);
    b->ops->close(b);
    return status;
}

/* The library has a copy. */
static void close_own_end(void)
{
    close(atoi(getenv("PMI_FD")));
}

static pid_t start_server(const struct defect *d, int value_max)
{
    int ends[2];
    char text[16];

    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pid_t server = fork();
    CHECK(server >= 0);
    if (server == 0) {
        alarm(LONG + 20);
        close(ends[0]);
        if (value_max)
            serve_pairs(ends[1], value_max);
        else
            serve_defect(ends[1], d);
        _exit(0);
    }
    close(ends[1]);
    snprintf(text, sizeof text, "%d", ends[0]);
    setenv("PMI_FD", text, 1);
    setenv("PMI_RANK", "0", 1);
    setenv("PMI_SIZE", value_max ? "1" : "2", 1);
    return server;
}

static void try_defect(const struct defect *d)
{
    pid_t server = start_server(d, 0);
    gshmem_status_t status = converse(d->status == GSHMEM_ERR_TIMEOUT ? 3 : LONG);

    if (status != d->status || !strstr(last_error_text(), d->part))
        CHECK_FAIL("a launcher that %s: status %d, expected %d, and \"%s\" in \"%s\"", d->name,
                   status, d->status, d->part, last_error_text());
    close_own_end();
    CHECK_EQ(waitpid(server, NULL, 0), server);
}

/* Every blob comes back whole through values as short as the launcher likes. */
static void try_values(int value_max)
{
    struct bootstrap_request request = drive_request();
    pid_t server = start_server(NULL, value_max);
    struct bootstrap *b;

    CHECK_EQ(bootstrap_open(&request, &b), GSHMEM_OK);
    CHECK_STR(b->ops->name, "pmi");
    drive_rounds(b, 4);
    drive_hosts(b, 1);
    b->ops->close(b);
    close_own_end();
    CHECK_EQ(waitpid(server, NULL, 0), server);
}

/* The launcher is met at a port, and says there who the process is. */
static void try_port(const char *identity, gshmem_status_t expected, const char *part)
{
    struct bootstrap_request request = drive_request();
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    struct bootstrap *b;
    char text[LINE];
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    CHECK_EQ(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    CHECK_EQ(listen(listener, 1), 0);
    CHECK_EQ(getsockname(listener, (struct sockaddr *)&at, &bytes), 0);
    pid_t server = fork();
    CHECK(server >= 0);
    if (server == 0) {
        alarm(LONG + 20);
        int fd = accept(listener, NULL, NULL);
        CHECK(read_request(fd, text));
        CHECK_STR(text, "cmd=initack pmiid=7");
        reply(fd, identity, strlen(identity));
        serve_pairs(fd, 1024);
        _exit(0);
    }
    close(listener);
    snprintf(text, sizeof text, "127.0.0.1:%d", ntohs(at.sin_port));
    unsetenv("PMI_FD");
    setenv("PMI_PORT", text, 1);
    setenv("PMI_ID", "7", 1);
    gshmem_status_t status = bootstrap_pmi.open(&request, &b);
    if (status != expected || (status && !strstr(last_error_text(), part)))
        CHECK_FAIL("a launcher that says \"%s\": status %d, expected %d, and \"%s\" in \"%s\"",
                   identity, status, expected, part, last_error_text());
    if (!status) {
        drive_rounds(b, 2);
        b->ops->close(b);
    }
    CHECK_EQ(waitpid(server, NULL, 0), server);
    unsetenv("PMI_PORT");
}

int main(void)
{
    log_set_level(LOG_NONE);
    setenv("GSHMEM_LOG", "none", 1);
    pid_t server = start_server(NULL, 0);
    CHECK_EQ(converse(LONG), GSHMEM_OK);
    close_own_end();
    CHECK_EQ(waitpid(server, NULL, 0), server);
    for (size_t i = 0; i < sizeof defects / sizeof defects[0]; i++)
        try_defect(&defects[i]);
    try_values(1024);
    try_values(100);
    try_values(5);
    try_port("cmd=initack rc=0\ncmd=set size=1\ncmd=set rank=0\ncmd=set debug=0\n", GSHMEM_OK, "");
    try_port("cmd=initack rc=0\ncmd=set size=1\ncmd=set rank=1\ncmd=set debug=0\n",
             GSHMEM_ERR_BOOTSTRAP, "a rank below the size");
    try_port("cmd=initack rc=0\ncmd=set size=0\n", GSHMEM_ERR_BOOTSTRAP, "size=, rank= or debug=");
    try_port("cmd=initack rc=0\ncmd=set colour=red\n", GSHMEM_ERR_BOOTSTRAP,
             "size=, rank= or debug=");
    try_port("cmd=go away\n", GSHMEM_ERR_BOOTSTRAP, "cmd=initack");
    return 0;
}
