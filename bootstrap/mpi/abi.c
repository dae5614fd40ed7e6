#include "bootstrap/mpi/abi.h"

#include <dlfcn.h>
#include <string.h>

static const char *const libraries[] = {
#ifdef MPI_FAMILY_OMPI
    "libmpi.so.40",
#else
    "libmpich.so.12", /* as Debian names it */
    "libmpi.so.12",
#endif
};

static void *loaded_library(void)
{
    void *library = NULL;

    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0] && !library; i++)
        library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
    return library;
}

/* The constants, which in one family are objects of the library and in the other are written in
 * its header. */
static const char *fill_constants(struct mpi_abi *abi, void *library)
{
#ifdef MPI_FAMILY_OMPI
    abi->status_ignore = NULL;
    if (!(abi->comm_null = dlsym(library, "ompi_mpi_comm_null")))
        return "ompi_mpi_comm_null";
    if (!(abi->byte = dlsym(library, "ompi_mpi_byte")))
        return "ompi_mpi_byte";
    abi->errors_return = dlsym(library, "ompi_mpi_errors_return");
    return abi->errors_return ? NULL : "ompi_mpi_errors_return";
#else
    if (dlsym(library, "ompi_mpi_comm_null")) /* Open MPI 1.7 to 1.10: libmpi.so.12, too */
        return "handles that are numbers: it is an Open MPI before version 3, which needs another "
               "module";
    abi->status_ignore = (void *)1;
    abi->comm_null = 0x04000000;
    abi->byte = 0x4c00010d;
    abi->errors_return = 0x54000001;
    return NULL;
#endif
}

const char *abi_fill(struct mpi_abi *abi)
{
    void *library = loaded_library();
    const struct {
        const char *name;
        void *slot;
    } calls[] = {
        {"MPI_Initialized", &abi->Initialized},
        {"MPI_Finalized", &abi->Finalized},
        {"MPI_Error_string", &abi->Error_string},
        {"MPI_Test", &abi->Test},
        {"MPI_Iallgather", &abi->Iallgather},
        {"MPI_Comm_test_inter", &abi->Comm_test_inter},
        {"MPI_Comm_rank", &abi->Comm_rank},
        {"MPI_Comm_size", &abi->Comm_size},
        {"MPI_Comm_idup", &abi->Comm_idup},
        {"MPI_Comm_set_errhandler", &abi->Comm_set_errhandler},
        {"MPI_Comm_free", &abi->Comm_free},
        {"MPI_Abort", &abi->Abort},
    };

    if (!library)
        return libraries[0];
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        void *function = dlsym(library, calls[i].name);
        if (!function)
            return calls[i].name;
        memcpy(calls[i].slot, &function, sizeof function);
    }
    return fill_constants(abi, library); /* the library stays loaded: the program has it */
}
