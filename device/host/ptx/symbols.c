/* cudaMemcpyToSymbol and its kin, for programs whose kernels are PTX. (Where the host device
 * compiles kernels from their source a variable is itself, and the headers do without these.) */
#define _GNU_SOURCE
#include "device/host/ptx/symbols.h"

#include <pthread.h>
#include <stdlib.h>

#include "device/host/errors.h"
#include "runtime/base/log.h"

struct symbol {
    const void *host;
    const struct gshmem_host_ptx_variable *variable;
    const struct gshmem_host_ptx_module *module;
    struct symbol *next;
};

/* One for the process: a variable's address names it. */
static struct {
    pthread_mutex_t lock;
    struct symbol *first;
} symbols = {.lock = PTHREAD_MUTEX_INITIALIZER};

void symbols_add(const struct gshmem_host_ptx_module *module, const void *host,
                 const struct gshmem_host_ptx_variable *variable)
{
    struct symbol *symbol = malloc(sizeof *symbol);

    if (!symbol) {
        log_error("variable %s: no memory for its record: the program cannot copy to it",
                  variable->name);
        return;
    }
    *symbol = (struct symbol){host, variable, module, NULL};
    pthread_mutex_lock(&symbols.lock);
    symbol->next = symbols.first;
    symbols.first = symbol;
    pthread_mutex_unlock(&symbols.lock);
}

void symbols_forget(const struct gshmem_host_ptx_module *module)
{
    pthread_mutex_lock(&symbols.lock);
    for (struct symbol **at = &symbols.first; *at;) {
        struct symbol *symbol = *at;

        if (symbol->module != module) {
            at = &symbol->next;
            continue;
        }
        *at = symbol->next;
        free(symbol);
    }
    pthread_mutex_unlock(&symbols.lock);
}

static const struct gshmem_host_ptx_variable *symbol_find(const void *host)
{
    const struct gshmem_host_ptx_variable *found = NULL;

    pthread_mutex_lock(&symbols.lock);
    for (const struct symbol *symbol = symbols.first; symbol && !found; symbol = symbol->next) {
        if (symbol->host == host)
            found = symbol->variable;
    }
    pthread_mutex_unlock(&symbols.lock);
    return found;
}

/* Where `bytes` at the offset are; NULL: there is no such variable, or it is shorter. */
static char *symbol_part(const void *host, size_t offset, size_t bytes)
{
    const struct gshmem_host_ptx_variable *variable = symbol_find(host);

    if (!variable || offset > variable->bytes || bytes > variable->bytes - offset)
        return NULL;
    return (char *)variable->at + offset;
}

#pragma GCC visibility push(default)
cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                               enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset,
                                 enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes,
                                    size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset,
                                      enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaGetSymbolAddress(void **address, const void *symbol);
cudaError_t cudaGetSymbolSize(size_t *bytes, const void *symbol);
#pragma GCC visibility pop

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                               enum cudaMemcpyKind kind)
{
    char *at = symbol_part(symbol, offset, bytes);

    return at ? cudaMemcpy(at, from, bytes, kind) : report_error(cudaErrorInvalidSymbol);
}

cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset,
                                 enum cudaMemcpyKind kind)
{
    const char *at = symbol_part(symbol, offset, bytes);

    return at ? cudaMemcpy(to, at, bytes, kind) : report_error(cudaErrorInvalidSymbol);
}

cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes,
                                    size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    char *at = symbol_part(symbol, offset, bytes);

    return at ? cudaMemcpyAsync(at, from, bytes, kind, stream)
              : report_error(cudaErrorInvalidSymbol);
}

cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset,
                                      enum cudaMemcpyKind kind, cudaStream_t stream)
{
    const char *at = symbol_part(symbol, offset, bytes);

    return at ? cudaMemcpyAsync(to, at, bytes, kind, stream) : report_error(cudaErrorInvalidSymbol);
}

cudaError_t cudaGetSymbolAddress(void **address, const void *symbol)
{
    const struct gshmem_host_ptx_variable *variable = symbol_find(symbol);

    if (!variable)
        return report_error(cudaErrorInvalidSymbol);
    *address = variable->at;
    return cudaSuccess;
}

cudaError_t cudaGetSymbolSize(size_t *bytes, const void *symbol)
{
    const struct gshmem_host_ptx_variable *variable = symbol_find(symbol);

    if (!variable)
        return report_error(cudaErrorInvalidSymbol);
    *bytes = variable->bytes;
    return cudaSuccess;
}
