/* The window, and what is too long for a header. */
#include <stdlib.h>

#include <library.h>

MPI_Win lib_window = MPI_WIN_NULL;
char *lib_base;
int lib_pe, lib_pes;
static int *counts, *offsets; /* of collect, by PE */

int lib_init(void)
{
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS)
        return 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &lib_pe);
    MPI_Comm_size(MPI_COMM_WORLD, &lib_pes);
    counts = calloc(2 * (size_t)lib_pes, sizeof(*counts));
    offsets = counts + lib_pes;
    return !counts;
}

void *lib_alloc(size_t bytes)
{
    if (MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &lib_base,
                         &lib_window) != MPI_SUCCESS)
        return NULL;
    MPI_Win_lock_all(MPI_MODE_NOCHECK, lib_window);
    return lib_base;
}

/* As with collect, nobody knows the others' sizes: they are told first. */
void lib_collect(void *dest, const void *source, size_t bytes)
{
    int mine = (int)bytes;

    MPI_Allgather(&mine, 1, MPI_INT, counts, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0, at = 0; i < lib_pes; at += counts[i++])
        offsets[i] = at;
    MPI_Allgatherv(source, mine, MPI_BYTE, dest, counts, offsets, MPI_BYTE, MPI_COMM_WORLD);
}
