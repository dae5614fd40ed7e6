/* Fuzz target: what arrives on a TCP stream that another opened, from its hello on.
 *
 * An input is a byte that says who speaks (bit 0: a stranger, whose hello is part of the input, and
 * what its proof differs by from the right one; else a PE, that is greeted for it; bit 1: it reads no
 * answers before it has said everything), a byte for how many bytes arrive at a time (0: all), and the
 * bytes. Beside the transport a model, which knows nothing but the wire's description, carries out the
 * same requests on memory of its own: both must agree about every byte of the segments and of what
 * lies around them, about the answers, and about whether the stream was ended, and with how many
 * lines. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "gshmem/rma.h"
#include "runtime/base/atomic_type.h"
#include "runtime/base/log.h"
#include "runtime/base/settings.h"
#include "transport/tcp/greeting.h"
#include "transport/tcp/target.h"

enum { PES = 3, ME = 1, PEER = 2, GUARD = 4096, FIRST = 12000, SECOND = 64, MODEL_MOST = 4096 };

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Two segments, and what no peer may touch. */
struct memory {
    unsigned char before[GUARD], first[FIRST], between[GUARD], second[SECOND], after[GUARD];
} __attribute__((aligned(64)));

static struct memory real, model;

static const struct {
    size_t at, bytes;
} segments[] = {{offsetof(struct memory, first), FIRST}, {offsetof(struct memory, second), SECOND}};

static void fill(struct memory *m)
{
    unsigned char *byte = (unsigned char *)m;

    for (size_t i = 0; i < sizeof *m; i++)
        byte[i] = (unsigned char)(i * 7 + i / 251);
}

/* ---- What the transport is lent ---- */

static int complaints, losses, tellings;
static uint64_t notes; /* how many bytes of notes were heard, and one more for each */

static gshmem_status_t complain(gshmem_status_t status, const char *format, ...)
{
    char line[512];
    va_list args;

    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    MUST(n > 0 && n < (int)sizeof line && strstr(line, "PE ") && !strchr(line, '\n'));
    complaints++;
    return status;
}

static void be_silent(const char *format, ...)
{
    (void)format;
}

static gshmem_status_t find(void *context, int pe, void *address, size_t capacity, size_t *bytes)
{
    (void)context, (void)pe, (void)address, (void)capacity, (void)bytes;
    abort(); /* nobody is called from here */
}

/* Any update that depends on all it is given will do. */
static uint64_t update(void *context, enum gshmem_amo amo, int type, void *target, uint64_t operand,
                       uint64_t compare)
{
    size_t bytes = atomic_type_bytes(type);
    uint64_t old = 0;

    (void)context;
    MUST(bytes && (uintptr_t)target % bytes == 0 && amo <= GSHMEM_AMO_XOR);
    memcpy(&old, target, bytes);
    uint64_t now = old * 3 + operand + (compare << 8) + (uint64_t)amo;
    memcpy(target, &now, bytes);
    return old;
}

static void lose(void *context, int pe, gshmem_status_t status, const char *why)
{
    (void)context;
    MUST(pe >= 0 && pe < PES && (status == GSHMEM_ERR_PEER_DEAD || status == GSHMEM_ERR_TRANSPORT) && why[0]);
    losses++;
}

static void be_refused(void *context, int pe)
{
    (void)context;
    MUST(pe >= 0 && pe < PES && pe != ME);
    tellings++;
}

static void be_told(void *context, int from, int pe)
{
    (void)context;
    MUST(from >= 0 && from < PES && pe >= 0 && pe < PES);
    tellings++;
}

static void receive(void *context, int from, const void *note, size_t bytes)
{
    (void)context;
    MUST(from >= 0 && from < PES && note && bytes <= TRANSPORT_NOTE_MAX);
    notes += bytes + 1;
}

static const unsigned char secret[TRANSPORT_KEY_BYTES] = "the key of two PEs is 32 bytes";

static gshmem_status_t key(void *context, int pe, unsigned char out[TRANSPORT_KEY_BYTES])
{
    (void)context;
    MUST(pe >= 0 && pe < PES && pe != ME);
    memcpy(out, secret, sizeof secret);
    return GSHMEM_OK;
}

