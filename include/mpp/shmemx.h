/* shmemx.h, by the path of older programs. */
#include "../shmemx.h"
