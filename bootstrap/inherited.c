#include "bootstrap/inherited.h"

#include "runtime/base/nearest.h"

/* Of the process, and not of a bootstrap's object: it is set before any object exists. */
static struct {
    int fd;
    ino_t inode;
} loaded_with = {.fd = -1};

__attribute__((constructor)) static void inherited_record(void)
{
    loaded_with.fd = nearest_pmi_descriptor(&loaded_with.inode);
}

bool inherited_is_open(void)
{
    ino_t inode;
    int fd = nearest_pmi_descriptor(&inode);

    return fd >= 0 && fd == loaded_with.fd && inode == loaded_with.inode;
}

bool inherited_was_closed(void)
{
    ino_t inode;
    int fd = nearest_pmi_descriptor(&inode);

    return loaded_with.fd >= 0 &&
           (fd < 0 || (fd == loaded_with.fd && inode != loaded_with.inode));
}
