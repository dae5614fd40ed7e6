#define _GNU_SOURCE
#include "bootstrap/pmi/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bootstrap/inherited.h"
#include "runtime/base/nearest.h"
#include "bootstrap/pmi/mapping.h"
#include "bootstrap/stream.h"
#include "runtime/base/log.h"
#include "runtime/base/system.h"

enum { SHOWN = 120 }; /* bytes of a wrong line that a message quotes */

/* ---- What the environment says ---- */

static bool wire_environment_number(const char *name, long least, long most, long *number)
{
    const char *text = getenv(name);

    return text && pmi_number(text, least, most, number);
}

static enum bootstrap_found detect_fd(char *why, size_t why_size)
{
    long size, rank;
    ino_t inode;

    if (inherited_was_closed()) {
        snprintf(why, why_size,
                 "the launcher's connection, PMI_FD=%s, has been closed since this program "
                 "started, as MPI_Finalize does: call gshmem_init before",
                 getenv("PMI_FD"));
        return BOOTSTRAP_BROKEN;
    }
    if (nearest_pmi_descriptor(&inode) < 0) {
        snprintf(why, why_size,
                 "PMI_FD=%s is not an open socket: the launcher's connection was closed before "
                 "this program started",
                 getenv("PMI_FD"));
        return BOOTSTRAP_BROKEN;
    }
    if (!wire_environment_number("PMI_SIZE", 1, PMI_PES_LIMIT, &size) ||
        !wire_environment_number("PMI_RANK", 0, size - 1, &rank)) {
        const char *r = getenv("PMI_RANK"), *s = getenv("PMI_SIZE");
        snprintf(why, why_size,
                 "PMI_FD is set, but PMI_RANK=%s and PMI_SIZE=%s are not a rank of a job",
                 r ? r : "(unset)", s ? s : "(unset)");
        return BOOTSTRAP_BROKEN;
    }
    snprintf(why, why_size, "PMI_FD, PMI_RANK and PMI_SIZE are set");
    return BOOTSTRAP_PRESENT;
}

static enum bootstrap_found detect_port(char *why, size_t why_size)
{
    const char *port = getenv("PMI_PORT");
    long id;

    if (!strchr(port, ':') || !wire_environment_number("PMI_ID", 0, PMI_PES_LIMIT, &id)) {
        const char *text = getenv("PMI_ID");
        snprintf(why, why_size, "PMI_PORT=%s and PMI_ID=%s are not host:port and a number", port,
                 text ? text : "(unset)");
        return BOOTSTRAP_BROKEN;
    }
    snprintf(why, why_size, "PMI_PORT and PMI_ID are set");
    return BOOTSTRAP_PRESENT;
}

enum bootstrap_found pmi_wire_detect(char *why, size_t why_size)
{
    long size = 0;

    if (getenv("PMI_FD"))
        return detect_fd(why, why_size);
    if (getenv("PMI_PORT"))
        return detect_port(why, why_size);
    if (getenv("PMI_RANK") && !(wire_environment_number("PMI_SIZE", 1, 1, &size))) {
        snprintf(why, why_size,
                 "PMI_RANK=%s says that a PMI launcher started this process, but neither PMI_FD "
                 "nor PMI_PORT says how to reach it",
                 getenv("PMI_RANK"));
        return BOOTSTRAP_BROKEN;
    }
    snprintf(why, why_size, "PMI_FD and PMI_PORT are not set");
    return BOOTSTRAP_ABSENT;
}

/* ---- Lines out and in ---- */

static gshmem_status_t closed(struct pmi_wire *w, const char *where)
{
    return w->fail(GSHMEM_ERR_BOOTSTRAP,
                   "PMI: the launcher closed the connection before %s: it has ended, or "
                   "MPI_Finalize has taken leave of it (call gshmem_init before)",
                   where);
}

static gshmem_status_t send_line(struct pmi_wire *w, const char *format, va_list args)
{
    char text[PMI_LINE_MAX + 2];
    int n = vsnprintf(text, PMI_LINE_MAX + 1, format, args);

    if (w->broken)
        return w->fail(GSHMEM_ERR_BOOTSTRAP,
                       "PMI: the connection to the launcher has failed before");
    if (n < 0 || n > PMI_LINE_MAX)
        return w->fail(GSHMEM_ERR_BOOTSTRAP, "PMI: a request of %d bytes is too long for the wire",
                       n);
    text[n++] = '\n';
    if (stream_write_all(w->fd, text, (size_t)n, stream_deadline(w->timeout_seconds)) == 0)
        return GSHMEM_OK;
    w->broken = true;
    if (errno == EPIPE)
        return closed(w, "a request");
    return w->fail(GSHMEM_ERR_BOOTSTRAP, "PMI: cannot write to the launcher: %s", strerror(errno));
}

static gshmem_status_t no_reply(struct pmi_wire *w, ssize_t n, const char *expected)
{
    char where[64];

    w->broken = true;
    snprintf(where, sizeof where, "cmd=%s", expected);
    if (n == 0)
        return closed(w, where);
    if (errno == ETIMEDOUT)
        return w->fail(GSHMEM_ERR_TIMEOUT,
                       "PMI: no cmd=%s from the launcher within %d s (GSHMEM_INIT_TIMEOUT)%s",
                       expected, w->timeout_seconds,
                       strcmp(expected, "barrier_out") == 0 ? ": some PE did not get here" : "");
    return w->fail(GSHMEM_ERR_BOOTSTRAP, "PMI: cannot read cmd=%s from the launcher: %s", expected,
                   strerror(errno));
}

