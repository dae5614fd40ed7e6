/* Fuzz target: the launcher's state machine, given any messages in any order by any PE.
 *
 * An input is a job: a byte for its number of PEs, then steps of a head (PE, length of two bytes)
 * and as many bytes of a message; a length of all ones means that the PE's process has ended. What
 * must always hold is checked beside what a sanitizer sees: answers are well-formed and go to PEs
 * of the job, a blob is fetched as it was published, nobody is answered after the end, and the end
 * has a reason that a terminal can show. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/run/server.h"
#include "fuzz.h"

enum { PES_MAX = 8, HEAD = 3, ENDED = 0xffff };

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* What has been published, noted apart from the server. */
struct job {
    struct server server;
    bool over;
    uint32_t bytes[PES_MAX][2];
    unsigned char blob[PES_MAX][2][BOOTSTRAP_BLOB_MAX];
};

static bool take_answer(void *context, int pe, const unsigned char *message, size_t bytes)
{
    struct job *j = context;
    struct wire_welcome welcome;
    struct wire_round round;
    struct wire_absent absent;
    struct wire_blob blob;

    MUST(!j->over);
    MUST(pe >= 0 && pe < j->server.n_pes);
    if (wire_decode_welcome(message, bytes, &welcome))
        MUST(welcome.n_pes == (uint32_t)j->server.n_pes && welcome.n_nodes >= 1 &&
             welcome.n_nodes <= welcome.n_pes && welcome.round <= j->server.released);
    else if (wire_decode_round(message, bytes, WIRE_RELEASED, &round))
        MUST(round.round == j->server.released && j->server.pe[pe].round == round.round);
    else if (wire_decode_absent(message, bytes, &absent))
        MUST(absent.count >= 1 && absent.first < (uint32_t)j->server.n_pes &&
             !j->server.pe[absent.first].fenced);
    else {
        MUST(wire_decode_blob(message, bytes, &blob));
        MUST(blob.pe < (uint32_t)j->server.n_pes);
        MUST(blob.bytes == j->bytes[blob.pe][blob.round & 1]);
        MUST(memcmp(blob.blob, j->blob[blob.pe][blob.round & 1], blob.bytes) == 0);
    }
    return true;
}

static void note_publish(struct job *j, int pe, const unsigned char *message, size_t bytes)
{
    struct wire_publish m;

    if (j->server.ended || !wire_decode_publish(message, bytes, &m))
        return;
    j->bytes[pe][m.round & 1] = m.bytes;
    memcpy(j->blob[pe][m.round & 1], m.blob, m.bytes);
}

static void check_end(const struct job *j)
{
    const struct server *s = &j->server;

    MUST(s->ended);
    MUST(s->status >= 0 && s->status <= 255);
    MUST(s->text[0] || s->status == 0);
    MUST(memchr(s->text, 0, sizeof s->text));
    for (const char *c = s->text; *c; c++)
        MUST((unsigned char)*c >= 0x20 && *c != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct job j;

    if (bytes < 1)
        return 0;
    memset(&j, 0, sizeof j);
    int n_pes = 1 + data[0] % PES_MAX;
    if (!server_start(&j.server, n_pes, 1 + data[0] / PES_MAX % n_pes, 1, take_answer, &j))
        return 0;
    for (size_t at = 1; at + HEAD <= bytes;) {
        int pe = data[at] % n_pes;
        size_t length = data[at + 1] | (size_t)data[at + 2] << 8;
        bool taken;

        at += HEAD;
        if (length == ENDED) {
            taken = server_left(&j.server, pe);
        } else {
            length = length < bytes - at ? length : bytes - at;
            /* A message of its exact size, as a sanitizer needs it. */
            unsigned char *message = malloc(length ? length : 1);
            if (!message)
                break;
            memcpy(message, data + at, length);
            taken = server_receive(&j.server, pe, message, length);
            note_publish(&j, pe, message, length);
            free(message);
            at += length;
        }
        MUST(taken == !j.server.ended);
        if (!taken)
            check_end(&j);
        j.over = j.server.ended;
    }
    server_stop(&j.server);
    return 0;
}

/* ---- seeds: whole jobs, and the many ways in which they may end ---- */

struct script {
    uint8_t *data;
    size_t bytes;
};

static void step(struct script *s, int pe, const unsigned char *message, size_t bytes)
{
    s->data[s->bytes++] = (uint8_t)pe;
    s->data[s->bytes++] = (uint8_t)bytes;
    s->data[s->bytes++] = (uint8_t)(bytes >> 8);
    if (bytes != ENDED) {
        memcpy(s->data + s->bytes, message, bytes);
        s->bytes += bytes;
    }
}

static void script_round(struct script *s, int n_pes, uint32_t round)
{
    unsigned char m[WIRE_MAX];

    for (int pe = 0; pe < n_pes; pe++) {
        struct wire_publish p = {
            round, (uint32_t)pe * 20,
            (const unsigned char
                 *)"a blob of a PE, "
                   "not long, but it differs from that of each other PE by its length"
                   " and that is what a look at it shows; this is the end of the blob."};
        step(s, pe, m, wire_encode_publish(m, &p));
        step(s, pe, m, wire_encode_round(m, WIRE_FENCE, &(struct wire_round){round}));
        if (pe == 0 && n_pes > 1)
            step(s, pe, m, wire_encode_round(m, WIRE_WHO, &(struct wire_round){round}));
    }
    for (int pe = 0; pe < n_pes; pe++)
        step(s, pe, m,
             wire_encode_fetch(m, &(struct wire_fetch){round, (uint32_t)(n_pes - 1 - pe)}));
}

size_t fuzz_seed(unsigned number, uint8_t *data, size_t capacity)
{
    unsigned char m[WIRE_MAX];
    struct script s = {data, 0};
    int n_pes = 1 + (int)number % 4;

    if (number >= 16 || capacity < 4096)
        return 0;
    s.data[s.bytes++] = (uint8_t)(n_pes - 1 + PES_MAX * (int)(number / 4));
    for (int pe = 0; pe < n_pes; pe++)
        step(&s, pe, m, wire_encode_hello(m, &(struct wire_hello){WIRE_VERSION, (uint32_t)pe}));
    for (uint32_t round = 1; round <= 1 + number / 8; round++)
        script_round(&s, n_pes, round);
    if (number % 8 >= 4)
        step(&s, 0, m, wire_encode_abort(m, &(struct wire_abort){3, 6, "enough"}));
    for (int pe = 0; pe < n_pes; pe++) {
        step(&s, pe, m, wire_encode_goodbye(m));
        step(&s, pe, NULL, ENDED);
    }
    return s.bytes;
}
