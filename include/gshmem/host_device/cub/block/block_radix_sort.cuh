/* <cub/block/block_radix_sort.cuh> for programs built for the host device. */
#include "../missing.h"
