/* For tests that load modules: a file of PTX. */
#ifndef TESTS_CUDA_IMAGE_H
#define TESTS_CUDA_IMAGE_H

#include <stdio.h>
#include <stdlib.h>

#include "../check.h"

/* To be freed. */
static inline char *read_image(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *image = NULL;
    size_t bytes = 0, part;

    if (!file)
        CHECK_FAIL("%s cannot be opened", path);
    do {
        CHECK(image = realloc(image, bytes + (1 << 20) + 1));
        bytes += part = fread(image + bytes, 1, 1 << 20, file);
    } while (part);
    image[bytes] = 0;
    CHECK_EQ(fclose(file), 0);
    return image;
}

#endif
