/* <cub/cub.cuh> for programs built for the host device. */
#include "arrange.h"
#include "missing.h"
#include "reduce.h"
#include "scan.h"
#include "warp.h"