static const struct transport_config config = {
    .size = sizeof config,
    .fail = complain,
    .fail_handled = complain,
    .info = be_silent,
    .pe = ME,
    .n_pes = PES,
    .one_machine = 1,
    .segments = 2,
    .segment = {{.base = (char *)real.first, .bytes = FIRST},
                {.base = (char *)real.second, .bytes = SECOND}},
    .find = find,
    .key = key,
    .apply = update,
    .lost = lose,
    .refused = be_refused,
    .notified = be_told,
    .received = receive,
};

/* ---- The model ---- */

struct expected {
    struct response_frame answer;
    const unsigned char *data; /* a get's, in the model's memory, or a batch's, gathered */
    int updates;               /* of the model's memory, before it */
    bool in_parts;             /* the data of a batch, which comes in parts of any size */
    unsigned each; /* bytes of what each record brings, where each has a number of its own */
    unsigned char copy[MODEL_MOST];
};
static unsigned char gathered[BATCH_ELEMENTS_MOST * BATCH_ELEMENT_MOST]; /* by all batches */

static struct {
    bool known;   /* it has said a hello that is right */
    bool refused;
    bool goodbye;
    uint64_t number;
    int updates;
    int tellings;
    bool given_up; /* the end of the stream is no loss then */
    uint64_t notes;
    size_t answers;
    size_t gathered; /* bytes */
    bool begun;      /* a batch of gets was answered in part, and has no number yet */
} said;
static struct expected expected[4096 / REQUEST_BYTES + 1];

static unsigned char *within(unsigned segment, uint64_t offset, uint64_t bytes, uint64_t align)
{
    if (segment > 1 || offset > segments[segment].bytes ||
        bytes > segments[segment].bytes - offset || (segments[segment].at + offset) % align)
        return NULL;
    return (unsigned char *)&model + segments[segment].at + offset;
}

static void expect(enum response_kind kind, uint64_t value, const unsigned char *data)
{
    struct expected *e = &expected[said.answers++];

    e->answer = (struct response_frame){kind, said.number, value};
    e->data = data;
    e->updates = said.updates;
    e->in_parts = false;
    e->each = 0;
    if (kind == RESPONSE_DATA && value <= MODEL_MOST)
        memcpy(e->copy, data, value);
}

/* Of a put that never was complete any part may have arrived, in its place. */
static size_t model_put(const struct request_frame *f, const uint8_t *data, size_t have)
{
    unsigned char *to = within(f->segment, f->offset, f->bytes, 1);
    unsigned char *signal = f->signal_op ? within(f->signal_segment, f->a, 8, 8) : NULL;
    uint64_t word;

    if (!to || f->signal_op > GSHMEM_SIGNAL_ADD || (f->signal_op && !signal)) {
        said.refused = true;
        return 0;
    }
    said.updates++;
    if (have < f->bytes) {
        const unsigned char *there = (unsigned char *)&real + (to - (unsigned char *)&model);
        for (size_t i = 0; i < have; i++)
            to[i] = there[i] == data[i] ? data[i] : to[i];
        return have;
    }
    memcpy(to, data, f->bytes);
    if (signal) {
        memcpy(&word, signal, 8);
        word = f->signal_op == GSHMEM_SIGNAL_SET ? f->b : word + f->b;
        memcpy(signal, &word, 8);
    }
    said.number++;
    return f->bytes;
}

static void model_atomic(const struct request_frame *f)
{
    size_t bytes = atomic_type_bytes(f->type);
    unsigned char *at = bytes ? within(f->segment, f->offset, bytes, bytes) : NULL;

    if (!at || f->amo > GSHMEM_AMO_XOR) {
        said.refused = true;
        return;
    }
    said.number++;
    said.updates++;
    expect(RESPONSE_VALUE, update(NULL, (enum gshmem_amo)f->amo, f->type, at, f->a, f->b), NULL);
}

