/* <cub/warp/warp_scan.cuh> for programs built for the host device. */
#include "../warp.h"
