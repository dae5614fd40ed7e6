/* What a thread keeps for itself, in one record for all rooms. What a thread learns about CPUs is
 * beside it, in network/wait.c and node/affinity.c. */
#ifndef GSHMEM_RUNTIME_JOB_THREAD_H
#define GSHMEM_RUNTIME_JOB_THREAD_H

#include <stdbool.h>
#include <stdint.h>

struct thread {
    /* job.c */
    bool ends_process; /* it has taken the process out of the job, which ends with it */
    bool ending;       /* it has begun to end the job */

    /* end.c: it is leaving the job in good order */
    bool leaves;

    /* network/requests.c: a request whose result is not needed; its failure is not logged */
    bool unheeded;

    /* teams/departures.c */
    uint64_t asked;  /* ns, when PEs of other nodes were asked last */
    uint64_t looked; /* ns, the last test whether all other PEs have left */
    int left; /* the PE that its last wait found to have left, or WAIT_FOR_UPDATE */
    int left_by;     /* an enum departure_way: how; LEFT_NOT: none was found, or it was reported */

    /* operations */
    unsigned lock_tests; /* calls of gshmem_test_lock that found the lock set */
    uint64_t lock_name;  /* this thread in turns of locks; 0: it has none yet */
    uint64_t lot;        /* for the random beginning of a search */

    /* races/races.c: it is in a round of the library's, whose operations are not the program's */
    unsigned unfollowed;
    bool hooked; /* races/races.c: it is in a hook of the program's loads and stores */
};

extern _Thread_local struct thread this_thread;

#endif