/* One element of a batch; false: there is none such. */
static bool model_element(const struct request_frame *f, const uint8_t *record)
{
    unsigned char *at = within(f->segment, f->offset + frame_get32(record) * f->b, f->b, 1);
    uint64_t operand = 0, compare = 0, old = 0;

    if (!at)
        return false;
    if (f->signal_segment == TRANSPORT_GET) {
        memcpy(gathered + said.gathered, at, f->b);
        said.gathered += f->b;
    } else if (f->signal_segment == TRANSPORT_PUT) {
        memcpy(at, record + 4, f->b);
    } else if (f->signal_op == 2) {
        memcpy(&operand, record + 4, f->b);
        if (f->amo == GSHMEM_AMO_COMPARE_SWAP)
            memcpy(&compare, record + 4 + f->b, f->b);
        if (f->amo == GSHMEM_AMO_ADD && !atomic_type_is_real(f->type) && f->b == 8) {
            memcpy(&old, at, 8);
            operand += old;
            memcpy(at, &operand, 8);
        } else {
            old = update(NULL, (enum gshmem_amo)f->amo, f->type, at, operand, compare);
        }
        memcpy(gathered + said.gathered, &old, 8);
        said.gathered += 8;
    } else {
        memcpy(&operand, record + 4, f->b);
        memcpy(&old, at, f->b);
        old += operand;
        if (f->amo == GSHMEM_AMO_ADD && !atomic_type_is_real(f->type))
            memcpy(at, &old, f->b);
        else
            update(NULL, (enum gshmem_amo)f->amo, f->type, at, operand, 0);
    }
    return true;
}

/* Each whole record that has come is carried out, up to one that is wrong. */
static size_t model_batch(const struct request_frame *f, const uint8_t *data, size_t have)
{
    const bool gets = f->signal_segment == TRANSPORT_GET;
    const bool updates = f->signal_segment == TRANSPORT_ATOMIC;
    const bool fetches = f->signal_op == 2;
    const size_t from = said.gathered,
                 record = 4 + (gets ? 0 : f->b) +
                          (updates && fetches && f->amo == GSHMEM_AMO_COMPARE_SWAP ? f->b : 0);
    const unsigned each = gets ? (unsigned)f->b : 8;
    uint64_t n = 0;

    said.refused = f->signal_segment > TRANSPORT_ATOMIC || f->signal_op > 2 || (f->signal_op == 1 && gets) ||
                   (fetches && !gets && !updates) || f->a < 1 || f->a > 4096 ||
                   !(f->b == 1 || f->b == 2 || f->b == 4 || f->b == 8 || f->b == 16 || f->b == 32 || f->b == 64) ||
                   f->bytes != f->a * record ||
                   !within(f->segment, f->offset, 0, updates ? f->b : 1) ||
                   (updates && (f->amo > GSHMEM_AMO_XOR || atomic_type_bytes(f->type) != f->b));
    if (said.refused)
        return 0;
    said.updates++;
    while (n < f->a && (n + 1) * record <= have && model_element(f, data + n * record))
        n++;
    said.refused = n < f->a && (n + 1) * record <= have;
    const bool whole = n == f->a;
    if (fetches && n) {
        said.number++;
        expect(RESPONSE_FETCHED, n * each, gathered + from);
        expected[said.answers - 1].in_parts = true;
        expected[said.answers - 1].each = each;
        said.number += n - 1;
    } else if (gets && n && !fetches) {
        said.number++;
        expect(RESPONSE_DATA, n * f->b, gathered + from);
        expected[said.answers - 1].in_parts = true;
        said.number -= !whole;
        said.begun = !whole;
    } else {
        said.number += !whole || fetches ? 0 : f->signal_op ? f->a : 1;
    }
    return have < f->bytes ? have : f->bytes;
}

static void model_get(const struct request_frame *f)
{
    unsigned char *from = within(f->segment, f->offset, f->bytes, 1);

    if (!from) {
        said.refused = true;
        return;
    }
    said.number++;
    expect(RESPONSE_DATA, f->bytes, from);
}

/* Any number that is drawn will do. */
static bool is_right_hello(const uint8_t *data)
{
    struct hello right = {FRAME_VERSION, frame_get32(data + 12), ME, PES, {0}};
    unsigned char bytes[HELLO_BYTES];

    memcpy(right.nonce, data + 24, NONCE_BYTES);
    hello_encode(bytes, &right);
    return right.from < PES && right.from != ME && memcmp(bytes, data, HELLO_BYTES) == 0;
}

