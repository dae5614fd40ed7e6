#include "transport/local/copies.h"

#include "device/device.h"
#include "gshmem/base.h"
#include "gshmem/type.h"

static bool copies_is_of_device(const struct local *t, int segment)
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
           (copies_is_of_device(t, r->segment) || is_local_on_device(t, r));
}

static bool touches_device(const struct local *t, const struct transport_request *r)
{
    return is_data_on_device(t, r) ||
           (r->kind == TRANSPORT_ATOMIC && copies_is_of_device(t, r->segment)) ||
           (r->signal_op && copies_is_of_device(t, r->signal_segment));
}

bool copies_take(struct local *t, const struct transport_request *r)
{
    return t->config.device && (copies_any(t) || touches_device(t, r));
}

/* ---- Puts and gets ---- */

struct ends {
    char *there;    /* NULL: there is no data */
    uint64_t *flag; /* NULL: there is no signal */
};

static gshmem_status_t find_ends(struct local *t, const struct transport_request *r, struct ends *e)
{
    *e = (struct ends){NULL, NULL};
    if (r->bytes && !(e->there = local_resolve(t, r->pe, r->segment, r->offset)))
        return local_unmapped(t, r->pe);
    if (r->signal_op && !(e->flag = (uint64_t *)(void *)local_resolve(t, r->pe, r->signal_segment,
                                                                      r->signal_offset)))
        return local_unmapped(t, r->pe);
    return GSHMEM_OK;
}

/* The source of a small put may be reused when post has returned: its data is copied at once. */
static bool must_be_copied(const struct transport_request *r)
{
    return r->kind == TRANSPORT_PUT && r->bytes && r->bytes <= TRANSPORT_COPIED &&
           !(r->flags & TRANSPORT_KEPT);
}

/* Copies the data, or has the device do so: then c->copies. */
static gshmem_status_t move_data(struct local *t, const struct transport_request *r, char *there,
                                 struct copying *c)
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
    c->copies = true;
    return d->ops->copy_start(d, to, from, r->bytes, &c->ticket);
}

/* Stores the signal behind the data: the device makes copies in order, and all else follows when
 * they are done. */
static gshmem_status_t copies_signal(struct local *t, const struct transport_request *r,
                                     uint64_t *flag, struct copying *c)
{
    struct device *d = t->config.device;

    if (!flag)
        return GSHMEM_OK;
    if (!copies_is_of_device(t, r->signal_segment)) {
        c->flag = c->copies ? flag : NULL;
        if (!c->flag)
            local_signal(flag, r->signal_op, r->signal_value);
        return GSHMEM_OK;
    }
    if (r->signal_op == GSHMEM_SIGNAL_SET) {
        gshmem_status_t status =
            d->ops->copy_start(d, flag, &c->value, sizeof c->value, &c->ticket);
        c->copies |= !status;
        return status;
    }
    c->updates = true;
    c->update = (struct device_update){
        .op = GSHMEM_AMO_ADD, .type = GSHMEM_TYPE_UINT64, .at = flag, .operand = r->signal_value};
    return GSHMEM_OK;
}

static gshmem_status_t find_atomic(struct local *t, const struct transport_request *r,
                                   struct copying *c)
{
    char *at = local_resolve(t, r->pe, r->segment, r->offset);

    if (!at)
        return local_unmapped(t, r->pe);
    c->updates = true;
    c->old = r->old;
    c->update = (struct device_update){
        .op = r->amo, .type = r->type, .at = at, .operand = r->operand, .compare = r->compare};
    return GSHMEM_OK;
}

static struct copying *copying_at(struct local *t, uint32_t at)
{
    return &t->copying[at % LOCAL_COPIES];
}

/* A request that the CPU carries out waits until the device has done all before it. Every request
 * waits for an atomic of the device before it, which may take as long as the kernels that fill
 * the GPU. */
static bool must_wait(struct local *t, const struct transport_request *r)
{
    if (!copies_any(t))
        return false;
    return t->end - t->first == LOCAL_COPIES || copying_at(t, t->end - 1)->flag ||
           copying_at(t, t->end - 1)->updates || must_be_copied(r) || !touches_device(t, r) ||
           (r->kind == TRANSPORT_PUT && r->bytes && !is_data_on_device(t, r));
}

gshmem_status_t copies_post(struct local *t, const struct transport_request *r)
{
    struct copying *c = copying_at(t, t->end);
    gshmem_status_t status;
    struct ends e;

    if (must_wait(t, r))
        return TRANSPORT_FULL;
    *c = (struct copying){
        .done = r->done, .tag = r->tag, .signal_op = r->signal_op, .value = r->signal_value};
    if (r->kind == TRANSPORT_ATOMIC) {
        if ((status = find_atomic(t, r, c)))
            return status;
    } else {
        if ((status = find_ends(t, r, &e)) || (status = move_data(t, r, e.there, c)))
            return status;
        c->failure = copies_signal(t, r, e.flag, c);
    }
    if (c->copies || c->updates) {
        t->end++;
        return GSHMEM_OK;
    }
    if (!c->failure)
        r->done(r->tag, GSHMEM_OK);
    return c->failure;
}

/* Whether the device has carried it out; then *status says how it ended. */
static bool copies_is_over(struct local *t, struct copying *c, gshmem_status_t *status)
{
    struct device *d = t->config.device;
    uint64_t old = 0;

    *status = GSHMEM_OK;
    if (c->copies && !d->ops->copy_done(d, c->ticket, status))
        return false;
    *status = *status ? *status : c->failure;
    if (*status || !c->updates)
        return true;
    c->copies = false;
    if (!c->updating && (*status = d->ops->update_start(d, &c->update, &c->updating)))
        return true;
    if (!c->updating || !d->ops->update_done(d, c->updating, &old, status))
        return false;
    if (!*status && c->old)
        *c->old = old;
    return true;
}

bool copies_advance(struct local *t)
{
    uint32_t before = t->first;
    gshmem_status_t status;

    while (copies_any(t) && copies_is_over(t, copying_at(t, t->first), &status)) {
        const struct copying c = *copying_at(t, t->first++);
        if (c.flag && !status)
            local_signal(c.flag, c.signal_op, c.value);
        c.done(c.tag, status);
    }
    return t->first != before;
}
