#include "fake.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

enum { QPS = 1024, KEYS = 65536, WORKS = 4096, WCS = 65536, RECEIVES_MOST = 65536, CONTEXTS = 64 };

struct fake_count fake;

enum { LINE = 64 }; /* what threads of two NICs write is in different lines */

/* Of all that follows: queue pairs are told of their peers by other threads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* With fake.apart, in its place while no queue pair is made or ended. */
static struct nic {
    _Alignas(LINE) pthread_mutex_t lock;
    unsigned drawn;
} nic[FAKE_DEVICES];
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static bool holds_ways;
static pthread_t holder;

bool (*fake_is_gpu)(const void *at, size_t bytes);
void (*fake_look)(void);
int (*fake_export)(const void *at, size_t bytes, uint64_t *offset);
void (*fake_gpu_write)(void *at, const void *data, size_t bytes);
void (*fake_gpu_read)(void);

struct work {
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    unsigned char inlined[512];
    bool late; /* a read that has been put off, or an atomic whose answer has */
    uint64_t result;
};

/* Memory as a NIC finds it. */
struct place {
    char *view;
    void *gpu; /* its address, if it is a GPU's; else NULL */
};

struct placing {
    struct placing *next;
    struct place to;
    size_t bytes;
    char data[];
};

struct pair {
    struct ibv_qp qp;
    enum ibv_qp_state state;
    uint32_t peer, depth, inline_most;
    uint32_t packets;      /* the number of the next packet that it would take */
    uint32_t first_packet; /* and of the first */
    uint32_t packet_bytes;
    bool unsignalled_left; /* since the last one that was signalled */
    uint32_t unfinished;   /* work requests that no completion has told of */
    struct work *work;     /* [WORKS] */
    struct placing *placing; /* writes of iWARP's that have come and are not in memory yet */
    uint32_t first, end;
};

struct completions {
    struct ibv_cq cq;
    struct ibv_wc *wc; /* [WCS] */
    uint32_t first, end, most, shown; /* up to there they can be polled */
    uint32_t events;
    bool asked;
};

struct receives {
    struct ibv_srq srq;
    struct ibv_recv_wr *wr; /* [RECEIVES_MOST] */
    struct ibv_sge *sge;
    uint32_t first, end, most;
};

static struct pair *pairs[QPS];
static struct {
    struct ibv_mr mr;
    int access;
    bool used;
    char *view; /* where the fake itself reads and writes it; the same, but of a GPU's */
} keys[KEYS];
static int next_pair, next_key, fail_in, refuse_in, refuse_error, memory_in, way_in, refuse_pairs;
static enum ibv_wc_status fail_status;
static unsigned drawn;
static int open_things;

/* Soft-RoCE does not. */
static bool reorders(int at)
{
    return fake.reorders && !fake.soft && at >= fake.orderly;
}

static unsigned draw_from(unsigned *at, unsigned n)
{
    *at = *at * 1103515245 + 12345;
    return *at / 65536 % n;
}

static unsigned draw(unsigned n)
{
    return draw_from(&drawn, n);
}

/* All zero, in lines of its own. */
static void *make_object(size_t bytes)
{
    const size_t whole = (bytes + LINE - 1) / LINE * LINE;
    void *object = aligned_alloc(LINE, whole);

    CHECK(object);
    return memset(object, 0, whole);
}

static void count(int *what)
{
    if (!fake.apart)
        ++*what;
}

/* ---- Objects ---- */

static struct ibv_device device[FAKE_DEVICES] = {
    {.name = "fake0", .transport_type = IBV_TRANSPORT_IB},
    {.name = "fake1", .transport_type = IBV_TRANSPORT_IB},
    {.name = "fake2", .transport_type = IBV_TRANSPORT_IB},
    {.name = "fake3", .transport_type = IBV_TRANSPORT_IB},
    {.name = "fake4", .transport_type = IBV_TRANSPORT_IB},
    {.name = "fake5", .transport_type = IBV_TRANSPORT_IB},
    {.name = "fake6", .transport_type = IBV_TRANSPORT_IB},
    {.name = "fake7", .transport_type = IBV_TRANSPORT_IB},
};
static bool down[FAKE_DEVICES];
static struct context {
    struct ibv_context *context;
    int notified; /* write end of its events */
    uint64_t pinned;
} contexts[CONTEXTS];

int ibv_fork_init(void)
{
    FAKE_CALL(ENOMEM);
    CHECK_EQ(next_key, fake.fork_safe ? next_key : 0); /* too late */
    fake.fork_safe = true;
    return 0;
}

