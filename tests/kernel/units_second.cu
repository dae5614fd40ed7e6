/* Another translation unit of units.cu. */
#define UNITS_PASS units_pass_second
#include "units_pass.h"
