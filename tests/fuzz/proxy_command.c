/* Fuzz target: what kernels may write into a channel. An input is a list of steps: slots written, room
 * in the transport, and the order in which it ends what it has. Whatever comes, what reaches the
 * transport is inside this PE's memory, and every command but half of a pair is done in the end. */
#include "../proxy/fake.h"
#include "fuzz.h"

enum { STEP_BYTES = 34 };

/* A slot of the input. Addresses are moved into memory often enough to get further. */
static struct gshmem_slot slot_of(const uint8_t *at, unsigned help)
{
    const uint64_t address = (UINT64_C(1) << GSHMEM_PACKED_ADDRESS_BITS) - 1;
    struct gshmem_slot slot;

    memcpy(slot.word, at, sizeof slot.word);
    if ((slot.word[0] & 31) == GSHMEM_COMMAND_PUT_SIGNAL && help == 3) {
        for (int i = 1; i < 3; i++)
            slot.word[i] = (slot.word[i] & ~address) |
                           ((uintptr_t)fake_heap + slot.word[i] % (FAKE_BYTES + 16));
        slot.word[3] = (slot.word[3] & ~(address >> 3)) |
                       ((uintptr_t)fake_heap + slot.word[3] % (FAKE_BYTES + 16)) >> 3;
        return slot;
    }
    if (help & 1)
        slot.word[1] = (uintptr_t)fake_heap + slot.word[1] % (FAKE_BYTES + 16);
    if (help & 2)
        slot.word[2] = (uintptr_t)fake_heap + slot.word[2] % (FAKE_BYTES + 16);
    return slot;
}

static void step(const uint8_t *at)
{
    if (gshmem_channel_has_room(&fake_device.ring, fake_ticket + 1)) {
        struct gshmem_slot slot = slot_of(at + 2, at[0] & 3);
        gshmem_channel_write(&fake_device.ring, gshmem_channel_take(&fake_device.ring, 1), slot, 1);
    }
    fake_room = at[0] >> 2 & 3;
    if (at[0] & 16)
        channel_take(&fake_channel);
    if (at[0] & 32 && fake_requests)
        fake_end(at[1] % fake_requests, at[0] & 64 ? GSHMEM_ERR_PEER_DEAD : GSHMEM_OK);
    CHECK(fake_done_position() <= fake_tail && fake_tail <= fake_ticket);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct gshmem_slot last = gshmem_command_encode(&(struct gshmem_command){.kind = 0});

    log_set_level(LOG_NONE);
    fake_begin();
    for (size_t at = 0; at + STEP_BYTES <= bytes; at += STEP_BYTES)
        step(data + at);
    fake_room = 1 << 30;
    for (int i = 0; i < 3 * FAKE_SLOTS; i++) {
        channel_take(&fake_channel);
        while (fake_requests)
            fake_end(0, GSHMEM_OK);
        if (i == FAKE_SLOTS) /* the second half of a pair that the input broke off */
            gshmem_channel_write(&fake_device.ring, gshmem_channel_take(&fake_device.ring, 1), last, 1);
    }
    CHECK_EQ(fake_done_position(), fake_ticket);
    return 0;
}

size_t fuzz_seed(unsigned number, uint8_t *data, size_t capacity)
{
    const struct gshmem_command command[] = {
        {.kind = GSHMEM_COMMAND_PUT, .pe = 1, .address = 64, .size = 100, .more = 1},
        {.kind = GSHMEM_COMMAND_SIGNAL, .pe = 1, .address = 8, .local = 1, .amo = GSHMEM_SIGNAL_ADD},
        {.kind = GSHMEM_COMMAND_GET, .pe = 2, .address = 64, .size = 100},
        {.kind = GSHMEM_COMMAND_VALUE, .type = 8, .address = 64, .local = 5, .raises = 1},
        {.kind = GSHMEM_COMMAND_FETCH, .type = 4, .address = 64, .responds = 1, .tag = 3},
        {.kind = GSHMEM_COMMAND_ATOMIC, .type = GSHMEM_TYPE_INT32, .amo = GSHMEM_AMO_ADD, .more = 1},
        {.kind = GSHMEM_COMMAND_RESULT, .local = 128},
        {.kind = GSHMEM_COMMAND_RAISE, .type = GSHMEM_ERR_TIMEOUT, .responds = 1},
        {.kind = GSHMEM_COMMAND_REFUSE, .type = GSHMEM_COMMAND_PUT, .size = 99},
        {.kind = GSHMEM_COMMAND_FENCE, .address = 7, .local = 8, .size = 9},
        {.kind = GSHMEM_COMMAND_REFUSE_WAIT, .type = 8, .amo = GSHMEM_WAIT_ANY, .local = 9},
        {.kind = GSHMEM_COMMAND_FLUSH, .responds = 1, .tag = 2},
        {.kind = GSHMEM_COMMAND_SESSION, .type = 1},
        {.kind = GSHMEM_COMMAND_SOURCES, .responds = 1, .tag = 4},
        {.kind = GSHMEM_COMMAND_PUT_SIGNAL, .pe = 1, .amo = GSHMEM_SIGNAL_SET,
         .address = UINT64_C(100) << GSHMEM_PACKED_ADDRESS_BITS},
    };
    const unsigned n = sizeof command / sizeof command[0];

    if (number >= n || capacity < n * STEP_BYTES)
        return 0;
    for (unsigned i = 0; i < n; i++) {
        const struct gshmem_slot slot = gshmem_command_encode(&command[(number + i) % n]);
        data[i * STEP_BYTES] = 3 | 12 | 16 | 32;
        data[i * STEP_BYTES + 1] = (uint8_t)i;
        memcpy(data + i * STEP_BYTES + 2, slot.word, sizeof slot.word);
    }
    return n * STEP_BYTES;
}
