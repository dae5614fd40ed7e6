/* <cub/thread/thread_operators.cuh> for programs built for the host device. */
#include "../operators.h"
