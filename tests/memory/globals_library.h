/* A library whose variables are symmetric because it asks, and one whose are not. */
#ifndef GLOBALS_LIBRARY_H
#define GLOBALS_LIBRARY_H

#define LIBRARY __attribute__((visibility("default")))

extern long library_counter, library_table[1000];
/* What the program cannot come to have in its own variables, by a copy relocation. */
enum { LIBRARY_AREA = 600 };
LIBRARY long *library_hidden(void), *library_lock(void), *library_area(void);

#endif
