/* Writes what the program has printed, before a process ends by _exit. */
#ifndef GSHMEM_RUNTIME_BASE_FLUSH_H
#define GSHMEM_RUNTIME_BASE_FLUSH_H

/* Of standard output alone, unless that would have to wait: for another thread that prints, or for
 * a reader. Makes no thread. */
void flush_printed(void);

/* Of all streams. If another thread holds one, since it waits for its input or for a reader, this
 * waits for a second only; but as long as another thread waits for such a stream within
 * fflush(NULL) or fclose, as exit does. (Where the C library is not glibc, for as long as another
 * thread holds a stream that the program has opened.) */
void flush_all(void);

#endif
