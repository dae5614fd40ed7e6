/* Started by a launcher that speaks PMI-1: MPICH's mpiexec.hydra, srun --mpi=pmi2, and others.
 *
 * A PE's blob becomes text in the launcher's key-value space: "gshmem-ROUND-PE-PART" → hex digits,
 * as many parts as the launcher's longest value needs; the first begins with the blob's length. */
#include "bootstrap/builtin.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/nodes.h"
#include "bootstrap/pmi/mapping.h"
#include "bootstrap/pmi/wire.h"
#include "runtime/base/clock.h"

enum {
    LENGTH_DIGITS = 4,
    HEX_MAX = LENGTH_DIGITS + 2 * BOOTSTRAP_BLOB_MAX,
    KVS_MAX = 256,
    KEY_MAX = 48,        /* the longest of our own keys, with room to spare */
    GOODBYE_SECONDS = 5, /* that a launcher has to answer it */
};

static_assert(BOOTSTRAP_BLOB_MAX < 1 << 4 * LENGTH_DIGITS, "the length must fit in its digits");

struct pmi {
    struct bootstrap base;
    struct pmi_wire wire;
    unsigned round;
    char kvs[KVS_MAX + 1]; /* the job's key-value space */
    size_t value_bytes;    /* that the launcher takes, as far as we need them */
    int *node;
};

/* ---- Blobs as text ---- */

