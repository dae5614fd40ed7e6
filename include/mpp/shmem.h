/* shmem.h, by the path of older programs. */
#include "../shmem.h"
