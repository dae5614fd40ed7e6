/* <cub/block/block_reduce.cuh> for programs built for the host device. */
#include "../reduce.h"
