/* <cusparse.h> of a CUDA toolkit, with half and bfloat16 of the host device (toolkit.h).
 * Programs compile with it; the library's calls do not link, and a line at each says so. */
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#undef CUSPARSEAPI
#define CUSPARSEAPI GSHMEM_HOST_NOT_LINKED("cuSPARSE")
#include_next <cusparse.h>
