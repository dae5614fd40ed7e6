/* The library that units.cu loads while a job runs, and unloads. */
#define UNITS_PASS units_pass_library
#include "units_pass.h"