/* After the transport has been through the same bytes. */
static void model_stream(const uint8_t *data, size_t bytes)
{
    struct request_frame f;

    while (!said.refused && bytes >= REQUEST_BYTES) {
        if (!request_decode(data, &f) || said.goodbye) {
            said.refused = true;
            return;
        }
        data += REQUEST_BYTES;
        bytes -= REQUEST_BYTES;
        if (f.kind == FRAME_PUT) {
            size_t taken = model_put(&f, data, bytes);
            if (taken < f.bytes)
                return;
            data += taken;
            bytes -= taken;
        } else if (f.kind == FRAME_BATCH) {
            size_t taken = model_batch(&f, data, bytes);
            if (taken < f.bytes || said.refused)
                return;
            data += taken;
            bytes -= taken;
        } else if (f.kind == FRAME_GET) {
            model_get(&f);
        } else if (f.kind == FRAME_ATOMIC) {
            model_atomic(&f);
        } else if (f.kind == FRAME_ACK) {
            said.refused = f.offset != 0; /* nothing was said that could be */
        } else if (f.kind == FRAME_TRACE) {
            /* it changes nothing, but in a trace */
        } else if (f.kind == FRAME_FAILED) {
            said.refused = f.offset >= PES;
            said.tellings += !said.refused;
            said.given_up |= f.offset == ME;
        } else if (f.kind == FRAME_MESSAGE) {
            said.refused = f.bytes > TRANSPORT_NOTE_MAX;
            if (said.refused || bytes < f.bytes)
                return;
            said.notes += f.bytes + 1;
            data += f.bytes;
            bytes -= f.bytes;
        } else {
            said.goodbye = true;
        }
    }
}

/* ---- The stream ---- */

static unsigned char *answers;
static size_t answer_bytes, answer_room;

static bool listen_to_answers(int fd)
{
    size_t before = answer_bytes;
    ssize_t n;

    do {
        if (answer_room - answer_bytes < 65536) {
            answer_room += 1 << 20;
            answers = realloc(answers, answer_room);
            MUST(answers);
        }
        n = recv(fd, answers + answer_bytes, answer_room - answer_bytes, MSG_DONTWAIT);
        answer_bytes += n > 0 ? (size_t)n : 0;
    } while (n > 0);
    return answer_bytes > before;
}

static int progress(struct transport *t)
{
    int events = 0;

    MUST(transport_tcp.progress(t, &events) == GSHMEM_OK);
    return events;
}

static void speak(struct transport *t, int fd, const uint8_t *data, size_t bytes, size_t at_a_time,
                  bool listen)
{
    while (bytes) {
        size_t part = at_a_time && at_a_time < bytes ? at_a_time : bytes;
        ssize_t n = send(fd, data, part, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN)
            break; /* it was ended */
        if (n < 0 || listen)
            listen_to_answers(fd);
        data += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
        progress(t);
    }
    while (progress(t) + listen_to_answers(fd) > 0)
        ;
    for (int quiet = 0; quiet < 400 && transport_tcp.busy(t); quiet++)
        progress(t); /* then come answers that nobody waits for */
    listen_to_answers(fd);
}

/* All that was answered, against the model; of a stream that was refused a part may be missing. */
static void check_answers(void)
{
    struct response_frame a;
    size_t at = 0, n = 0, come = 0; /* come: of data in parts */
    uint64_t number = 0;

    while (answer_bytes - at >= RESPONSE_BYTES) {
        MUST(response_decode(answers + at, &a) && a.number >= number &&
             a.number <= said.number + said.begun);
        number = a.number;
        at += RESPONSE_BYTES;
        if (a.kind == RESPONSE_DONE) {
            MUST(n == said.answers || a.number < expected[n].answer.number);
            continue;
        }
        MUST(n < said.answers);
        const struct expected *e = &expected[n++];
        MUST(a.kind == e->answer.kind &&
             a.number == e->answer.number + (e->each ? come / e->each : 0));
        MUST(!e->each || a.value % e->each == 0);
        if (e->each && a.value) /* it answers so many requests */
            number += a.value / e->each - 1;
        if (e->in_parts) {
            size_t have = answer_bytes - at < a.value ? answer_bytes - at : a.value;
            MUST(a.value && come + a.value <= e->answer.value);
            MUST(memcmp(answers + at, e->data + come, have) == 0);
            at += have;
            MUST(have == a.value || said.refused);
            come += a.value;
            n -= come < e->answer.value;
            come = come < e->answer.value ? come : 0;
            continue;
        }
        MUST(a.value == e->answer.value);
        if (a.kind == RESPONSE_VALUE)
            continue;
        size_t have = answer_bytes - at < a.value ? answer_bytes - at : a.value;
        if (a.value <= MODEL_MOST)
            MUST(memcmp(answers + at, e->copy, have) == 0);
        else if (e->updates == said.updates) /* else a later put may have been faster */
            MUST(memcmp(answers + at, e->data, have) == 0);
        at += have;
        MUST(have == a.value || said.refused);
    }
    if (!said.refused)
        MUST(at == answer_bytes && n == said.answers && number == said.number + said.begun);
}

