/* How each call of a simulated libibverbs begins. */
#ifndef FAKE_CALL_H
#define FAKE_CALL_H

#include <stdbool.h>

/* Whether it fails is tests/nth's affair, where that is loaded. */
bool nth_simulated_fails(const char *call, const void *from) __attribute__((weak, visibility("default")));
#define FAKE_CALL(failed)                                                                          \
    do {                                                                                           \
        if (nth_simulated_fails && nth_simulated_fails(__func__, __builtin_return_address(0)))     \
            return failed;                                                                         \
    } while (0)

#endif
