/* The life of a program: init, finalize, and queries about itself and its peers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/facades/openshmem/openshmem.h"
#include "shmemx.h"

/* Where inline code looks for mapped peers: a context without PEs once a tool replaces functions.
 * Which tools there are is known when the program is loaded. */
GSHMEM_API const struct gshmem_ctx *gshmem_shmem_view;
GSHMEM_API void (*const gshmem_shmem_copy_much)(void *to, const void *from,
                                                size_t bytes) = gshmem_path_copy;

static __attribute__((constructor)) void choose_view(void)
{
    gshmem_shmem_view = openshmem_is_own() ? gshmem_ctx_default : gshmem_ctx_none;
}

/* ---- The standard's environment variables ---- */

static const char *variable(const char *name)
{
    char old[64], new[64];

    snprintf(new, sizeof new, "SHMEM_%s", name);
    snprintf(old, sizeof old, "SMA_%s", name); /* deprecated */
    return getenv(new) ? getenv(new) : getenv(old);
}

static const char help[] = "OpenSHMEM's environment variables (SMA_… are read, too):\n"
                           "  SHMEM_VERSION         print the library's version at start-up\n"
                           "  SHMEM_INFO            print this\n"
                           "  SHMEM_SYMMETRIC_SIZE  bytes that the symmetric heap must at least be "
                           "able to grow to: 64m, 1.5G\n"
                           "  SHMEM_DEBUG           debugging messages (as GSHMEM_LOG=debug)\n"
                           "gshmem-info --settings lists GSHMEM's own, with their values.\n";

static void setup_greet(void)
{
    if (gshmem_my_pe() != 0)
        return;
    if (variable("VERSION"))
        printf(SHMEM_VENDOR_STRING ", OpenSHMEM %d.%d\n", SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION);
    if (variable("INFO"))
        fputs(help, stdout);
    fflush(stdout);
}

/* ---- Init and finalize ---- */

static gshmem_status_t setup_start(int requested, int *provided)
{
    bool first = !gshmem_initialized();
    gshmem_status_t status;

    if (first && variable("DEBUG"))
        setenv("GSHMEM_LOG", "debug", 0);
    status = gshmem_init_thread(requested, provided);
    if (!status && first)
        setup_greet();
    return status;
}

void pshmem_init(void)
{
    settle(setup_start(GSHMEM_THREAD_SINGLE, NULL));
}
WEAK(shmem_init)

int pshmem_init_thread(int requested, int *provided)
{
    return (int)setup_start(requested, provided);
}
WEAK(shmem_init_thread)

void pshmem_query_thread(int *provided)
{
    *provided = gshmem_query_thread();
}
WEAK(shmem_query_thread)

void pshmem_query_initialized(int *initialized)
{
    *initialized = gshmem_initialized();
}
WEAK(shmem_query_initialized)

/* Before init, or after the last finalize, there is nothing to end. */
void pshmem_finalize(void)
{
    if (gshmem_initialized())
        settle(gshmem_finalize());
}
WEAK(shmem_finalize)

void pshmem_global_exit(int status)
{
    gshmem_global_exit(status);
}
WEAK(shmem_global_exit)

/* May be called again, without effect. */
void pstart_pes(int npes)
{
    (void)npes;
    if (!gshmem_initialized())
        pshmem_init();
}
WEAK(start_pes)

/* ---- Queries ---- */

int pshmem_my_pe(void)
{
    return gshmem_my_pe();
}
WEAK(shmem_my_pe)

int pshmem_n_pes(void)
{
    return gshmem_n_pes();
}
WEAK(shmem_n_pes)

int p_my_pe(void)
{
    return gshmem_my_pe();
}
WEAK(_my_pe)

int p_num_pes(void)
{
    return gshmem_n_pes();
}
WEAK(_num_pes)

int pshmem_pe_accessible(int pe)
{
    return gshmem_pe_accessible(pe);
}
WEAK(shmem_pe_accessible)

int pshmem_addr_accessible(const void *addr, int pe)
{
    return gshmem_addr_accessible(addr, pe);
}
WEAK(shmem_addr_accessible)

void *pshmem_ptr(const void *dest, int pe)
{
    return gshmem_ptr(dest, pe);
}
WEAK(shmem_ptr)

void *pshmem_team_ptr(shmem_team_t team, const void *dest, int pe)
{
    return team == SHMEM_TEAM_INVALID ? NULL : gshmem_team_ptr(team_number(team), dest, pe);
}
WEAK(shmem_team_ptr)

void pshmem_info_get_version(int *major, int *minor)
{
    *major = SHMEM_MAJOR_VERSION;
    *minor = SHMEM_MINOR_VERSION;
}
WEAK(shmem_info_get_version)

void pshmem_info_get_name(char *name)
{
    strcpy(name, SHMEM_VENDOR_STRING);
}
WEAK(shmem_info_get_name)

double shmemx_wtime(void)
{
    return 1e-9 * (double)clock_ns();
}

/* Threads are distinguished by other means here. */
void shmemx_register_gettid(uint64_t (*gettid)(void))
{
    (void)gettid;
}

void pshmem_pcontrol(int level, ...)
{
    (void)level;
}
WEAK(shmem_pcontrol)
