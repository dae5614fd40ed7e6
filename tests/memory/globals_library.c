#include "globals_library.h"

#include "gshmem.h"

LIBRARY long library_counter = 100;
LIBRARY long library_table[1000];
static long hidden = 7, lock, area[LIBRARY_AREA];

LIBRARY long *library_hidden(void)
{
    return &hidden;
}

LIBRARY long *library_lock(void)
{
    return &lock;
}

LIBRARY long *library_area(void)
{
    return area;
}

#ifdef ASKS
__attribute__((constructor)) static void ask(void)
{
    gshmem_symmetric_data(&hidden);
}
#endif
