/* Fuzz target: the map of hosts that a PMI-1 launcher gives. An input is a byte for the number of
 * PEs, then the text. A map that is taken gives each PE a host in range. */
#include <stdlib.h>
#include <string.h>

#include "bootstrap/pmi/mapping.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    int number[256];

    if (bytes == 0)
        return 0;
    char *text = malloc(bytes);
    if (!text)
        return 0;
    memcpy(text, data + 1, bytes - 1);
    text[bytes - 1] = 0;
    memset(number, 0xff, sizeof number);
    if (pmi_mapping_parse(text, 1 + data[0], number)) {
        for (int pe = 0; pe <= data[0]; pe++) {
            if (number[pe] < 0 || number[pe] >= PMI_NODE_LIMIT)
                abort();
        }
    }
    free(text);
    return 0;
}

size_t fuzz_seed(unsigned number, uint8_t *data, size_t capacity)
{
    static const char *const seeds[] = {
        "\x03(vector,(0,2,2))",
        "\xff(vector,(0,1,4),(1,3,2),(7,1,1))",
        "\x10(vector,(1048575,1,16777216))",
        "\x10(vector,(0,1048576,0),(5,2,1))",
    };

    if (number >= sizeof seeds / sizeof seeds[0] || strlen(seeds[number]) > capacity)
        return 0;
    memcpy(data, seeds[number], strlen(seeds[number]));
    return strlen(seeds[number]);
}
