/* For tests in which the last PE leaves the job, and the others see it. After gshmem.h. */
#ifndef GSHMEM_TESTS_LAST_H
#define GSHMEM_TESTS_LAST_H

#include "check.h"

static uint64_t last_met; /* symmetric; on the last PE: how many of the others are done with what must succeed */

/* The last PE returns when the others have come here. After a barrier alone some are still inside, and
 * rightly see it fail if the last one leaves now. */
static inline void last_waits_for_all(void)
{
    const int last = gshmem_n_pes() - 1;

    if (gshmem_my_pe() != last)
        CHECK_OK(gshmem_uint64_atomic_inc(&last_met, last));
    else
        CHECK_OK(gshmem_uint64_wait_until(&last_met, GSHMEM_CMP_EQ, (uint64_t)last));
}

#endif
