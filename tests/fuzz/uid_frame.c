/* Fuzz target: the frames of a job that was started by a unique id. An input is a byte for the
 * number of PEs, a header, and a payload. What passes its checks can be used without looking
 * further. */
#include <stdlib.h>
#include <string.h>

#include "bootstrap/uid/frame.h"
#include "fuzz.h"

static void use_round(const uint8_t *data, size_t bytes, int n_pes)
{
    static unsigned char blob[256][BOOTSTRAP_BLOB_MAX], again[4 + 256 * (2 + BOOTSTRAP_BLOB_MAX)];
    uint16_t length[256];
    uint32_t offset[256];

    if (!uid_round_decode(data, bytes, 1, offset, n_pes))
        return;
    for (int pe = 0; pe < n_pes; pe++) {
        memcpy(&length[pe], data + offset[pe], 2);
        memcpy(blob[pe], data + offset[pe] + 2, length[pe]);
    }
    /* What is decoded is what the encoder makes, byte for byte. */
    if (uid_round_bytes(length, n_pes) != bytes)
        abort();
    uid_round_encode(again, 1, length, blob, n_pes);
    if (memcmp(again, data, bytes) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct uid_header h;
    struct uid_join join;
    struct uid_abort stop;

    if (bytes < 1 + sizeof h)
        return 0;
    int n_pes = 1 + data[0];
    memcpy(&h, data + 1, sizeof h);
    data += 1 + sizeof h;
    bytes -= 1 + sizeof h;
    use_round(data, bytes, n_pes);
    if (!uid_header_valid(&h, n_pes))
        return 0;
    if (h.bytes > 4u + 256 * (2 + BOOTSTRAP_BLOB_MAX))
        abort();
    if (h.type == UID_JOIN && bytes >= sizeof join) {
        memcpy(&join, data, sizeof join);
        if (uid_join_valid(&join) && strlen(join.machine) >= sizeof join.machine)
            abort();
    }
    if (h.type == UID_ABORT && bytes >= sizeof stop) {
        memcpy(&stop, data, sizeof stop);
        if (uid_abort_valid(&stop) && strlen(stop.text) >= sizeof stop.text)
            abort();
    }
    return 0;
}

static size_t seed(uint8_t *data, int n_pes, uint32_t type, const void *payload, size_t bytes)
{
    struct uid_header h = {type, (uint32_t)bytes};

    data[0] = (uint8_t)(n_pes - 1);
    memcpy(data + 1, &h, sizeof h);
    memcpy(data + 1 + sizeof h, payload, bytes);
    return 1 + sizeof h + bytes;
}

size_t fuzz_seed(unsigned number, uint8_t *data, size_t capacity)
{
    static unsigned char blob[3][BOOTSTRAP_BLOB_MAX] = {"abc", "", "defg"}, payload[1024];
    static const uint16_t length[3] = {3, 0, BOOTSTRAP_BLOB_MAX};
    struct uid_join join = {.version = UID_VERSION, .pe = 1, .n_pes = 3, .machine = "node"};
    struct uid_abort stop = {.status = 8, .pe = 1, .text = "a reason"};

    if (capacity < 1 + sizeof(struct uid_header) + sizeof payload)
        return 0;
    switch (number) {
    case 0:
        uid_round_encode(payload, 1, length, blob, 3);
        return seed(data, 3, UID_ROUND, payload, uid_round_bytes(length, 3));
    case 1:
        return seed(data, 3, UID_JOIN, &join, sizeof join);
    case 2:
        return seed(data, 3, UID_ABORT, &stop, sizeof stop);
    case 3:
        return seed(data, 2, UID_NODES, "\0\0\0\0\1\0\0", 8);
    default:
        return 0;
    }
}