/* The opener's part, with a proof that differs by so many bytes from the right one; the last of it is
 * in order only if all of `wrong` came and is zero. Gives how much of `wrong` was used. */
static size_t greet(struct transport *t, int fd, const uint8_t *hello, const uint8_t *wrong,
                    size_t wrong_bytes, size_t at_a_time)
{
    static const uint8_t none[PROOF_BYTES];
    unsigned char proof[PROOF_BYTES];
    size_t bytes = wrong_bytes < PROOF_BYTES ? wrong_bytes : PROOF_BYTES;

    speak(t, fd, hello, HELLO_BYTES, at_a_time, true);
    MUST(answer_bytes == 0);
    said.refused = !is_right_hello(hello);
    if (said.refused) {
        MUST(answer_bytes == 0);
        return 0;
    }
    greeting_prove_hello(secret, hello, proof);
    speak(t, fd, proof, PROOF_BYTES, at_a_time, true);
    MUST(answer_bytes == CHALLENGE_BYTES);
    greeting_prove(secret, GREETING_ACCEPTOR, hello, answers, proof);
    MUST(memcmp(proof, answers + NONCE_BYTES, PROOF_BYTES) == 0);
    greeting_prove(secret, GREETING_OPENER, hello, answers, proof);
    for (size_t i = 0; i < bytes; i++)
        proof[i] ^= wrong[i];
    speak(t, fd, proof, bytes, at_a_time, true);
    said.known = bytes == PROOF_BYTES && memcmp(wrong, none, PROOF_BYTES) == 0;
    MUST(answer_bytes == CHALLENGE_BYTES + (said.known ? RESPONSE_BYTES : 0));
    answer_bytes = 0;
    said.refused = bytes == PROOF_BYTES && !said.known;
    return bytes;
}

/* As greet, for who is none of the job: what it says is the input's. */
static size_t greet_as_stranger(struct transport *t, int fd, const uint8_t *data, size_t bytes,
                                size_t at_a_time)
{
    if (bytes < HELLO_BYTES) {
        speak(t, fd, data, bytes, at_a_time, true);
        return bytes;
    }
    return HELLO_BYTES + greet(t, fd, data, data + HELLO_BYTES, bytes - HELLO_BYTES, at_a_time);
}

/* The lowest that is free: the same before and after, if none was left open. */
static int next_descriptor(void)
{
    int fd = dup(STDERR_FILENO);

    close(fd);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const int little = 8192;
    static bool loaded;
    static const uint8_t right[PROOF_BYTES];
    unsigned char hello[HELLO_BYTES];
    struct transport *t;
    int pair[2];

    if (bytes < 2)
        return 0;
    if (!loaded) {
        MUST(settings_load() == GSHMEM_OK);
        log_set_level(LOG_NONE);
        loaded = true;
    }
    int free_before = next_descriptor();
    fill(&real);
    fill(&model);
    memset(&said, 0, sizeof said);
    complaints = losses = tellings = 0;
    notes = 0;
    answer_bytes = 0;

    MUST(transport_tcp.open(&config, &t) == GSHMEM_OK);
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
    MUST(setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &little, sizeof little) == 0);
    struct tcp *tcp = (struct tcp *)t;
    target_accept(tcp, pair[1]);
    hello_encode(hello, &(struct hello){FRAME_VERSION, PEER, ME, PES, {7}});
    size_t used = 2;
    if (data[0] & 1)
        used += greet_as_stranger(t, pair[0], data + 2, bytes - 2, data[1]);
    else
        greet(t, pair[0], hello, right, sizeof right, 0);
    if (said.known) {
        speak(t, pair[0], data + used, bytes - used, data[1], !(data[0] & 2));
        model_stream(data + used, bytes - used);
    }

    MUST(memcmp(&real, &model, sizeof real) == 0);
    check_answers();
    MUST(tellings == said.tellings);
    MUST(notes == said.notes);
    MUST(said.refused == !tcp->targets.first);
    MUST(complaints == 0);
    MUST(losses == (said.known && said.refused));
    shutdown(pair[0], SHUT_RDWR);
    progress(t);
    MUST(!tcp->targets.first && tcp->targets.admission.strangers == 0);
    MUST(losses == (said.known && (said.refused || (!said.goodbye && !said.given_up))));
    close(pair[0]);
    transport_tcp.close(t);
    MUST(next_descriptor() == free_before);
    return 0;
}

