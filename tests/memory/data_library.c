/* A library with variables of its own, some initialised and some not. */
#include "data_library.h"

LIBRARY int library_set = 4711;
LIBRARY int library_zero[3000];
static int hidden = 12;

int *library_hidden(void)
{
    return &hidden;
}
