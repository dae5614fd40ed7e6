#include "globals_library.h"

#include "gshmem.h"

LIBRARY long library_counter = 100;
LIBRARY long library_table[1000];
static long hidden = 7;

LIBRARY long *library_hidden(void)
{
    return &hidden;
}

#ifdef ASKS
__attribute__((constructor)) static void ask(void)
{
    gshmem_symmetric_data(&hidden);
}
#endif