struct ibv_device **ibv_get_device_list(int *n)
{
    FAKE_CALL(NULL);
    struct ibv_device **list = calloc(FAKE_DEVICES + 1, sizeof *list);

    if (n)
        *n = fake.devices;
    for (int i = 0; i < fake.devices; i++) {
        device[i].transport_type = fake.iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
        list[i] = &device[i];
    }
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

const char *ibv_get_device_name(struct ibv_device *d)
{
    return d->name;
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    return status == IBV_WC_RETRY_EXC_ERR ? "transport retry counter exceeded" : "a status";
}

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc);
static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
static int post_receive(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
static int ask(struct ibv_cq *cq, int solicited);

struct ibv_context *ibv_open_device(struct ibv_device *d)
{
    FAKE_CALL(NULL);
    struct ibv_context *c = calloc(1, sizeof *c);
    int fd[2], i = 0;

    while (i < CONTEXTS && contexts[i].context)
        i++;
    CHECK(i < CONTEXTS);
    CHECK_EQ(pipe(fd), 0);
    contexts[i] = (struct context){.context = c, .notified = fd[1]};
    c->async_fd = fd[0];
    c->device = d;
    c->ops.poll_cq = poll_cq;
    c->ops.post_send = post_send;
    c->ops.post_srq_recv = post_receive;
    c->ops.req_notify_cq = ask;
    open_things++;
    return c;
}

int ibv_close_device(struct ibv_context *c)
{
    for (int i = 0; i < CONTEXTS; i++) {
        if (contexts[i].context == c) {
            close(contexts[i].notified);
            contexts[i].context = NULL;
        }
    }
    close(c->async_fd);
    open_things--;
    free(c);
    return 0;
}

int ibv_get_async_event(struct ibv_context *c, struct ibv_async_event *e)
{
    FAKE_CALL(-1);
    return read(c->async_fd, e, sizeof *e) == sizeof *e ? 0 : -1;
}

void ibv_ack_async_event(struct ibv_async_event *e)
{
    (void)e;
}

int ibv_query_device(struct ibv_context *c, struct ibv_device_attr *a)
{
    FAKE_CALL(ENOMEM);
    *a = (struct ibv_device_attr){
        .phys_port_cnt = 1,
        .max_qp_rd_atom = 8,
        .max_qp_init_rd_atom = 4,
        .atomic_cap = fake.atomics ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE,
        .max_srq = 1,
        .max_srq_wr = fake.receives_most,
        .max_qp_wr = fake.sends_most,
        .max_cqe = fake.completions_most,
        /* Intel's, soft-RoCE, or a ConnectX-8 or -5 */
        .vendor_id = fake.copies_packet ? 0x8086 : fake.soft ? 0xffffff : 0x02c9,
        .vendor_part_id = reorders((int)(c->device - device)) ? 4131 : 4119,
    };
    return 0;
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *out)
{
    FAKE_CALL(ENOMEM);
    struct ibv_port_attr *a = (struct ibv_port_attr *)(void *)out;

    (void)c;
    CHECK_EQ(port, 1);
    a->state = IBV_PORT_ACTIVE;
    a->active_mtu = IBV_MTU_1024;
    a->link_layer = fake.infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
    a->gid_tbl_len = 2 * FAKE_GIDS;
    a->lid = (uint16_t)fake.lid;
    a->flags = fake.needs_grh ? IBV_QPF_GRH_REQUIRED : 0;
    return 0;
}

int _ibv_query_gid_ex(struct ibv_context *c, uint32_t port, uint32_t index, struct ibv_gid_entry *e,
                      uint32_t flags, size_t size)
{
    FAKE_CALL(-1);
    (void)port, (void)flags, (void)size;
    if (fake.infiniband) {
        *e = (struct ibv_gid_entry){.gid_type = IBV_GID_TYPE_IB, .gid.raw = {0xfe, 0x80, [15] = 1}};
        e->gid.raw[7] = fake.rails_told ? (unsigned char)(c->device - device) : 0;
        return index ? ENODATA : 0;
    }
    if ((index < FAKE_GIDS) == fake.gids_moved)
        return ENODATA;
    index %= FAKE_GIDS;
    *e = (struct ibv_gid_entry){.gid_type = index ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1};
    if (index >= (uint32_t)fake.gids)
        return ENODATA;
    e->gid.raw[0] = index == 2 ? 0 : 0xfd;
    e->gid.raw[10] = e->gid.raw[11] = index == 2 ? 0xff : 0;
    e->gid.raw[15] = 1;
    return 0;
}

int ibv_query_pkey(struct ibv_context *c, uint8_t port, int index, __be16 *key)
{
    FAKE_CALL(ENOMEM);
    (void)c, (void)port, (void)index;
    *key = 0xffff;
    return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *c)
{
    FAKE_CALL(NULL);
    struct ibv_pd *pd = calloc(1, sizeof *pd);

    pd->context = c;
    open_things++;
    return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    open_things--;
    free(pd);
    return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *c)
{
    FAKE_CALL(NULL);
    struct ibv_comp_channel *channel = calloc(1, sizeof *channel);
    int fd[2];

    CHECK_EQ(pipe(fd), 0);
    close(fd[1]);
    channel->context = c;
    channel->fd = fd[0];
    open_things++;
    return channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    close(channel->fd);
    open_things--;
    free(channel);
    return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *c, int n, void *context,
                             struct ibv_comp_channel *channel, int vector)
{
    FAKE_CALL(NULL);
    struct completions *q = make_object(sizeof *q);

    (void)vector;
    CHECK(n <= fake.completions_most);
    q->most = (uint32_t)n;
    q->wc = calloc(WCS, sizeof *q->wc);
    q->cq = (struct ibv_cq){.context = c, .channel = channel, .cq_context = context};
    open_things++;
    return &q->cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
    struct completions *q = (struct completions *)cq;

    open_things--;
    free(q->wc);
    free(q);
    return 0;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *a)
{
    FAKE_CALL(NULL);
    struct receives *r = make_object(sizeof *r);

    CHECK(a->attr.max_wr <= (uint32_t)fake.receives_most);
    r->wr = calloc(RECEIVES_MOST, sizeof *r->wr);
    r->sge = calloc(RECEIVES_MOST, sizeof *r->sge);
    r->srq = (struct ibv_srq){.context = pd->context, .pd = pd};
    r->most = a->attr.max_wr;
    open_things++;
    return &r->srq;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
    open_things--;
    free(((struct receives *)srq)->wr);
    free(((struct receives *)srq)->sge);
    free(srq);
    return 0;
}

static struct ibv_mr *register_view(struct ibv_pd *pd, void *at, size_t bytes, int access, char *view)
{
    CHECK(next_key < KEYS);
    int key = next_key++;
    keys[key].mr = (struct ibv_mr){
        .pd = pd, .addr = at, .length = bytes, .lkey = (uint32_t)key, .rkey = (uint32_t)key};
    keys[key].access = access;
    keys[key].used = true;
    keys[key].view = view;
    fake.registered++;
    open_things++;
    return &keys[key].mr;
}

/* Where the simulation of the driver has it: the descriptor's position is its beginning. */
static char *view_of(int fd, uint64_t offset, size_t bytes)
{
    char *view = mmap(NULL, offset + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, lseek(fd, 0, SEEK_CUR));

    CHECK(view != MAP_FAILED);
    return view + offset;
}

/* It is looked up by its name. */
__attribute__((visibility("default"))) struct ibv_mr *
ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t bytes, uint64_t address, int fd, int access)
{
    if (fake.no_dma_buf) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    CHECK_EQ(offset % 4096, address % 4096);
    fake.dma_bufs++;
    return register_view(pd, (void *)(uintptr_t)address, bytes, access, view_of(fd, offset, bytes));
}

