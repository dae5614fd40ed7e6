/* Requests that device memory has a part in: the device copies. */
#ifndef GSHMEM_TRANSPORT_LOCAL_COPIES_H
#define GSHMEM_TRANSPORT_LOCAL_COPIES_H

#include "transport/local/mapped.h"

/* Whether a request is for the device, or must wait for what the device is doing. */
bool copies_take(struct local *t, const struct transport_request *r);
gshmem_status_t copies_post(struct local *t, const struct transport_request *r);
/* Completes those that the device has carried out; whether there were any. */
bool copies_advance(struct local *t);
static inline bool copies_any(const struct local *t)
{
    return t->first != t->end;
}

#endif
