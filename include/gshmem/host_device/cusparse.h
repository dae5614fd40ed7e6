/* <cusparse.h> of a CUDA toolkit, with half and bfloat16 of the host device (toolkit.h).
 * Programs compile with it; the library's calls are not there to link with. */
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include_next <cusparse.h>
