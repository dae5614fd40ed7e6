/* <cub/warp/warp_reduce.cuh> for programs built for the host device. */
#include "../warp.h"
