#include "device/host/calling_thread.h"

__thread struct calling_thread calling_thread __attribute__((tls_model("initial-exec")));
