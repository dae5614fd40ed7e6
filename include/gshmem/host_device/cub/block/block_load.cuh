/* <cub/block/block_load.cuh> for programs built for the host device. */
#include "../arrange.h"