/* ---- Seeds ---- */

static size_t request(uint8_t *at, struct request_frame f, const char *text)
{
    request_encode(at, &f);
    if (f.kind == FRAME_BATCH) { /* elements 0, 3, 6 … */
        const size_t record = frame_record_bytes(&f);
        memset(at + REQUEST_BYTES, 7, f.a * record);
        for (size_t i = 0; i < f.a; i++)
            batch_put_number((char *)at + REQUEST_BYTES + i * record, (uint32_t)(3 * i));
        return REQUEST_BYTES + f.a * record;
    }
    if (f.kind != FRAME_PUT)
        return REQUEST_BYTES;
    for (size_t i = 0; i < f.bytes; i++)
        at[REQUEST_BYTES + i] = (uint8_t)text[i % strlen(text)];
    return REQUEST_BYTES + f.bytes;
}

#define REQUEST(text, ...) n += request(data + n, (struct request_frame){__VA_ARGS__}, text)

/* A little of everything, all of it right. */
static size_t right_requests(uint8_t *data)
{
    size_t n = 0;

    REQUEST("eight by", .kind = FRAME_PUT, .offset = 24, .bytes = 8);
    REQUEST("a long one. ", .kind = FRAME_PUT, .offset = 11000, .bytes = 1000,
            .signal_op = GSHMEM_SIGNAL_SET, .signal_segment = 1, .a = 8, .b = 77);
    REQUEST("", .kind = FRAME_GET, .offset = 10900, .bytes = 1100);
    REQUEST("", .kind = FRAME_ATOMIC, .amo = GSHMEM_AMO_ADD, .type = GSHMEM_TYPE_UINT64,
            .segment = 1, .offset = 56, .a = 5);
    REQUEST("", .kind = FRAME_GET, .offset = 3, .bytes = 11997);
    REQUEST("", .kind = FRAME_FAILED, .offset = PES - 1);
    REQUEST("a note", .kind = FRAME_MESSAGE, .bytes = 6);
    REQUEST("", .kind = FRAME_MESSAGE);
    REQUEST("all of it", .kind = FRAME_PUT, .segment = 1, .bytes = 64);
    REQUEST("", .kind = FRAME_PUT, .offset = 12000, .signal_op = GSHMEM_SIGNAL_ADD, .a = 16, .b = 1);
    REQUEST("", .kind = FRAME_ATOMIC, .amo = GSHMEM_AMO_COMPARE_SWAP, .type = GSHMEM_TYPE_FLOAT,
            .offset = 11996, .a = 9, .b = 8);
    REQUEST("", .kind = FRAME_BATCH, .signal_segment = TRANSPORT_GET, .offset = 16, .a = 20, .b = 8,
            .bytes = 80);
    REQUEST("", .kind = FRAME_BATCH, .signal_segment = TRANSPORT_PUT, .offset = 33, .a = 7, .b = 2,
            .bytes = 42);
    REQUEST("", .kind = FRAME_BATCH, .signal_op = 1, .signal_segment = TRANSPORT_PUT, .a = 3, .b = 8,
            .bytes = 36);
    REQUEST("", .kind = FRAME_BATCH, .signal_segment = TRANSPORT_ATOMIC, .amo = GSHMEM_AMO_ADD,
            .type = GSHMEM_TYPE_INT32, .a = 5, .b = 4, .bytes = 40);
    REQUEST("", .kind = FRAME_BATCH, .signal_segment = TRANSPORT_ATOMIC, .amo = GSHMEM_AMO_ADD,
            .type = GSHMEM_TYPE_DOUBLE, .segment = 1, .a = 3, .b = 8, .bytes = 36);
    REQUEST("", .kind = FRAME_BATCH, .signal_op = 2, .signal_segment = TRANSPORT_GET, .offset = 8, .a = 30,
            .b = 8, .bytes = 120);
    REQUEST("", .kind = FRAME_BATCH, .signal_op = 2, .signal_segment = TRANSPORT_ATOMIC, .amo = GSHMEM_AMO_ADD,
            .type = GSHMEM_TYPE_INT64, .a = 5, .b = 8, .bytes = 60);
    REQUEST("", .kind = FRAME_BATCH, .signal_op = 2, .signal_segment = TRANSPORT_ATOMIC,
            .amo = GSHMEM_AMO_COMPARE_SWAP, .type = GSHMEM_TYPE_UINT32, .a = 6, .b = 4, .bytes = 72);
    REQUEST("", .kind = FRAME_BATCH, .signal_op = 2, .signal_segment = TRANSPORT_ATOMIC, .amo = GSHMEM_AMO_SWAP,
            .type = GSHMEM_TYPE_DOUBLE, .a = 2, .b = 8, .bytes = 24);
    for (uint64_t i = 0; i < 24; i++) /* more than has room at a time */
        REQUEST("", .kind = FRAME_GET, .offset = i, .bytes = 4096);
    REQUEST("", .kind = FRAME_GET, .segment = 1, .offset = 64, .bytes = 0);
    return n;
}

