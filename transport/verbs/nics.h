/* The NICs of this PE: which are opened, and their receives. */
#ifndef GSHMEM_TRANSPORT_VERBS_NICS_H
#define GSHMEM_TRANSPORT_VERBS_NICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/verbs/nic.h"

/* Opens the NICs and ports that the settings and what is active allow, best first; how many. 0,
 * with the reason: there is none; -1: a setting names what is not there. */
int nics_find(const struct transport_config *config, struct nic nic[NICS_MOST], char *why,
              size_t why_size);
gshmem_status_t nic_open(struct verbs *v, struct nic *nic);
void nic_close(struct verbs *v, struct nic *nic);
/* Reads its addresses anew, which may be others after its port was down. */
void nic_ask_again(const struct verbs *v, struct nic *nic);
int nic_reads_into(const struct nic *nic); /* the rights of memory that it reads into */
/* Room in the queue of receives for one more peer; false: there is none left. */
bool nic_add_receives(struct verbs *v, struct nic *nic);
bool nic_receive_again(struct nic *nic, uint32_t index);
struct message_bytes *nic_inbox(const struct nic *nic, uint64_t index);

#endif
