/* libnvshmem_host.so.3: host functions of NVSHMEM for libraries that were compiled with NVSHMEM's
 * own headers and linked with its host library, as torch's symmetric memory is. What such a library
 * calls is what is here (tests/nvshmem/host_symbols.txt), with the types and numbers of NVSHMEM's
 * binary interface, in the version node NVSHMEM.
 *
 * Kernels with NVSHMEM's own device library inside are refused: GSHMEM cannot give them a state.
 * That library asks nvshmemid_init_status before it launches one, and hears that there is no job.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "gshmem.h"
#include "gshmem/stream.h"

#define NVSHMEM __attribute__((visibility("default")))

/* ---- What NVSHMEM's headers say ---- */

enum { SUCCESS = 0, INVALID_VALUE = 1, NOT_SUPPORTED = 4 };
enum { NOT_INITIALIZED = 0, IS_INITIALIZED = 2 };
enum { INIT_WITH_MPI_COMM = 1 << 1, INIT_WITH_UNIQUEID = 1 << 3 };
enum { SIGNAL_SET = 9, SIGNAL_ADD = 10 };
enum { SPECIFICATION_MAJOR = 1, SPECIFICATION_MINOR = 3 };

struct uniqueid_args {
    int version;
    gshmem_uniqueid_t *id;
    int myrank, nranks;
};

/* The beginning, which all versions of it have; programs have more behind it. */
struct init_attr {
    int version;
    void *mpi_comm;
    struct {
        int version;
        struct uniqueid_args uid_args;
    } args;
};

_Static_assert(offsetof(struct init_attr, args.uid_args.id) == 32, "NVSHMEM's layout");
_Static_assert(sizeof(gshmem_uniqueid_t) == 128, "the size of NVSHMEM's ids");

struct team_config {
    int version, num_contexts;
};

struct device_version {
    int major, minor, patch;
};

/* ---- Start and end ---- */

/* By no transport do kernels reach a NIC themselves. */
NVSHMEM int nvshmem_selected_device_transport = 0;

static atomic_int asked; /* how often NVSHMEM's device library has asked since the start */
static atomic_bool said;

NVSHMEM int nvshmemx_get_uniqueid(gshmem_uniqueid_t *uniqueid)
{
    return (int)gshmem_get_uniqueid(uniqueid);
}

NVSHMEM int nvshmemx_set_attr_uniqueid_args(int myrank, int nranks,
                                            const gshmem_uniqueid_t *uniqueid,
                                            struct init_attr *attr)
{
    if (!uniqueid || !attr || myrank < 0 || myrank >= nranks)
        return INVALID_VALUE;
    attr->args.uid_args.id = (gshmem_uniqueid_t *)uniqueid;
    attr->args.uid_args.myrank = myrank;
    attr->args.uid_args.nranks = nranks;
    return SUCCESS;
}

NVSHMEM int nvshmemx_hostlib_init_attr(unsigned flags, const struct init_attr *attributes)
{
    gshmem_init_attr_t attr;

    memset(&attr, 0, sizeof attr);
    if (flags == INIT_WITH_MPI_COMM && attributes) {
        attr.mpi_comm = attributes->mpi_comm;
    } else if (flags == INIT_WITH_UNIQUEID && attributes) {
        attr.uid = attributes->args.uid_args.id;
        attr.pe = attributes->args.uid_args.myrank;
        attr.n_pes = attributes->args.uid_args.nranks;
    } else if (flags != 0) {
        return NOT_SUPPORTED;
    }
    atomic_store(&asked, 0);
    gshmem_status_t status = gshmem_init_attr(&attr);
    return (int)(status ? status : gshmem_path_own_memory());
}

/* What NVSHMEM's device library calls, with its version, and a function by which the host library
 * would reach its state. */
NVSHMEM int nvshmemid_hostlib_init_attr(int requested, int *provided, unsigned flags,
                                        const struct init_attr *attr, struct device_version version,
                                        void (*state)(void **, void **))
{
    (void)version, (void)state;
    int status = nvshmemx_hostlib_init_attr(flags, attr);
    if (!status && provided)
        *provided = requested;
    return status;
}

/* Asked once by each start, and then before each launch of a kernel. */
NVSHMEM int nvshmemid_init_status(void)
{
    if (atomic_fetch_add(&asked, 1) > 0 && gshmem_initialized() && !atomic_exchange(&said, true))
        fprintf(stderr,
                "gshmem[%d] error: a kernel with NVSHMEM's own device library inside is not run: "
                "GSHMEM has calls of the host and on streams for it alone; compile the kernel with "
                "GSHMEM's nvshmem.h, or link GSHMEM's libnvshmem_device.bc\n",
                gshmem_my_pe());
    return NOT_INITIALIZED;
}

NVSHMEM int nvshmemx_init_status(void)
{
    return gshmem_initialized() ? IS_INITIALIZED : NOT_INITIALIZED;
}

NVSHMEM void nvshmemx_hostlib_finalize(void)
{
    gshmem_raise(gshmem_finalize());
}

NVSHMEM void nvshmemid_hostlib_finalize(void *state, void *transport_state)
{
    (void)state, (void)transport_state;
    nvshmemx_hostlib_finalize();
}

NVSHMEM void nvshmem_info_get_version(int *major, int *minor)
{
    *major = SPECIFICATION_MAJOR;
    *minor = SPECIFICATION_MINOR;
}