/* The number-th that is wrong by a little, after one that is right; 0: there are no more. */
static size_t wrong_request(unsigned number, uint8_t *data)
{
    static const struct request_frame wrong[] = {
        {.kind = FRAME_PUT, .segment = 1, .offset = 64, .bytes = 1},
        {.kind = FRAME_PUT, .segment = 2, .bytes = 1},
        {.kind = FRAME_PUT, .offset = (uint64_t)-8, .bytes = 16},
        {.kind = FRAME_PUT, .bytes = 8, .signal_op = GSHMEM_SIGNAL_ADD + 1},
        {.kind = FRAME_PUT, .bytes = 8, .signal_op = GSHMEM_SIGNAL_SET, .a = 12},
        {.kind = FRAME_PUT, .bytes = 8, .signal_op = GSHMEM_SIGNAL_SET, .a = 12000},
        {.kind = FRAME_GET, .offset = 1, .bytes = 12000},
        {.kind = FRAME_GET, .segment = 1, .offset = 65},
        {.kind = FRAME_ATOMIC, .type = GSHMEM_TYPE_UINT64, .offset = 11996},
        {.kind = FRAME_ATOMIC, .type = GSHMEM_TYPE_UINT64, .offset = 12},
        {.kind = FRAME_ATOMIC, .type = GSHMEM_TYPE_INT32, .offset = 2},
        {.kind = FRAME_ATOMIC, .type = GSHMEM_TYPE_INT32, .amo = GSHMEM_AMO_XOR + 1},
        {.kind = FRAME_FAILED, .offset = PES},
        {.kind = FRAME_FAILED, .offset = (uint64_t)1 << 32},
        {.kind = FRAME_MESSAGE, .bytes = TRANSPORT_NOTE_MAX + 1},
        {.kind = FRAME_BATCH + 1},
        {.kind = FRAME_BATCH, .signal_segment = TRANSPORT_GET, .signal_op = 1, .a = 1, .b = 8, .bytes = 4},
        {.kind = FRAME_BATCH, .signal_segment = TRANSPORT_PUT, .signal_op = 2, .a = 1, .b = 8, .bytes = 12},
        {.kind = FRAME_BATCH, .signal_segment = TRANSPORT_GET, .signal_op = 3, .a = 1, .b = 8, .bytes = 4},
        {.kind = FRAME_BATCH, .signal_segment = TRANSPORT_ATOMIC, .signal_op = 3, .type = GSHMEM_TYPE_UINT64,
         .amo = GSHMEM_AMO_ADD, .a = 1, .b = 8, .bytes = 12},
        {.kind = FRAME_BATCH, .signal_segment = TRANSPORT_ATOMIC, .signal_op = 2, .type = GSHMEM_TYPE_UINT64,
         .amo = GSHMEM_AMO_COMPARE_SWAP, .a = 1, .b = 8, .bytes = 12},
        {.kind = FRAME_BATCH, .signal_segment = TRANSPORT_ATOMIC, .signal_op = 1, .type = GSHMEM_TYPE_UINT64,
         .amo = GSHMEM_AMO_COMPARE_SWAP, .a = 1, .b = 8, .bytes = 20},
        {.kind = FRAME_BATCH, .signal_segment = TRANSPORT_ATOMIC, .signal_op = 2, .type = GSHMEM_TYPE_UINT64,
         .segment = 1, .offset = 56, .amo = GSHMEM_AMO_ADD, .a = 2, .b = 8, .bytes = 24},
        {.kind = FRAME_BATCH, .signal_segment = TRANSPORT_GET, .signal_op = 2, .segment = 1, .a = 4, .b = 8,
         .bytes = 16},
        {.kind = FRAME_BATCH, .signal_segment = 3, .a = 1, .b = 8, .bytes = 12},
        {.kind = FRAME_BATCH, .signal_segment = TRANSPORT_GET, .a = 0, .b = 8},
        {.kind = FRAME_BATCH, .signal_segment = TRANSPORT_GET, .a = 4097, .b = 8, .bytes = 16388},
        {.kind = FRAME_BATCH, .signal_segment = TRANSPORT_GET, .a = 1, .b = 3, .bytes = 4},
        {.kind = FRAME_BATCH, .signal_segment = TRANSPORT_GET, .a = 1, .b = 32, .bytes = 4},
        {.kind = FRAME_BATCH, .signal_segment = TRANSPORT_GET, .a = 2, .b = 8, .bytes = 12},
        {.kind = FRAME_BATCH, .signal_segment = TRANSPORT_GET, .offset = 12001, .a = 1, .b = 8, .bytes = 4},
        {.kind = FRAME_BATCH, .signal_segment = TRANSPORT_GET, .offset = 11993, .a = 3, .b = 8, .bytes = 12},
        {.kind = FRAME_BATCH, .signal_segment = TRANSPORT_PUT, .segment = 2, .a = 1, .b = 8, .bytes = 12},
        {.kind = FRAME_BATCH, .signal_segment = TRANSPORT_PUT, .segment = 1, .a = 4, .b = 8, .bytes = 48},
        {.kind = FRAME_BATCH, .signal_segment = TRANSPORT_ATOMIC, .type = GSHMEM_TYPE_INT32, .offset = 2,
         .amo = GSHMEM_AMO_ADD, .a = 1, .b = 4, .bytes = 8},
        {.kind = FRAME_BATCH, .signal_segment = TRANSPORT_ATOMIC, .type = GSHMEM_TYPE_INT32,
         .amo = GSHMEM_AMO_ADD, .a = 1, .b = 8, .bytes = 12},
        {.kind = FRAME_BATCH, .signal_segment = TRANSPORT_ATOMIC, .type = GSHMEM_TYPE_INT32,
         .amo = GSHMEM_AMO_XOR + 1, .a = 1, .b = 4, .bytes = 8},
    };
    size_t n = 0;

    if (number > sizeof wrong / sizeof wrong[0])
        return 0;
    REQUEST("eight by", .kind = FRAME_PUT, .offset = 24, .bytes = 8);
    if (number == 0)
        REQUEST("", .kind = FRAME_GOODBYE);
    const struct request_frame *f = number ? &wrong[number - 1] : &(struct request_frame){.kind = FRAME_GET};
    request_encode(data + n, f);
    memset(data + n + REQUEST_BYTES, 'x', 16);
    return n + REQUEST_BYTES + 16;
}

size_t fuzz_seed(unsigned number, uint8_t *data, size_t capacity)
{
    static const uint8_t at_a_time[] = {0, 17, 39, 240};
    size_t n = 2;

    if (capacity < 4096)
        return 0;
    data[0] = (uint8_t)(number < 16 ? number / 4 : 0);
    data[1] = at_a_time[number % 4];
    if (data[0] & 1) {
        hello_encode(data + n, &(struct hello){FRAME_VERSION, PEER, ME, PES, {9}});
        memset(data + n + HELLO_BYTES, 0, PROOF_BYTES);
        n += HELLO_BYTES + PROOF_BYTES;
    }
    if (number >= 16) {
        size_t bytes = wrong_request(number - 16, data + n);
        return bytes ? n + bytes : 0;
    }
    n += right_requests(data + n);
    REQUEST("", .kind = FRAME_ACK);
    REQUEST("", .kind = FRAME_TRACE, .offset = 7);
    REQUEST("", .kind = FRAME_GOODBYE);
    return n;
}
