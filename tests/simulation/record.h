/* The log of a simulation: a line for each event, with its virtual time. No line has an address of
 * memory, a real time or a real process number in it, so that a seed has one log. */
#ifndef TEST_SIMULATION_RECORD_H
#define TEST_SIMULATION_RECORD_H

#include <stdbool.h>
#include <stdint.h>

/* path: a file for the lines; NULL: they are only counted and digested. */
bool record_begin(const char *path);
void record(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Writes what is left; text: the SHA-256 of all lines, in 64 digits. Returns their number. */
uint64_t record_end(char text[65]);

#endif
