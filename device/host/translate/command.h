/* The command lines of gshmem-hostcc, and running them: one at a time, ended by the signals that
 * end us. */
#ifndef GSHMEM_TRANSLATE_COMMAND_H
#define GSHMEM_TRANSLATE_COMMAND_H

#include <signal.h>
#include <stddef.h>
#include <sys/types.h>

/* A command line that grows. */
struct command {
    char **words;
    size_t count;
};

/* By which signal we are to end, when the command that runs has; 0: by none. Signal handlers have
 * no argument that it could hang from. */
extern volatile sig_atomic_t hostcc_interrupted;

/* These end the program where there is no memory. */
void hostcc_add(struct command *c, const char *word);
void hostcc_add_all(struct command *c, const struct command *more);
void hostcc_clear(struct command *c);

/* The handler: ends the command that runs. */
void hostcc_interrupt(int signal_number);
/* Sets the handler of the signals that end us. Ignored ones, as below nohup, stay ignored. */
void hostcc_on_signals(void (*handler)(int));
/* Starts a command; *from (unless NULL) is where its output can be read. */
pid_t hostcc_start(const struct command *c, int *from);
/* Waits for it; its exit status, or 128 and the signal. */
int hostcc_finish(pid_t pid);
/* Runs a command to its end, and clears it. */
int hostcc_run(struct command *c);

#endif
