/* Requests to PEs of this host that memory of a device's own has a part in: the device copies, several
 * requests at a time, and updates in place. */
#include "device/device.h"
#include "gshmem/base.h"
#include "gshmem/type.h"
#include "transport/local/local.h"

static bool is_of_device(const struct local *t, int segment)
{
    return t->config.segment[segment].of_device;
}

static bool is_local_on_device(const struct local *t, const struct transport_request *r)
{
    return r->kind != TRANSPORT_ATOMIC && r->bytes && !(r->flags & TRANSPORT_KEPT) &&
           t->config.on_device(t->config.context, r->local, r->bytes);
}

static bool is_data_on_device(const struct local *t, const struct transport_request *r)
{
    return r->kind != TRANSPORT_ATOMIC && r->bytes &&
           (is_of_device(t, r->segment) || is_local_on_device(t, r));
}

static bool touches_device(const struct local *t, const struct transport_request *r)
{
    return is_data_on_device(t, r) || (r->kind == TRANSPORT_ATOMIC && is_of_device(t, r->segment)) ||
           (r->signal_op && is_of_device(t, r->signal_segment));
}

bool copies_take(struct local *t, const struct transport_request *r)
{
    return t->config.device && (copies_any(t) || touches_device(t, r));
}

/* ---- Updates: done on return, after all copies that have been started ---- */

static gshmem_status_t apply(struct local *t, const struct transport_request *r)
{
    char *at = local_reach(t, r->pe, r->segment, r->offset);
    const struct device_update u = {
        .op = r->amo, .type = r->type, .at = at, .operand = r->operand, .compare = r->compare};

    if (!at)
        return local_refuse(t, r->pe);
    gshmem_status_t status = t->config.device->ops->update(t->config.device, &u, r->old);
    if (!status)
        r->done(r->tag, GSHMEM_OK);
    return status;
}

/* ---- Puts and gets ---- */

struct ends {
    char *there;    /* NULL: there is no data */
    uint64_t *flag; /* NULL: there is no signal */
};

static gshmem_status_t find_ends(struct local *t, const struct transport_request *r, struct ends *e)
{
    *e = (struct ends){NULL, NULL};
    if (r->bytes && !(e->there = local_reach(t, r->pe, r->segment, r->offset)))
        return local_refuse(t, r->pe);
    if (r->signal_op && !(e->flag = (uint64_t *)(void *)local_reach(t, r->pe, r->signal_segment,
                                                                    r->signal_offset)))
        return local_refuse(t, r->pe);
    return GSHMEM_OK;
}

/* Small data of a put is copied at once, since its source may be reused. */
static bool must_be_copied(const struct transport_request *r)
{
    return r->kind == TRANSPORT_PUT && r->bytes && r->bytes <= TRANSPORT_COPIED &&
           !(r->flags & TRANSPORT_KEPT);
}

/* *started: the device is at it; else it is done. */
static gshmem_status_t move_data(struct local *t, const struct transport_request *r, char *there,
                                 struct copying *c, bool *started)
{
    struct device *d = t->config.device;
    void *to = r->kind == TRANSPORT_GET ? r->local : there;
    void *from = r->kind == TRANSPORT_GET ? there : r->local;

    if (!there)
        return GSHMEM_OK;
    if (!is_data_on_device(t, r)) {
        local_store(to, from, r->bytes);
        return GSHMEM_OK;
    }
    if (must_be_copied(r))
        return d->ops->copy(d, to, from, r->bytes);
    *started = true;
    return d->ops->copy_start(d, to, from, r->bytes, &c->ticket);
}

/* Behind the data: what the device does is done in order. */
static gshmem_status_t signal(struct local *t, const struct transport_request *r, uint64_t *flag,
                              struct copying *c, bool *started)
{
    struct device *d = t->config.device;
    const struct device_update add = {.op = GSHMEM_AMO_ADD, .type = GSHMEM_TYPE_UINT64, .at = flag,
                                      .operand = r->signal_value};

    if (!flag)
        return GSHMEM_OK;
    if (!is_of_device(t, r->signal_segment)) {
        c->flag = *started ? flag : NULL;
        if (!c->flag)
            local_signal(flag, r->signal_op, r->signal_value);
        return GSHMEM_OK;
    }
    if (r->signal_op != GSHMEM_SIGNAL_SET)
        return d->ops->update(d, &add, NULL);
    *started = true;
    return d->ops->copy_start(d, flag, &c->value, sizeof c->value, &c->ticket);
}

static struct copying *copying_at(struct local *t, uint32_t at)
{
    return &t->copying[at % LOCAL_COPIES];
}

/* Whether it has to wait: what the CPU does itself, for all that the device is at. */
static bool must_wait(struct local *t, const struct transport_request *r)
{
    if (!copies_any(t))
        return false;
    return t->end - t->first == LOCAL_COPIES || copying_at(t, t->end - 1)->flag ||
           must_be_copied(r) || !touches_device(t, r) ||
           (r->kind == TRANSPORT_PUT && r->bytes && !is_data_on_device(t, r));
}

gshmem_status_t copies_post(struct local *t, const struct transport_request *r)
{
    struct copying *c = copying_at(t, t->end);
    bool started = false, signalled = false;
    gshmem_status_t status;
    struct ends e;

    if (must_wait(t, r))
        return TRANSPORT_FULL;
    if (r->kind == TRANSPORT_ATOMIC)
        return apply(t, r);
    if ((status = find_ends(t, r, &e)))
        return status;
    *c = (struct copying){
        .done = r->done, .tag = r->tag, .signal_op = r->signal_op, .value = r->signal_value};
    if ((status = move_data(t, r, e.there, c, &started)))
        return status;
    c->failure = signal(t, r, e.flag, c, started ? &started : &signalled);
    if (started || (signalled && !c->failure)) {
        t->end++;
        return GSHMEM_OK;
    }
    if (!c->failure)
        r->done(r->tag, GSHMEM_OK);
    return c->failure;
}

bool copies_advance(struct local *t)
{
    struct device *d = t->config.device;
    uint32_t before = t->first;
    gshmem_status_t status;

    while (copies_any(t) && d->ops->copy_done(d, copying_at(t, t->first)->ticket, &status)) {
        const struct copying c = *copying_at(t, t->first++);
        status = status ? status : c.failure;
        if (c.flag && !status)
            local_signal(c.flag, c.signal_op, c.value);
        c.done(c.tag, status);
    }
    return t->first != before;
}
