/* Passes numbers on to the next PE; returns what the one before has passed. */
long library_exchange(void);
