#include "runtime/network/left_alone.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "runtime/base/log.h"
#include "runtime/node/threads.h"

#define LOOK_NS 500000000ull

/* This thread receives signals, like a thread of the program. */
static void *exit_main(void *unused)
{
    sigset_t none;

    (void)unused;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    exit(0);
}

void left_alone_look(struct left_alone *l, uint64_t now)
{
    pthread_t id;

    if (l->exits || now - l->looked < LOOK_NS)
        return;
    l->looked = now;
    const bool seen = l->seen;
    l->seen = threads_main_has_ended() && threads_of_program() == 0;
    if (!l->seen || !seen) /* a thread that has just been started may be missing from one check */
        return;
    log_info("the program's last thread has ended: exit(0)");
    if ((l->exits = pthread_create(&id, NULL, exit_main, NULL) == 0))
        pthread_detach(id);
}