static void hex_encode(char *text, const void *blob, size_t bytes)
{
    const unsigned char *from = blob;

    text += sprintf(text, "%0*zx", LENGTH_DIGITS, bytes);
    for (size_t i = 0; i < bytes; i++)
        text += sprintf(text, "%02x", from[i]);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* False if there is another character among the n pairs of digits. */
static bool hex_decode(unsigned char *bytes, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

/* How long the text will be, by its first digits; 0 if they say nothing possible. */
static size_t hex_length(const char *text)
{
    unsigned char length[LENGTH_DIGITS / 2];

    if (!hex_decode(length, text, sizeof length))
        return 0;
    size_t bytes = (size_t)length[0] << 8 | length[1];
    return bytes <= BOOTSTRAP_BLOB_MAX ? LENGTH_DIGITS + 2 * bytes : 0;
}

/* ---- Rounds ---- */

static gshmem_status_t put_part(struct pmi *p, int part, const char *text)
{
    long rc;
    gshmem_status_t status =
        pmi_wire_ask(&p->wire, "put_result", "cmd=put kvsname=%s key=gshmem-%u-%d-%d value=%.*s",
                     p->kvs, p->round, p->base.pe, part, (int)p->value_bytes, text);

    if (!status && !pmi_line_number(p->wire.line, "rc", 0, 0, &rc))
        status = pmi_wire_refuse(&p->wire, "cmd=put_result rc=0");
    return status;
}

static gshmem_status_t pmi_publish(struct bootstrap *b, const void *blob, size_t bytes)
{
    struct pmi *p = (struct pmi *)b;
    char text[HEX_MAX + 1];
    gshmem_status_t status = GSHMEM_OK;

    if (bytes > BOOTSTRAP_BLOB_MAX)
        return p->wire.fail(GSHMEM_ERR_ARGUMENT, "PMI: a blob of %zu bytes; at most %d", bytes,
                            BOOTSTRAP_BLOB_MAX);
    p->round++; /* launchers keep old values, and some answer with them */
    hex_encode(text, blob, bytes);
    size_t length = strlen(text), at = 0;
    for (int part = 0; !status && at < length; part++, at += p->value_bytes)
        status = put_part(p, part, text + at);
    return status;
}

static gshmem_status_t pmi_fence(struct bootstrap *b)
{
    struct pmi *p = (struct pmi *)b;
    long rc;
    gshmem_status_t status = pmi_wire_ask(&p->wire, "barrier_out", "cmd=barrier_in");

    if (!status && strstr(p->wire.line, "rc=") && !pmi_line_number(p->wire.line, "rc", 0, 0, &rc))
        status = pmi_wire_refuse(&p->wire, "cmd=barrier_out rc=0");
    return status;
}

/* Asks for a key of the job's space; *found: whether the launcher has it. */
static gshmem_status_t get_value(struct pmi *p, const char *key, char *value, size_t size,
                                 bool *found)
{
    long rc;
    gshmem_status_t status =
        pmi_wire_ask(&p->wire, "get_result", "cmd=get kvsname=%s key=%s", p->kvs, key);

    if (status)
        return status;
    if (!pmi_line_number(p->wire.line, "rc", -(1 << 30), 1 << 30, &rc))
        return pmi_wire_refuse(&p->wire, "cmd=get_result rc=NUMBER");
    *found = rc == 0;
    if (*found && !pmi_line_value(p->wire.line, "value", value, size))
        return pmi_wire_refuse(&p->wire, "cmd=get_result with a value that fits");
    return GSHMEM_OK;
}

/* Gathers the parts of a PE's text; *length is what it has to be by its own first digits. */
static gshmem_status_t get_text(struct pmi *p, int pe, char *text, size_t *length)
{
    size_t have = 0;
    char key[KEY_MAX];

    *length = 1; /* until the first part tells */
    for (int part = 0; have < *length; part++) {
        bool found;
        snprintf(key, sizeof key, "gshmem-%u-%d-%d", p->round, pe, part);
        gshmem_status_t status = get_value(p, key, text + have, HEX_MAX + 1 - have, &found);
        if (status)
            return status;
        if (!found)
            return p->wire.fail(GSHMEM_ERR_BOOTSTRAP,
                                "PMI: the launcher has no key %s: PE %d has not published it", key,
                                pe);
        size_t got = strlen(text + have);
        have += got;
        if (part == 0 && have >= LENGTH_DIGITS)
            *length = hex_length(text);
        if (got == 0 || have < LENGTH_DIGITS || have > *length)
            return p->wire.fail(GSHMEM_ERR_BOOTSTRAP,
                                "PMI: the launcher's value of key %s is not what PE %d has put",
                                key, pe);
    }
    return GSHMEM_OK;
}

static gshmem_status_t pmi_fetch(struct bootstrap *b, int pe, void *blob, size_t capacity,
                                 size_t *bytes)
{
    struct pmi *p = (struct pmi *)b;
    char text[HEX_MAX + 1];
    unsigned char decoded[BOOTSTRAP_BLOB_MAX];
    size_t length;

    if (pe < 0 || pe >= b->n_pes)
        return p->wire.fail(GSHMEM_ERR_ARGUMENT, "PMI: the blob of PE %d; the job has PEs 0..%d",
                            pe, b->n_pes - 1);
    gshmem_status_t status = get_text(p, pe, text, &length);
    if (status)
        return status;
    size_t n = (length - LENGTH_DIGITS) / 2;
    if (!hex_decode(decoded, text + LENGTH_DIGITS, n))
        return p->wire.fail(GSHMEM_ERR_BOOTSTRAP,
                            "PMI: the launcher's value for PE %d is not what it has put", pe);
    if (n > capacity)
        return p->wire.fail(GSHMEM_ERR_ARGUMENT,
                            "PMI: the blob of PE %d has %zu bytes, room is for %zu", pe, n,
                            capacity);
    memcpy(blob, decoded, n);
    *bytes = n;
    return GSHMEM_OK;
}

/* ---- Opening and closing ---- */

static gshmem_status_t handshake(struct pmi *p)
{
    struct pmi_wire *w = &p->wire;
    long rc, name, key, value;
    gshmem_status_t status =
        pmi_wire_ask(w, "response_to_init", "cmd=init pmi_version=1 pmi_subversion=1");

    if (!status && !pmi_line_number(w->line, "rc", 0, 0, &rc))
        status = pmi_wire_refuse(w, "cmd=response_to_init rc=0");
    if (!status)
        status = pmi_wire_ask(w, "maxes", "cmd=get_maxes");
    if (status)
        return status;
    /* The least that works: names that we can keep, our longest key, and the length's digits. */
    if (!pmi_line_number(w->line, "kvsname_max", 2, 1 << 20, &name) ||
        !pmi_line_number(w->line, "keylen_max", KEY_MAX, 1 << 20, &key) ||
        !pmi_line_number(w->line, "vallen_max", LENGTH_DIGITS + 1, 1 << 20, &value))
        return pmi_wire_refuse(w, "cmd=maxes with kvsname_max >= 2, keylen_max >= 48 and "
                                  "vallen_max >= 5");
    p->value_bytes = value - 1 < HEX_MAX ? (size_t)value - 1 : HEX_MAX;
    status = pmi_wire_ask(w, "my_kvsname", "cmd=get_my_kvsname");
    if (!status && (!pmi_line_value(w->line, "kvsname", p->kvs, sizeof p->kvs) || !p->kvs[0]))
        status = pmi_wire_refuse(w, "cmd=my_kvsname with a name of 1 to 256 bytes");
    return status;
}

static gshmem_status_t no_memory(struct pmi *p)
{
    return p->wire.fail(GSHMEM_ERR_MEMORY, "PMI: out of memory for %d PEs", p->base.n_pes);
}

static gshmem_status_t pmi_find_nodes(struct pmi *p)
{
    int n = p->base.n_pes;
    char mapping[PMI_LINE_MAX + 1];
    bool found;

    p->node = calloc((size_t)n, sizeof *p->node);
    if (!p->node)
        return no_memory(p);
    p->base.host = p->node;
    gshmem_status_t status = get_value(p, "PMI_process_mapping", mapping, sizeof mapping, &found);
    if (status)
        return status;
    if (!found || !mapping[0]) {
        /* Launchers leave it empty when it would be longer than a value may be. */
        p->base.n_hosts = nodes_by_exchange(&p->base, p->node, &status);
    } else {
        if (!pmi_mapping_parse(mapping, n, p->node))
            return pmi_wire_refuse(&p->wire, "PMI_process_mapping as (vector,(node,nodes,PEs),…)");
        p->base.n_hosts = nodes_by_number(p->node, PMI_NODE_LIMIT, n, p->node);
    }
    return p->base.n_hosts ? status : no_memory(p);
}

static void pmi_release(struct pmi *p)
{
    pmi_wire_close(&p->wire);
    free(p->node);
    free(p);
}

static gshmem_status_t pmi_open(const struct bootstrap_request *request, struct bootstrap **out)
{
    struct pmi *p = calloc(1, sizeof *p);

    if (!p)
        return request->fail(GSHMEM_ERR_MEMORY, "start-up: out of memory");
    p->base.ops = &bootstrap_pmi;
    gshmem_status_t status = pmi_wire_open(&p->wire, request, &p->base.pe, &p->base.n_pes);
    if (!status)
        status = handshake(p);
    if (!status)
        status = pmi_find_nodes(p);
    if (status) {
        pmi_release(p);
        return status;
    }
    snprintf(p->base.job, sizeof p->base.job, "%.*s", (int)sizeof p->base.job - 1, p->kvs);
    *out = &p->base;
    return GSHMEM_OK;
}

static enum bootstrap_found pmi_detect(const struct bootstrap_request *request, char *why,
                                       size_t why_size)
{
    (void)request;
    return pmi_wire_detect(why, why_size);
}

static void pmi_abort(struct bootstrap *b, int status, const char *why)
{
    struct pmi *p = (struct pmi *)b;
    /* hydra ends at once and drops what it has not yet read of our stderr: the reason, that is */
    enum { UNTIL_READ_NS = 50 * CLOCK_MS };

    (void)why; /* the wire has no word for it; it has been logged */
    clock_sleep(UNTIL_READ_NS);
    if (pmi_wire_is_open(&p->wire))
        pmi_wire_tell(&p->wire, "cmd=abort exitcode=%d", status);
}

static void pmi_close(struct bootstrap *b)
{
    struct pmi *p = (struct pmi *)b;

    p->wire.timeout_seconds = GOODBYE_SECONDS;
    if (pmi_wire_is_open(&p->wire))
        pmi_wire_ask(&p->wire, "finalize_ack", "cmd=finalize");
    pmi_release(p);
}

const struct bootstrap_ops bootstrap_pmi = {
    .size = sizeof(struct bootstrap_ops),
    .version = BOOTSTRAP_VERSION,
    .name = "pmi",
    .detect = pmi_detect,
    .open = pmi_open,
    .publish = pmi_publish,
    .fence = pmi_fence,
    .fetch = pmi_fetch,
    .abort = pmi_abort,
    .close = pmi_close,
};
