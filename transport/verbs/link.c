/* A queue pair to one PE: how two find each other over the transport below, and how it ends.
 *
 * Each makes its queue pair when it first wants to talk or hears that the other does, and offers
 * it; with the other's offer it can receive, and says so; with the other's word it sends. If both
 * begin at once the two offers cross, and are the same pair all the same.
 *
 * The first message each way, which asks for nothing, shows whether packets get there at all: NICs of
 * two networks that nothing connects, or a firewall between them, let all before it succeed. Where it
 * fails, nothing has been done for any request yet, and all of them go below. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/settings.h"
#include "transport/verbs/verbs.h"

enum { NOTE_VERSION = 1, NOTE_HEAD = 56, NOTE_OFFER = 1, NOTE_READY, NOTE_NONE };

static const char magic[4] = {'G', 'S', 'H', 'v'};

struct offer {
    uint32_t queue, packet, mtu, reads, segments;
    uint16_t lid;
    bool ethernet;
    union ibv_gid gid;
    uint64_t base[TRANSPORT_SEGMENT_MAX], bytes[TRANSPORT_SEGMENT_MAX];
};

/* ---- Notes: magic 4, version 4, kind 4, then of an offer seven numbers of 4 and the GID ---- */

static void put32(unsigned char *at, uint32_t value)
{
    value = htole32(value);
    memcpy(at, &value, 4);
}

static uint32_t get32(const unsigned char *at)
{
    uint32_t value;

    memcpy(&value, at, 4);
    return le32toh(value);
}

static size_t encode_offer(const struct verbs *v, const struct link *l, unsigned char *note)
{
    const uint32_t number[] = {
        l->qp->qp_num, l->first_packet, (uint32_t)v->nic[0].mtu,        v->nic[0].reads,
        v->nic[0].lid,    v->nic[0].ethernet, (uint32_t)v->config.segments};
    unsigned char *at = note + NOTE_HEAD;

    for (int i = 0; i < 7; i++)
        put32(note + 12 + 4 * i, number[i]);
    memcpy(note + 40, v->nic[0].gid.raw, 16);
    for (int i = 0; i < v->config.segments; i++, at += 16) {
        message_put64(at, (uintptr_t)v->config.segment[i].base);
        message_put64(at + 8, v->config.segment[i].bytes);
    }
    return (size_t)(at - note);
}

static bool decode_offer(const unsigned char *note, size_t bytes, struct offer *o)
{
    if (bytes < NOTE_HEAD)
        return false;
    *o = (struct offer){.queue = get32(note + 12),
                        .packet = get32(note + 16),
                        .mtu = get32(note + 20),
                        .reads = get32(note + 24),
                        .lid = (uint16_t)get32(note + 28),
                        .ethernet = get32(note + 32) == 1,
                        .segments = get32(note + 36)};
    memcpy(o->gid.raw, note + 40, 16);
    if (o->queue >> 24 || o->packet >> 24 || o->mtu < IBV_MTU_256 || o->mtu > IBV_MTU_4096 ||
        o->segments > TRANSPORT_SEGMENT_MAX || bytes != NOTE_HEAD + 16 * (size_t)o->segments)
        return false;
    for (uint32_t i = 0; i < o->segments; i++) {
        o->base[i] = message_get64(note + NOTE_HEAD + 16 * i);
        o->bytes[i] = message_get64(note + NOTE_HEAD + 16 * i + 8);
    }
    return true;
}

static bool say(struct verbs *v, struct link *l, uint32_t kind)
{
    unsigned char note[TRANSPORT_NOTE_MAX] = {0};
    size_t bytes = 12;

    memcpy(note, magic, 4);
    put32(note + 4, NOTE_VERSION);
    put32(note + 8, kind);
    if (kind == NOTE_OFFER)
        bytes = encode_offer(v, l, note);
    /* Any failure but a full queue is the peer's loss, of which the transport below tells. */
    return v->below->ops->say(v->below, l->pe, note, bytes) != TRANSPORT_FULL;
}

void link_say_rest(struct verbs *v, struct link *l)
{
    static const struct {
        unsigned what;
        uint32_t kind;
    } notes[] = {{SAY_NONE, NOTE_NONE}, {SAY_OFFER, NOTE_OFFER}, {SAY_READY, NOTE_READY}};

    for (int i = 0; i < 3 && l->state != LINK_FAILED; i++) {
        if (l->unsaid & notes[i].what && say(v, l, notes[i].kind))
            l->unsaid &= ~notes[i].what;
        else if (l->unsaid & notes[i].what)
            break;
    }
    v->held_back |= l->unsaid != 0;
}

/* ---- The queue pair ---- */

