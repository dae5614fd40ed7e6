/* <curand.h> of a CUDA toolkit (toolkit.h). It expects <cuda_runtime.h> to have included another of
 * its headers. Programs compile with it; the library's calls are not there to link with. */
#include <library_types.h>
#include_next <curand.h>
