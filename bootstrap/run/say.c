#include "bootstrap/run/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void say(const char *format, ...)
{
    char line[1024];
    int used = snprintf(line, sizeof line, "gshmemrun: ");
    va_list args;

    va_start(args, format);
    int n = vsnprintf(line + used, sizeof line - (size_t)used - 1, format, args);
    va_end(args);
    if (n > 0)
        used += n < (int)sizeof line - used - 1 ? n : (int)sizeof line - used - 2;
    line[used++] = '\n';
    /* A line that stderr refuses has nowhere else to go. */
    if (write(STDERR_FILENO, line, (size_t)used) < 0)
        return;
}
