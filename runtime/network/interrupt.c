#define _GNU_SOURCE
#include "runtime/network/interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

static atomic_int came; /* read by the answering thread; free of locks, as a handler needs */

/* What a process sends, gshmemrun among them, has its usual effect. */
static void take_interrupt(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (info->si_code == SI_KERNEL && (number == SIGQUIT || !came)) {
        came |= number == SIGINT;
        return;
    }
    signal(number, SIG_DFL);
    raise(number); /* delivered when this handler returns */
}

static void interrupt_take(int number)
{
    struct sigaction ours = {.sa_sigaction = take_interrupt, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigaction before;

    if (sigaction(number, NULL, &before) == 0 && !(before.sa_flags & SA_SIGINFO) &&
        before.sa_handler == SIG_DFL)
        sigaction(number, &ours, NULL);
}

static void interrupt_give_back(int number)
{
    struct sigaction now;

    if (sigaction(number, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO &&
        now.sa_sigaction == take_interrupt)
        signal(number, SIG_DFL);
}

void interrupt_begin(void)
{
    came = 0;
    interrupt_take(SIGINT);
    interrupt_take(SIGQUIT);
}

/* What has come is given on with the handler: it would else be lost. */
void interrupt_end(void)
{
    interrupt_give_back(SIGINT);
    interrupt_give_back(SIGQUIT);
    if (atomic_exchange(&came, 0)) /* two threads may be here: the program gets it once */
        kill(getpid(), SIGINT);
}

bool interrupt_came(void)
{
    return came != 0;
}
