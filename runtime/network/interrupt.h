/* Ctrl-C and the key of SIGQUIT under gshmemrun: the terminal sends them to gshmemrun and to all
 * PEs at once, and a PE that died by it could not say any more what it waited for. So a PE whose
 * program has left the signals alone lets gshmemrun act on the first Ctrl-C; at the second it
 * ends. */
#ifndef GSHMEM_RUNTIME_NETWORK_INTERRUPT_H
#define GSHMEM_RUNTIME_NETWORK_INTERRUPT_H

#include <stdbool.h>

void interrupt_begin(void);
/* The signals are as they were, unless the program has changed them since. */
void interrupt_end(void);
/* Whether Ctrl-C has come, and whoever asks this has to end the PE. */
bool interrupt_came(void);

#endif
