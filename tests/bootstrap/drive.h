/* What every test of a bootstrap does with it, whoever started the job: rounds, hosts, an abort. */
#ifndef GSHMEM_TESTS_BOOTSTRAP_DRIVE_H
#define GSHMEM_TESTS_BOOTSTRAP_DRIVE_H

#include "bootstrap/choose.h"

struct gshmem_uniqueid;

/* The request of a core that has just begun. Ends the process if settings are wrong. */
struct bootstrap_request drive_request(void);

/* Rounds of blobs of many sizes, the last with none at all; every PE checks every other's. */
void drive_rounds(struct bootstrap *b, int rounds);

/* That the host map is what the PEs' own host names say, and has so many hosts (0: any number). */
void drive_hosts(struct bootstrap *b, int hosts);

/* All that bootstrap.h promises of a starter while nothing goes wrong. */
void drive_conform(struct bootstrap *b);

/* What the command line asks for: "conform", "rounds [HOSTS]", "abort STATUS", "leave" (PE 0 exits
 * early), "absent" (the last PE never publishes), "dead" (the last PE dies instead), "die" (all
 * do, by a signal, at once). Returns the exit status. */
int drive(struct bootstrap *b, int argc, char **argv);

#endif
