/* <nvToolsExt.h>, as programs of older toolkits include it. */
#include <nvtx3/nvToolsExt.h>
