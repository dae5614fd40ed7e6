#ifndef DATA_LIBRARY_H
#define DATA_LIBRARY_H

#define LIBRARY __attribute__((visibility("default")))

extern int library_set, library_zero[3000];
LIBRARY int *library_hidden(void);

#endif
