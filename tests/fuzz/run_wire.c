/* Fuzz target: every decoder of gshmemrun's wire. What one accepts, its encoder makes again, byte
 * for byte, and no other accepts it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/run/wire.h"
#include "fuzz.h"

/* Decodes and encodes again; 0 if it is no such message. */
#define AGAIN(name, type)                                                                          \
    static size_t again_##name(const unsigned char *from, size_t bytes, unsigned char *to)         \
    {                                                                                              \
        struct wire_##name m;                                                                      \
        return wire_decode_##name(from, bytes, &m) ? wire_encode_##name(to, &m) : 0;               \
    }
#define AGAIN_ROUND(name, type)                                                                    \
    static size_t again_##name(const unsigned char *from, size_t bytes, unsigned char *to)         \
    {                                                                                              \
        struct wire_round m;                                                                       \
        return wire_decode_round(from, bytes, type, &m) ? wire_encode_round(to, type, &m) : 0;     \
    }

AGAIN(hello, WIRE_HELLO)
AGAIN(welcome, WIRE_WELCOME)
AGAIN(publish, WIRE_PUBLISH)
AGAIN(absent, WIRE_ABSENT)
AGAIN(fetch, WIRE_FETCH)
AGAIN(blob, WIRE_BLOB)
AGAIN(abort, WIRE_ABORT)
AGAIN_ROUND(fence, WIRE_FENCE)
AGAIN_ROUND(who, WIRE_WHO)
AGAIN_ROUND(released, WIRE_RELEASED)

static size_t again_goodbye(const unsigned char *from, size_t bytes, unsigned char *to)
{
    return wire_decode_goodbye(from, bytes) ? wire_encode_goodbye(to) : 0;
}

typedef size_t again(const unsigned char *from, size_t bytes, unsigned char *to);
static again *const all[] = {again_hello, again_welcome,  again_publish, again_absent,
                             again_fetch, again_blob,     again_abort,   again_fence,
                             again_who,   again_released, again_goodbye};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    unsigned char to[WIRE_MAX];
    int accepted = 0;

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        size_t n = all[i](data, bytes, to);
        if (n == 0)
            continue;
        accepted++;
        if (n != bytes || memcmp(to, data, n) != 0) {
            fprintf(stderr, "message of type %u: %zu bytes became %zu others\n",
                    wire_type_of(data, bytes), bytes, n);
            abort();
        }
    }
    if (accepted > 1)
        abort();
    return 0;
}

size_t fuzz_seed(unsigned number, uint8_t *data, size_t capacity)
{
    static const unsigned char text[BOOTSTRAP_BLOB_MAX] = "some text";

    if (capacity < WIRE_MAX)
        return 0;
    switch (number) {
    case 0:
        return wire_encode_hello(data, &(struct wire_hello){WIRE_VERSION, 3});
    case 1:
        return wire_encode_welcome(data, &(struct wire_welcome){WIRE_VERSION, 4, 2, 1, 99});
    case 2:
        return wire_encode_publish(data, &(struct wire_publish){1, 9, text});
    case 3:
        return wire_encode_publish(data, &(struct wire_publish){1, BOOTSTRAP_BLOB_MAX, text});
    case 4:
        return wire_encode_round(data, WIRE_FENCE, &(struct wire_round){1});
    case 5:
        return wire_encode_round(data, WIRE_WHO, &(struct wire_round){1});
    case 6:
        return wire_encode_round(data, WIRE_RELEASED, &(struct wire_round){1});
    case 7:
        return wire_encode_absent(data, &(struct wire_absent){1, 2, 3});
    case 8:
        return wire_encode_fetch(data, &(struct wire_fetch){1, 2});
    case 9:
        return wire_encode_blob(data, &(struct wire_blob){1, 2, BOOTSTRAP_BLOB_MAX, text});
    case 10:
        return wire_encode_abort(data, &(struct wire_abort){1, 9, (const char *)text});
    case 11:
        return wire_encode_abort(data, &(struct wire_abort){1, WIRE_WHY_MAX, (const char *)text});
    case 12:
        return wire_encode_goodbye(data);
    default:
        return 0;
    }
}