static gshmem_status_t receive_line(struct pmi_wire *w, const char *expected)
{
    uint64_t deadline = stream_deadline(w->timeout_seconds);

    for (;;) {
        enum pmi_taken taken = pmi_take_line(&w->in, w->line);
        if (taken == PMI_LINE)
            return GSHMEM_OK;
        if (taken != PMI_MORE) {
            w->broken = true;
            return w->fail(GSHMEM_ERR_BOOTSTRAP,
                           "PMI: expected cmd=%s from the launcher, got %s: \"%.*s…\"", expected,
                           taken == PMI_TOO_LONG ? "a line without end" : "bytes that are not text",
                           SHOWN, w->line);
        }
        ssize_t n =
            stream_read(w->fd, w->in.bytes + w->in.used, sizeof w->in.bytes - w->in.used, deadline);
        if (n <= 0)
            return no_reply(w, n, expected);
        w->in.used += (size_t)n;
    }
}

gshmem_status_t pmi_wire_refuse(struct pmi_wire *w, const char *expected)
{
    w->broken = true;
    return w->fail(GSHMEM_ERR_BOOTSTRAP, "PMI: expected %s from the launcher, got \"%.*s\"%s",
                   expected, SHOWN, w->line, strlen(w->line) > SHOWN ? "…" : "");
}

/* Whether the line in hand is the one that was expected. */
static gshmem_status_t check_command(struct pmi_wire *w, const char *expected)
{
    char command[64], wanted[80];

    if (pmi_line_value(w->line, "cmd", command, sizeof command) && strcmp(command, expected) == 0)
        return GSHMEM_OK;
    snprintf(wanted, sizeof wanted, "cmd=%s", expected);
    return pmi_wire_refuse(w, wanted);
}

static gshmem_status_t wire_expect(struct pmi_wire *w, const char *expected)
{
    gshmem_status_t status = receive_line(w, expected);

    return status ? status : check_command(w, expected);
}

gshmem_status_t pmi_wire_ask(struct pmi_wire *w, const char *expected, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    gshmem_status_t status = send_line(w, format, args);
    va_end(args);
    return status ? status : wire_expect(w, expected);
}

gshmem_status_t pmi_wire_tell(struct pmi_wire *w, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    gshmem_status_t status = send_line(w, format, args);
    va_end(args);
    return status;
}

/* ---- Connecting ---- */

static gshmem_status_t connect_port(struct pmi_wire *w, const char *address)
{
    const char *colon = strrchr(address, ':');
    char host[256];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;

    if (!colon || (size_t)(colon - address) >= sizeof host)
        return w->fail(GSHMEM_ERR_BOOTSTRAP, "PMI_PORT=%s is not host:port", address);
    snprintf(host, sizeof host, "%.*s", (int)(colon - address), address);
    int error = getaddrinfo(host, colon + 1, &hints, &found);
    if (error)
        return w->fail(GSHMEM_ERR_BOOTSTRAP, "PMI_PORT=%s: %s", address, gai_strerror(error));
    for (struct addrinfo *a = found; a && w->fd < 0; a = a->ai_next)
        w->fd = stream_connect(a->ai_addr, a->ai_addrlen, stream_deadline(w->timeout_seconds));
    error = errno;
    freeaddrinfo(found);
    if (w->fd < 0)
        return w->fail(GSHMEM_ERR_BOOTSTRAP, "PMI_PORT=%s: cannot connect to the launcher: %s",
                       address, strerror(error));
    return GSHMEM_OK;
}

/* Over a port the launcher sends cmd=initack and then size and rank, a line each. */
static gshmem_status_t identify(struct pmi_wire *w, int *pe, int *n_pes)
{
    long size = 0, rank = -1, debug;
    gshmem_status_t status = pmi_wire_ask(w, "initack", "cmd=initack pmiid=%s", getenv("PMI_ID"));

    for (int line = 0; !status && line < 3; line++) {
        status = wire_expect(w, "set");
        if (!status && !pmi_line_number(w->line, "size", 1, PMI_PES_LIMIT, &size) &&
            !pmi_line_number(w->line, "rank", 0, PMI_PES_LIMIT, &rank) &&
            !pmi_line_number(w->line, "debug", 0, 1 << 20, &debug))
            status = pmi_wire_refuse(w, "cmd=set size=, rank= or debug=");
    }
    if (!status && (rank < 0 || rank >= size))
        status = pmi_wire_refuse(w, "a rank below the size");
    *pe = (int)rank;
    *n_pes = (int)size;
    return status;
}

gshmem_status_t pmi_wire_open(struct pmi_wire *w, const struct bootstrap_request *request, int *pe,
                              int *n_pes)
{
    long number = 0;

    w->fail = request->fail;
    w->timeout_seconds = request->timeout_seconds;
    w->fd = -1;
    if (wire_environment_number("PMI_FD", 0, 1 << 20, &number)) {
        /* A copy: MPI_Finalize closes the number itself, which may be somebody else's when this
         * PE takes its leave. */
        w->fd = fcntl((int)number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (w->fd < 0)
            return w->fail(GSHMEM_ERR_SYSTEM, "PMI_FD=%ld: a copy of it: %s", number,
                           log_errno(errno));
        wire_environment_number("PMI_RANK", 0, PMI_PES_LIMIT, &number);
        *pe = (int)number;
        wire_environment_number("PMI_SIZE", 1, PMI_PES_LIMIT, &number);
        *n_pes = (int)number;
        return GSHMEM_OK;
    }
    gshmem_status_t status = connect_port(w, getenv("PMI_PORT"));
    return status ? status : identify(w, pe, n_pes);
}

bool pmi_wire_is_open(const struct pmi_wire *w)
{
    struct pollfd p = {.fd = w->fd, .events = POLLIN};

    /* Nothing is awaited: what can be read is the end. */
    return !w->broken && system_poll(&p, 1, 0) == 0;
}

void pmi_wire_close(struct pmi_wire *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
}
