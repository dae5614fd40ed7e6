/* The variables of the simulated library, of which there is one copy in the process: a PE's are put
 * there while one of its threads runs, and a thread's own with them. */
#ifndef TEST_SIMULATION_IMAGE_H
#define TEST_SIMULATION_IMAGE_H

/* Finds them, and remembers their values at the start; before the first fiber. */
void image_begin(void);

/* Memory for one PE's, or one thread's, with the values at the start. */
void *image_new_process(void);
void *image_new_thread(void);

void image_save_process(void *image);
void image_load_process(const void *image);
void image_save_thread(void *image);
void image_load_thread(const void *image);

#endif
