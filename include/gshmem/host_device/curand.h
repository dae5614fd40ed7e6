/* <curand.h> of a CUDA toolkit (toolkit.h). It expects <cuda_runtime.h> to have included another of
 * its headers. Programs compile with it; the library's calls do not link, and a line at each says
 * so. */
#include <library_types.h>
#undef CURANDAPI
#define CURANDAPI GSHMEM_HOST_NOT_LINKED("cuRAND")
#include_next <curand.h>
