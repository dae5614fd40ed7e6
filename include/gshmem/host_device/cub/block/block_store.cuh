/* <cub/block/block_store.cuh> for programs built for the host device. */
#include "../arrange.h"
