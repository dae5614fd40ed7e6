/* A program compiled with headers of another layout is refused by init, with a line that names both.
 * The note of such headers stands beside this program's own. */
#include "pe.h"

GSHMEM_NOTE(7, 3, 2, 1);

int main(void)
{
    char own[60];

    snprintf(own, sizeof own, "%s (layout %d)", GSHMEM_VERSION_TEXT, GSHMEM_LAYOUT);
    setenv("GSHMEM_LOG", "none", 1);
    setenv("GSHMEM_ON_ERROR", "return", 1);
    CHECK_FAILS(gshmem_init(), GSHMEM_ERR_UNSUPPORTED, "this program was compiled with");
    CHECK_FAILS(gshmem_init(), GSHMEM_ERR_UNSUPPORTED, "GSHMEM 3.2.1 (layout 7)");
    CHECK_FAILS(gshmem_init(), GSHMEM_ERR_UNSUPPORTED, own);
    return 0;
}
