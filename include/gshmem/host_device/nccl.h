/* <nccl.h>, with half and bfloat16 of the host device (toolkit.h), which has no floats of 8 bits.
 * Programs compile with it; the library's calls are not there to link with. */
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#define __CUDA_FP8_H__
#include_next <nccl.h>