static gshmem_status_t make_queue_pair(struct verbs *v, struct link *l)
{
    struct ibv_qp_init_attr want = {
        .send_cq = v->nic[0].cq,
        .recv_cq = v->nic[0].cq,
        .srq = v->nic[0].srq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = SEND_DEPTH,
                .max_send_sge = 1,
                .max_inline_data = MESSAGE_HEAD + MESSAGE_DATA},
    };
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
                               .pkey_index = v->nic[0].pkey_index,
                               .port_num = (uint8_t)v->nic[0].port,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
    gshmem_status_t status = nic_add_receives(v, &v->nic[0], l->pe);

    if (status)
        return status;
    if (!(l->qp = ibv_create_qp(v->nic[0].pd, &want)))
        return v->config.fail(GSHMEM_ERR_TRANSPORT, "verbs: %s: a queue pair to PE %d: %s",
                              v->nic[0].name, l->pe, strerror(errno));
    if (ibv_modify_qp(l->qp, &init,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        return v->config.fail(GSHMEM_ERR_TRANSPORT, "verbs: %s: preparing a queue pair: %s",
                              v->nic[0].name, strerror(errno));
    return GSHMEM_OK;
}

static bool can_receive(struct verbs *v, struct link *l, const struct offer *o)
{
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = o->mtu < (uint32_t)v->nic[0].mtu ? (enum ibv_mtu)o->mtu : v->nic[0].mtu,
        .dest_qp_num = o->queue,
        .rq_psn = o->packet,
        .max_dest_rd_atomic = (uint8_t)v->nic[0].reads,
        .min_rnr_timer = 12,
        .ah_attr = {.dlid = o->lid,
                    .sl = (uint8_t)v->config.number(SETTING_IB_SL),
                    .port_num = (uint8_t)v->nic[0].port,
                    .is_global = v->nic[0].ethernet || o->lid == 0,
                    .grh = {.dgid = o->gid,
                            .sgid_index = (uint8_t)v->nic[0].gid_index,
                            .traffic_class = (uint8_t)v->config.number(SETTING_IB_TRAFFIC_CLASS),
                            .hop_limit = 64}},
    };

    return ibv_modify_qp(l->qp, &a,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0;
}

static bool can_send(struct verbs *v, struct link *l, const struct offer *o)
{
    uint32_t reads = o->reads < v->nic[0].reads ? o->reads : v->nic[0].reads;
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS,
                            .timeout = (uint8_t)v->config.number(SETTING_IB_TIMEOUT),
                            .retry_cnt = (uint8_t)v->config.number(SETTING_IB_RETRY),
                            .rnr_retry = 6,
                            .sq_psn = l->first_packet,
                            .max_rd_atomic = (uint8_t)reads};

    return ibv_modify_qp(l->qp, &a,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0;
}

/* ---- Offers ---- */

static void say_hello(struct verbs *v, struct link *l)
{
    const struct message hello = {.kind = MESSAGE_HELLO, .from = (uint32_t)v->config.pe};

    l->state = LINK_TRIED;
    issue_message(v, l, &hello);
    issue_batched(v, l);
    v->events++;
}

void link_try(struct verbs *v, struct link *l)
{
    if (l->state != LINK_TRIED || !l->sends_done || !l->greeted)
        return;
    v->config.info("verbs: PE %d is reached by %s", l->pe, v->nic[0].name);
    l->state = LINK_UP;
    v->events++;
}

static void go_below(struct verbs *v, struct link *l, const char *why)
{
    v->config.info("verbs: PE %d is reached by %s: %s", l->pe, v->below->ops->name, why);
    if (l->qp)
        ibv_destroy_qp(l->qp);
    l->qp = NULL;
    l->unsaid &= SAY_NONE;
    l->batched = 0;
    l->state = LINK_BELOW;
    v->events++;
    issue_below(v, l);
}

void link_give_up(struct verbs *v, struct link *l, const char *why)
{
    l->unsaid |= SAY_NONE;
    link_say_rest(v, l);
    go_below(v, l, why);
}

gshmem_status_t link_open(struct verbs *v, int pe, struct link **out)
{
    struct link *l = calloc(1, sizeof *l);
    gshmem_status_t status;
    char why[200];

    if (!l || !(l->op = calloc(OPS, sizeof *l->op))) {
        free(l);
        return v->config.fail(GSHMEM_ERR_MEMORY, "verbs: out of memory for a link to PE %d", pe);
    }
    l->pe = pe;
    l->first_packet =
        (uint32_t)(v->config.pe * 0x9e3779b1u + (unsigned)pe * 0x85ebca6bu) & 0xffffff;
    const bool might = reach_might(v, pe, why, sizeof why);
    if (might && (status = make_queue_pair(v, l))) {
        link_close(v, l);
        return status;
    }
    l->next = v->links;
    v->links = v->to[pe] = l;
    if (might) {
        l->unsaid = SAY_OFFER;
        link_say_rest(v, l);
    } else {
        link_give_up(v, l, why);
    }
    *out = l;
    return GSHMEM_OK;
}

/* Room for the keys of the peer's chunks. */
static bool remember_segments(struct link *l, const struct offer *o)
{
    for (uint32_t i = 0; i < o->segments; i++) {
        uint64_t chunks = (o->bytes[i] + CHUNK_BYTES - 1) / CHUNK_BYTES;
        if (!(l->key[i] = calloc(chunks ? chunks : 1, sizeof *l->key[i])))
            return false;
        l->base[i] = o->base[i];
        l->bytes[i] = o->bytes[i];
    }
    return true;
}

static void take_offer(struct verbs *v, struct link *l, const struct offer *o)
{
    char why[300];

    if (o->ethernet != v->nic[0].ethernet) {
        link_give_up(v, l, "one of the two has InfiniBand, the other Ethernet");
        return;
    }
    if (!remember_segments(l, o)) {
        v->config.fail(GSHMEM_ERR_MEMORY, "verbs: out of memory for the keys of PE %d", l->pe);
        link_fail(v, l, GSHMEM_ERR_MEMORY, NULL);
        return;
    }
    if (!can_receive(v, l, o) || !can_send(v, l, o)) {
        snprintf(why, sizeof why, "%s finds no way to its NIC: %s (GSHMEM_IB_GID_INDEX and "
                                  "GSHMEM_IB_HCA choose another address)",
                 v->nic[0].name, strerror(errno));
        link_give_up(v, l, why);
        return;
    }
    l->unsaid |= SAY_READY;
    l->state = LINK_READY;
    link_say_rest(v, l);
    if (l->peer_ready)
        say_hello(v, l);
}

static void take_note(struct verbs *v, struct link *l, uint32_t kind, const unsigned char *note,
                      size_t bytes)
{
    struct offer o;

    if (kind == NOTE_NONE && l->state <= LINK_TRIED) {
        go_below(v, l, "it found no way by NICs");
    } else if (kind == NOTE_READY && (l->state == LINK_ASKED || l->state == LINK_READY)) {
        l->peer_ready = true;
        if (l->state == LINK_READY)
            say_hello(v, l);
    } else if (kind == NOTE_OFFER && l->state == LINK_ASKED && decode_offer(note, bytes, &o)) {
        take_offer(v, l, &o);
    } else if (l->state != LINK_BELOW && l->state != LINK_FAILED) {
        link_fail(v, l, GSHMEM_ERR_TRANSPORT, "verbs: it sent an offer that makes no sense");
    }
}

void link_heard(struct verbs *v, int from, const unsigned char *note, size_t bytes)
{
    struct link *l = v->to[from];

    if (bytes < 12 || memcmp(note, magic, 4) != 0 || get32(note + 4) != NOTE_VERSION) {
        v->config.fail(GSHMEM_ERR_TRANSPORT, "verbs: PE %d is of another version of GSHMEM", from);
        if (l)
            link_fail(v, l, GSHMEM_ERR_TRANSPORT, "verbs: it is of another version");
        return;
    }
    if (l ||
        !link_open(v, from, &l)) /* has logged why not; the other will hear nothing, and say so */
        take_note(v, l, get32(note + 8), note, bytes);
}

/* ---- The end ---- */

void link_fail(struct verbs *v, struct link *l, gshmem_status_t status, const char *why)
{
    if (l->state == LINK_FAILED)
        return;
    l->state = LINK_FAILED;
    l->failure = status;
    l->unsaid = 0;
    if (l->qp)
        ibv_destroy_qp(l->qp); /* from here on nothing is read or written for it */
    l->qp = NULL;
    l->batched = 0;
    issue_finish(v, l);
    if (why)
        v->config.lost(v->config.context, l->pe, status, why);
}

void link_forget(struct link *l, int segment, uint64_t offset, uint64_t bytes)
{
    for (uint64_t c = (offset + CHUNK_BYTES - 1) / CHUNK_BYTES;
         l->key[segment] && c * CHUNK_BYTES < offset + bytes; c++)
        l->key[segment][c] = 0;
}

void link_close(struct verbs *v, struct link *l)
{
    link_fail(v, l, GSHMEM_ERR_ABORTED, NULL);
    for (int i = 0; i < TRANSPORT_SEGMENT_MAX; i++)
        free(l->key[i]);
    free(l->op);
    free(l);
}
