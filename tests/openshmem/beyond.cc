#include "beyond.c"
