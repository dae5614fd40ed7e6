/* <cub/block/block_scan.cuh> for programs built for the host device. */
#include "../scan.h"
