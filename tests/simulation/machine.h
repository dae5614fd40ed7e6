/* What the processes of one machine share: files without a name, their locks, and the words in them
 * on which threads sleep. */
#ifndef TEST_SIMULATION_MACHINE_H
#define TEST_SIMULATION_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

struct pe;

/* What stands for that word in all processes that have mapped its file; the address itself: it is
 * in memory of one process. */
const void *machine_word(const struct pe *pe, const void *word);
bool machine_is_shared(const void *word);
/* Mappings are private: each PE has a machine of its own, and a fork is to have its own memory. */
extern bool machine_is_copied;

#endif
