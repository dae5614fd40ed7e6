/* What kernels wait for, as gshmem-where shows it: on each device what their channels owe, and on
 * GPUs the collectives in which kernels wait for long. On the host device kernels' threads show
 * their waits by themselves (gshmem_device_show_wait). */
#ifndef GSHMEM_PROXY_SHOWN_H
#define GSHMEM_PROXY_SHOWN_H

#include <stdint.h>

struct job;

/* Again and again while it holds: the commands of a channel have stalled since that time, the first
 * of them is for that PE. */
void shown_channel(struct job *j, int channel, int pe, const char *text, uint64_t since);
/* With the job's lock: teams in whose collectives kernels of a GPU have waited for long. */
void shown_teams(struct job *j);

#endif