NVSHMEM int nvshmem_my_pe(void)
{
    return gshmem_my_pe();
}

NVSHMEM int nvshmem_n_pes(void)
{
    return gshmem_n_pes();
}

/* A module of Triton's, with libnvshmem_device.bc. */
NVSHMEM int nvshmemx_cumodule_init(void *module)
{
    return (int)gshmem_cumodule_init(module);
}

NVSHMEM int nvshmemx_cumodule_finalize(void *module)
{
    return (int)gshmem_cumodule_finalize(module);
}

/* ---- Memory ---- */

NVSHMEM void *nvshmem_malloc(size_t bytes)
{
    return gshmem_malloc(bytes);
}

NVSHMEM void *nvshmem_calloc(size_t count, size_t bytes)
{
    return gshmem_calloc(count, bytes);
}

NVSHMEM void *nvshmem_align(size_t alignment, size_t bytes)
{
    return gshmem_align(alignment, bytes);
}

NVSHMEM void nvshmem_free(void *ptr)
{
    gshmem_raise(gshmem_free(ptr));
}

NVSHMEM void *nvshmem_ptr(const void *dest, int pe)
{
    return gshmem_ptr(dest, pe);
}

NVSHMEM void *nvshmemx_mc_ptr(gshmem_team_t team, const void *ptr)
{
    return gshmem_mc_ptr(team, ptr);
}

/* ---- Teams: their numbers are NVSHMEM's ---- */

NVSHMEM int nvshmem_team_my_pe(gshmem_team_t team)
{
    return gshmem_team_my_pe(team);
}

NVSHMEM int nvshmem_team_n_pes(gshmem_team_t team)
{
    return gshmem_team_n_pes(team);
}

NVSHMEM int nvshmem_team_split_strided(gshmem_team_t parent, int start, int stride, int size,
                                       const struct team_config *config, long mask,
                                       gshmem_team_t *new_team)
{
    gshmem_team_config_t wants = {.num_contexts = config && mask ? config->num_contexts : 0};

    return (int)gshmem_team_split_strided(parent, start, stride, size, &wants, config ? mask : 0,
                                          new_team);
}

NVSHMEM void nvshmem_team_destroy(gshmem_team_t team)
{
    gshmem_raise(gshmem_team_destroy(team));
}

/* ---- Order, by the host and on streams ---- */

NVSHMEM void nvshmem_quiet(void)
{
    gshmem_raise(gshmem_quiet());
}

NVSHMEM void nvshmem_barrier_all(void)
{
    gshmem_raise(gshmem_barrier_all());
}

NVSHMEM void nvshmemx_barrier_all_on_stream(gshmem_stream_t stream)
{
    gshmem_raise(gshmem_barrier_all_on_stream(stream));
}

NVSHMEM void nvshmemx_quiet_on_stream(gshmem_stream_t stream)
{
    gshmem_raise(gshmem_quiet_on_stream(stream));
}

NVSHMEM void nvshmemx_putmem_on_stream(void *dest, const void *source, size_t bytes, int pe,
                                       gshmem_stream_t stream)
{
    gshmem_raise(gshmem_putmem_on_stream(dest, source, bytes, pe, stream));
}

NVSHMEM void nvshmemx_getmem_on_stream(void *dest, const void *source, size_t bytes, int pe,
                                       gshmem_stream_t stream)
{
    gshmem_raise(gshmem_getmem_on_stream(dest, source, bytes, pe, stream));
}

/* Another number is left as it is: the call refuses it. */
static int signal_operation(int number)
{
    if (number == SIGNAL_SET)
        return GSHMEM_SIGNAL_SET;
    return number == SIGNAL_ADD ? GSHMEM_SIGNAL_ADD : -1;
}

NVSHMEM void nvshmemx_putmem_signal_on_stream(void *dest, const void *source, size_t bytes,
                                              uint64_t *sig_addr, uint64_t signal, int sig_op,
                                              int pe, gshmem_stream_t stream)
{
    gshmem_raise(gshmem_putmem_signal_on_stream(dest, source, bytes, sig_addr, signal,
                                                signal_operation(sig_op), pe, stream));
}

NVSHMEM void nvshmemx_signal_op_on_stream(uint64_t *sig_addr, uint64_t signal, int sig_op, int pe,
                                          gshmem_stream_t stream)
{
    gshmem_raise(
        gshmem_signal_op_on_stream(sig_addr, signal, signal_operation(sig_op), pe, stream));
}

NVSHMEM void nvshmemx_signal_wait_until_on_stream(uint64_t *sig_addr, int cmp, uint64_t value,
                                                  gshmem_stream_t stream)
{
    gshmem_raise(gshmem_signal_wait_until_on_stream(sig_addr, cmp, value, stream));
}

NVSHMEM int nvshmemx_broadcastmem_on_stream(gshmem_team_t team, void *dest, const void *source,
                                            size_t bytes, int root, gshmem_stream_t stream)
{
    return (int)gshmem_broadcastmem_on_stream(team, dest, source, bytes, root, stream);
}

NVSHMEM int nvshmemx_alltoallmem_on_stream(gshmem_team_t team, void *dest, const void *source,
                                           size_t bytes, gshmem_stream_t stream)
{
    return (int)gshmem_alltoallmem_on_stream(team, dest, source, bytes, stream);
}