/* Of a GPU: only where nvidia_peermem knows its addresses. */
static struct ibv_mr *register_gpu(struct ibv_pd *pd, void *at, size_t bytes, int access)
{
    uint64_t offset;
    int fd;

    if (!fake.peermem || (fd = fake_export(at, bytes, &offset)) < 0) {
        errno = EFAULT;
        return NULL;
    }
    fake.peermems++;
    char *view = view_of(fd, offset, bytes);
    close(fd);
    return register_view(pd, at, bytes, access, view);
}

static struct context *context_of(const struct ibv_pd *pd)
{
    struct context *c = contexts;

    while (c->context != pd->context)
        c++;
    return c;
}

static uint64_t pages_of(const void *at, size_t bytes)
{
    return (((uintptr_t)at + bytes + 4095) & ~4095ull) - ((uintptr_t)at & ~4095ull);
}

/* As the kernel counts: each PE has opened the device for itself. */
static bool exceeds_limit(const struct ibv_pd *pd, const void *at, size_t bytes)
{
    return fake.pins_most && context_of(pd)->pinned + pages_of(at, bytes) > fake.pins_most;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *at, size_t bytes, int access)
{
    FAKE_CALL(NULL);
    CHECK(fake.fork_safe);
    fake.partial_pages += (uintptr_t)at % 4096 != 0;
    if (fake_is_gpu && fake_is_gpu(at, bytes))
        return register_gpu(pd, at, bytes, access);
    if ((memory_in && --memory_in == 0) || exceeds_limit(pd, at, bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    context_of(pd)->pinned += pages_of(at, bytes);
    return register_view(pd, at, bytes, access, at);
}

/* What the header calls for rights that may be given or not; compilers that do not optimise link it. */
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *at, size_t bytes, uint64_t iova, unsigned access)
{
    FAKE_CALL(NULL);
    CHECK_EQ(iova, (uintptr_t)at);
    return ibv_reg_mr(pd, at, bytes, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    CHECK(keys[mr->lkey].used);
    if (keys[mr->lkey].view != mr->addr) {
        uintptr_t page = (uintptr_t)keys[mr->lkey].view & 4095;
        munmap(keys[mr->lkey].view - page, mr->length + page);
    } else {
        context_of(mr->pd)->pinned -= pages_of(mr->addr, mr->length);
    }
    keys[mr->lkey].used = false;
    fake.registered--;
    open_things--;
    return 0;
}

/* ---- Queue pairs ---- */

static struct ibv_qp *create_pair(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
    struct pair *p = make_object(sizeof *p);

    CHECK(next_pair < QPS && a->qp_type == IBV_QPT_RC && a->srq);
    CHECK(a->cap.max_send_wr <= (uint32_t)fake.sends_most && a->cap.max_send_sge == 1);
    if (refuse_pairs) {
        refuse_pairs--;
        free(p);
        errno = ENOMEM;
        return NULL;
    }
    if (a->cap.max_inline_data > (uint32_t)fake.inline_most) {
        free(p);
        errno = EINVAL;
        return NULL;
    }
    p->work = calloc(WORKS, sizeof *p->work);
    p->qp = (struct ibv_qp){.context = pd->context,
                            .pd = pd,
                            .send_cq = a->send_cq,
                            .recv_cq = a->recv_cq,
                            .srq = a->srq,
                            .qp_num = (uint32_t)next_pair};
    p->depth = a->cap.max_send_wr;
    p->inline_most = a->cap.max_inline_data;
    pairs[next_pair++] = p;
    open_things++;
    return &p->qp;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
    FAKE_CALL(NULL);
    pthread_mutex_lock(&lock);
    struct ibv_qp *qp = create_pair(pd, a);
    pthread_mutex_unlock(&lock);
    return qp;
}

/* What one PE's NIC has in flight, of all its queue pairs. */
static void add_flight(const struct ibv_pd *pd, struct fake_flight *f)
{
    for (int i = 0; i < next_pair; i++) {
        const struct pair *p = pairs[i];
        if (!p || p->qp.pd != pd)
            continue;
        for (uint32_t at = p->first; at != p->end; at++) {
            const struct work *w = &p->work[at % WORKS];
            const bool moves = w->wr.opcode == IBV_WR_RDMA_WRITE || w->wr.opcode == IBV_WR_RDMA_READ;
            f->works++;
            f->bytes += moves ? w->sge.length : 0;
        }
    }
}

struct fake_flight fake_most_in_flight(void)
{
    struct fake_flight most = {0, 0};

    for (int i = 0; i < next_pair; i++) {
        struct fake_flight f = {0, 0};
        if (pairs[i])
            add_flight(pairs[i]->qp.pd, &f);
        most.bytes = f.bytes > most.bytes ? f.bytes : most.bytes;
        most.works = f.works > most.works ? f.works : most.works;
    }
    return most;
}

static void break_down(struct pair *p, uint32_t at, enum ibv_wc_status first);

/* As long as the kernel looks for a neighbour. */
static void look_for_way(void)
{
    if (holds_ways && pthread_equal(pthread_self(), holder))
        CHECK_FAIL("%s", "what drives the network waits until a neighbour is found");
    while (holds_ways)
        pthread_cond_wait(&released, &lock);
}

static int modify(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask)
{
    struct pair *p = (struct pair *)qp;

    CHECK(mask & IBV_QP_STATE);
    if (a->qp_state == IBV_QPS_ERR) {
        break_down(p, p->first, IBV_WC_WR_FLUSH_ERR);
        return 0;
    }
    CHECK_EQ(a->qp_state, p->state + 1);
    if (a->qp_state == IBV_QPS_RTR)
        look_for_way();
    if (a->qp_state == IBV_QPS_RTR && way_in && --way_in == 0) {
        errno = ENETUNREACH;
        return ENETUNREACH;
    }
    if (a->qp_state == IBV_QPS_RTR && !fake.infiniband && !fake.iwarp &&
        (a->ah_attr.grh.sgid_index < FAKE_GIDS) == fake.gids_moved) {
        errno = ENODEV;
        return ENODEV;
    }
    if (a->qp_state == IBV_QPS_RTR && fake.needs_grh && !a->ah_attr.is_global) {
        errno = EINVAL;
        return EINVAL;
    }
    CHECK(a->qp_state != IBV_QPS_RTS || a->max_rd_atomic <= 4);
    p->state = a->qp_state;
    if (a->qp_state == IBV_QPS_RTR) {
        p->peer = a->dest_qp_num;
        p->packets = p->first_packet = a->rq_psn;
        p->packet_bytes = 128u << a->path_mtu;
    }
    return 0;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask)
{
    FAKE_CALL(ENOMEM);
    pthread_mutex_lock(&lock);
    const int error = modify(qp, a, mask);
    pthread_mutex_unlock(&lock);
    return error;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask, struct ibv_qp_init_attr *init)
{
    FAKE_CALL(ENOMEM);
    struct pair *p = (struct pair *)qp;

    (void)init;
    CHECK_EQ(mask, IBV_QP_RQ_PSN);
    CHECK(!fake.iwarp); /* it has no such numbers */
    CHECK_EQ(p->state, IBV_QPS_ERR); /* else it could take more meanwhile */
    if (fake.tells_no_packet)
        return EIO;
    a->rq_psn = (fake.copies_packet ? p->first_packet : p->packets) & 0xffffff;
    return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
    struct pair *p = (struct pair *)qp;

    pthread_mutex_lock(&lock);
    pairs[qp->qp_num] = NULL;
    pthread_mutex_unlock(&lock);
    open_things--;
    while (p->placing) {
        struct placing *first = p->placing;
        p->placing = first->next;
        free(first);
    }
    free(p->work);
    free(p);
    return 0;
}

/* ---- Completions ---- */

static void complete(struct ibv_cq *cq, struct ibv_wc wc)
{
    struct completions *q = (struct completions *)cq;

    CHECK(q->end - q->first < q->most); /* it would overflow */
    q->wc[q->end++ % WCS] = wc;
    q->events += q->asked;
    q->asked = false;
}

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
    FAKE_CALL(-1);
    struct completions *q = (struct completions *)cq;
    int n = 0;

    if (!fake.late)
        q->shown = q->end;
    while (n < most && q->first != q->shown)
        wc[n++] = q->wc[q->first++ % WCS];
    if (q->shown != q->end && draw(40) == 0)
        q->shown++;
    return n;
}

static int ask(struct ibv_cq *cq, int solicited)
{
    FAKE_CALL(ENOMEM);
    (void)solicited;
    ((struct completions *)cq)->asked = true;
    return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context)
{
    FAKE_CALL(-1);
    (void)channel, (void)cq, (void)context;
    errno = EAGAIN;
    return -1;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
    (void)cq, (void)n;
}

/* ---- Work ---- */

static int post_receive(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    FAKE_CALL(ENOMEM);
    struct receives *r = (struct receives *)srq;

    if (r->end - r->first == r->most) {
        *bad = wr;
        return ENOMEM;
    }
    r->sge[r->end % RECEIVES_MOST] = *wr->sg_list;
    r->wr[r->end % RECEIVES_MOST] = *wr;
    r->end++;
    return 0;
}

static struct place place_of(const struct ibv_pd *pd, uint32_t key, uint64_t at, uint64_t bytes, int access)
{
    CHECK(key < KEYS && keys[key].used);
    CHECK((keys[key].access & access) == access);
    CHECK(keys[key].mr.pd == pd);
    CHECK(at >= (uintptr_t)keys[key].mr.addr &&
          at + bytes <= (uintptr_t)keys[key].mr.addr + keys[key].mr.length);
    return (struct place){.view = keys[key].view + (at - (uintptr_t)keys[key].mr.addr),
                          .gpu = keys[key].view != keys[key].mr.addr ? (void *)(uintptr_t)at : NULL};
}

static void store(struct place to, const void *data, size_t bytes)
{
    if (to.gpu && fake_gpu_write)
        fake_gpu_write(to.gpu, data, bytes);
    else
        memcpy(to.view, data, bytes);
}

/* For reading, and for what is never a GPU's. */
static char *registered(const struct ibv_pd *pd, uint32_t key, uint64_t at, uint64_t bytes, int access)
{
    const struct place p = place_of(pd, key, at, bytes, access);

    if (p.gpu && fake_gpu_read)
        fake_gpu_read();
    return p.view;
}

static int device_of(const struct pair *p)
{
    return (int)(p->qp.context->device - device);
}

static int take_works(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct pair *p = (struct pair *)qp;
    int refused = refuse_in && --refuse_in == 0 ? refuse_error : 0;

    CHECK(p->state == IBV_QPS_RTS || p->state == IBV_QPS_ERR);
    count(&fake.posts);
    for (; wr; wr = wr->next) {
        if (refused && !wr->next) {
            *bad = wr;
            return refused;
        }
        struct work *w = &p->work[p->end % WORKS];
        CHECK(p->unfinished < p->depth && p->end - p->first < WORKS);
        CHECK(wr->num_sge <= 1 && !(fake.soft && wr->send_flags & IBV_SEND_FENCE));
        *w = (struct work){.wr = *wr};
        if (wr->num_sge)
            w->sge = *wr->sg_list;
        if (wr->send_flags & IBV_SEND_INLINE) {
            CHECK(w->sge.length <= p->inline_most);
            memcpy(w->inlined, (void *)(uintptr_t)w->sge.addr, w->sge.length);
        }
        /* completions of iWARP's pass reads that are due */
        for (uint32_t i = p->first; fake.iwarp && i != p->end && wr->opcode != IBV_WR_RDMA_READ; i++)
            CHECK(p->work[i % WORKS].wr.opcode != IBV_WR_RDMA_READ || wr->send_flags & IBV_SEND_FENCE);
        p->end++;
        p->unfinished++;
        count(&fake.works);
        if (wr->send_flags & IBV_SEND_SIGNALED)
            count(&fake.signalled);
        count(&fake.of_device[device_of(p)]);
    }
    if (p->state == IBV_QPS_ERR)
        break_down(p, p->first, IBV_WC_WR_FLUSH_ERR);
    return 0;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    FAKE_CALL(ENOMEM);
    pthread_mutex_t *held = fake.apart ? &nic[device_of((struct pair *)qp)].lock : &lock;
    pthread_mutex_lock(held);
    const int error = take_works(qp, wr, bad);
    pthread_mutex_unlock(held);
    return error;
}

static const void *source(const struct pair *p, const struct work *w)
{
    return w->wr.send_flags & IBV_SEND_INLINE
               ? (const void *)w->inlined
               : registered(p->qp.pd, w->sge.lkey, w->sge.addr, w->sge.length, 0);
}

static void deliver(struct pair *from, struct pair *to, const struct work *w)
{
    struct receives *r = (struct receives *)to->qp.srq;

    CHECK(r->first != r->end); /* never a message for which there is no place */
    const struct ibv_sge *place = &r->sge[r->first % RECEIVES_MOST];
    uint64_t id = r->wr[r->first++ % RECEIVES_MOST].wr_id;
    CHECK(w->sge.length <= place->length);
    store(place_of(to->qp.pd, place->lkey, place->addr, w->sge.length, IBV_ACCESS_LOCAL_WRITE), source(from, w),
          w->sge.length);
    complete(to->qp.recv_cq, (struct ibv_wc){.wr_id = id,
                                             .status = IBV_WC_SUCCESS,
                                             .opcode = IBV_WC_RECV,
                                             .byte_len = w->sge.length,
                                             .qp_num = to->qp.qp_num});
}

/* Those that came last first. */
static void place_all(struct pair *p)
{
    while (p->placing) {
        struct placing *first = p->placing;
        store(first->to, first->data, first->bytes);
        p->placing = first->next;
        free(first);
        if (fake_look)
            fake_look();
    }
}

static void place_later(struct pair *p, struct place to, const void *data, size_t bytes)
{
    struct placing *new = malloc(sizeof *new + bytes);

    *new = (struct placing){p->placing, to, bytes};
    memcpy(new->data, data, bytes);
    p->placing = new;
}

static bool is_atomic(const struct work *w)
{
    return w->wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || w->wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}

static void do_atomic(const struct pair *to, struct work *w)
{
    uint64_t *at = (uint64_t *)(void *)registered(
        to->qp.pd, w->wr.wr.atomic.rkey, w->wr.wr.atomic.remote_addr, 8, IBV_ACCESS_REMOTE_ATOMIC);

    CHECK(fake.atomics && (uintptr_t)at % 8 == 0 && w->sge.length == 8);
    w->result = *at;
    if (w->wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
        *at += w->wr.wr.atomic.compare_add;
    else if (*at == w->wr.wr.atomic.compare_add)
        *at = w->wr.wr.atomic.swap;
    w->late = true;
    count(&fake.updates);
}

static void do_read(struct pair *p, struct work *w)
{
    const struct pair *to = pairs[p->peer];

    if (is_atomic(w)) {
        memcpy(registered(p->qp.pd, w->sge.lkey, w->sge.addr, 8, IBV_ACCESS_LOCAL_WRITE),
               &w->result, 8);
        w->late = false;
        return;
    }
    place_all(p);
    store(place_of(p->qp.pd, w->sge.lkey, w->sge.addr, w->sge.length,
                   IBV_ACCESS_LOCAL_WRITE | (fake.iwarp ? IBV_ACCESS_REMOTE_WRITE : 0)),
          registered(to->qp.pd, w->wr.wr.rdma.rkey, w->wr.wr.rdma.remote_addr, w->sge.length,
                     IBV_ACCESS_REMOTE_READ),
          w->sge.length);
    w->late = false;
    count(&fake.reads);
}

/* Reads that were put off. */
static void catch_up(struct pair *p, uint32_t end)
{
    for (uint32_t i = p->first; i != end; i++) {
        if (p->work[i % WORKS].late)
            do_read(p, &p->work[i % WORKS]);
    }
}

/* What has been done up to `end` is told, in order, where it was asked to be. */
static void tell(struct pair *p, uint32_t end)
{
    for (; p->first != end; p->first++) {
        struct work *w = &p->work[p->first % WORKS];
        if (!(w->wr.send_flags & IBV_SEND_SIGNALED))
            continue;
        if (reorders(device_of(p)))
            place_all(p);
        complete(p->qp.send_cq, (struct ibv_wc){.wr_id = w->wr.wr_id, .qp_num = p->qp.qp_num});
        p->unfinished = p->end - p->first - 1;
    }
}

static void break_down(struct pair *p, uint32_t at, enum ibv_wc_status first)
{
    for (int i = 0; reorders(device_of(p)) && i < next_pair; i++) { /* what has come is in its place when nothing more can */
        if (pairs[i] && (pairs[i] == p || pairs[i]->peer == p->qp.qp_num))
            place_all(pairs[i]);
    }
    for (enum ibv_wc_status status = first; at != p->end; status = IBV_WC_WR_FLUSH_ERR, at++)
        complete(p->qp.send_cq, (struct ibv_wc){.wr_id = p->work[at % WORKS].wr.wr_id,
                                                .status = status,
                                                .qp_num = p->qp.qp_num});
    p->first = p->end;
    p->unfinished = 0;
    p->state = IBV_QPS_ERR;
}

static bool takes(const struct pair *from, const struct pair *to)
{
    return to && (to->state == IBV_QPS_RTR || to->state == IBV_QPS_RTS) && !down[device_of(from)] &&
           !down[device_of(to)] && (!fake.rails || device_of(from) == device_of(to));
}

/* One work request of p's, at the other side. */
static void execute(struct pair *p, struct pair *to, struct work *w)
{
    CHECK(w->sge.length <= 1u << 31);
    to->packets += w->sge.length ? (w->sge.length - 1) / to->packet_bytes + 1 : 1;
    if (w->wr.opcode == IBV_WR_RDMA_WRITE) {
        struct place at = {.view = NULL};
        if (w->sge.length)
            at = place_of(to->qp.pd, w->wr.wr.rdma.rkey, w->wr.wr.rdma.remote_addr, w->sge.length,
                          IBV_ACCESS_REMOTE_WRITE);
        if (at.view && (fake.iwarp || reorders(device_of(p))))
            place_later(p, at, source(p, w), w->sge.length);
        else if (at.view)
            store(at, source(p, w), w->sge.length);
        count(&fake.writes);
    } else if (w->wr.opcode == IBV_WR_RDMA_READ) {
        w->late = true;
    } else if (is_atomic(w)) {
        do_atomic(to, w);
    } else {
        place_all(p);
        deliver(p, to, w);
        count(&fake.sends);
    }
}

/* Some of a queue pair's work, which is drawn. */
static bool run(struct pair *p, unsigned *from)
{
    uint32_t end = p->first + draw_from(from, p->end - p->first + 1);
    uint32_t begin = p->first;

    if (p->placing && draw_from(from, 8) == 0)
        place_all(p);
    if (p->state != IBV_QPS_RTS || begin == end)
        return false;
    for (uint32_t i = begin; i != end; i++) {
        struct work *w = &p->work[i % WORKS];
        struct pair *to = p->peer < QPS ? pairs[p->peer] : NULL;
        bool fails = fail_in && --fail_in == 0;
        if (w->wr.send_flags & IBV_SEND_FENCE)
            catch_up(p, i);
        if (fails || !takes(p, to)) {
            if (fake.loses_answers && fails && takes(p, to) && draw(2))
                execute(p, to, w); /* all has arrived, but no word of it comes back */
            if (!fake.loses_answers) {
                catch_up(p, i);
                tell(p, i);
            }
            break_down(p, p->first, fails ? fail_status : IBV_WC_RETRY_EXC_ERR);
            return true;
        }
        execute(p, to, w);
    }
    catch_up(p, end);
    tell(p, end);
    return true;
}

bool fake_run(void)
{
    bool some = false;

    pthread_mutex_lock(&lock);
    for (int i = 0, begin = (int)draw((unsigned)next_pair + 1); i < next_pair; i++) {
        struct pair *p = pairs[(begin + i) % next_pair];
        if (p)
            some |= run(p, &drawn) || p->first != p->end;
    }
    pthread_mutex_unlock(&lock);
    return some;
}

bool fake_run_nic(int which)
{
    struct nic *own = &nic[which];
    bool some = false;

    CHECK(fake.apart);
    pthread_mutex_lock(&own->lock);
    for (int i = 0; i < next_pair; i++) {
        struct pair *p = pairs[i];
        if (!p || device_of(p) != which)
            continue;
        CHECK(p->peer >= QPS || !pairs[p->peer] || device_of(pairs[p->peer]) == which);
        some |= run(p, &own->drawn) || p->first != p->end;
    }
    pthread_mutex_unlock(&own->lock);
    return some;
}

/* ---- Plans ---- */

/* What the environment asks for, of a whole suite. */
static bool has_switch(const char *name)
{
    const char *all = getenv("FAKE_NIC");

    return all && strstr(all, name);
}

void fake_begin(unsigned seed)
{
    drawn = seed;
    for (int i = 0; i < FAKE_DEVICES; i++) {
        pthread_mutex_init(&nic[i].lock, NULL);
        nic[i].drawn = seed + (unsigned)i;
    }
    next_pair = next_key = fail_in = refuse_in = memory_in = way_in = refuse_pairs = 0;
    fail_status = IBV_WC_RETRY_EXC_ERR;
    memset(down, 0, sizeof down);
    fake = (struct fake_count){.gids = 3,
                               .devices = 1,
                               .inline_most = 512,
                               .sends_most = 4096,
                               .completions_most = WCS,
                               .receives_most = 4096};
    fake.reorders = has_switch("reorders");
    fake.late = has_switch("late");
    fake.moves = has_switch("moves");
}

void fake_end(void)
{
    CHECK_EQ(open_things, 0);
}

void fake_fail(int nth, enum ibv_wc_status status)
{
    fail_in = nth;
    fail_status = status;
}

void fake_refuse_post(int nth, int error)
{
    refuse_in = nth;
    refuse_error = error;
}

void fake_refuse_memory(int nth)
{
    memory_in = nth;
}

void fake_refuse_pairs(int n)
{
    refuse_pairs = n;
}

void fake_hold_ways(bool hold)
{
    pthread_mutex_lock(&lock);
    holds_ways = hold;
    holder = pthread_self();
    pthread_cond_broadcast(&released);
    pthread_mutex_unlock(&lock);
}

bool fake_holds_ways(void)
{
    pthread_mutex_lock(&lock);
    const bool holds = holds_ways;
    pthread_mutex_unlock(&lock);
    return holds;
}

void fake_port(int which, bool up)
{
    struct ibv_async_event e = {.element.port_num = 1,
                                .event_type = up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR};

    down[which] = !up;
    fake.gids_moved ^= fake.moves && up;
    fake_event(which, e);
}

void fake_cut(int which)
{
    down[which] = true;
}

void fake_event(int which, struct ibv_async_event e)
{
    for (int i = 0; i < CONTEXTS; i++) {
        if (contexts[i].context && contexts[i].context->device == &device[which])
            CHECK_EQ(write(contexts[i].notified, &e, sizeof e), sizeof e);
    }
}

void fake_refuse_way(int nth)
{
    way_in = nth;
}

void fake_connect(uint32_t a, uint32_t b)
{
    CHECK(pairs[a] && pairs[b] && pairs[a]->state == IBV_QPS_INIT && pairs[b]->state == IBV_QPS_INIT);
    pairs[a]->peer = b;
    pairs[b]->peer = a;
    pairs[a]->state = pairs[b]->state = IBV_QPS_RTS;
    pairs[a]->packet_bytes = pairs[b]->packet_bytes = 1024;
}
