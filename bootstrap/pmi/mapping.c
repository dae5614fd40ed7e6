#include "bootstrap/pmi/mapping.h"

#include <stdlib.h>
#include <string.h>

struct block {
    int first;
    int nodes;
    int pes; /* per node */
};

/* Reads a number and the character after it; false if either is not there. */
static bool mapping_take_number(const char **text, char after, int most, int *number)
{
    char *end;

    if (**text < '0' || **text > '9')
        return false;
    long value = strtol(*text, &end, 10); /* too large a number saturates, and is refused below */
    if (value > most || *end != after)
        return false;
    *number = (int)value;
    *text = end + 1;
    return true;
}

static bool mapping_take_block(const char **text, struct block *b)
{
    if (**text != '(')
        return false;
    (*text)++;
    return mapping_take_number(text, ',', PMI_NODE_LIMIT - 1, &b->first) &&
           mapping_take_number(text, ',', PMI_NODE_LIMIT - b->first, &b->nodes) &&
           mapping_take_number(text, ')', PMI_PES_LIMIT, &b->pes);
}

/* Deals PEs from next on to the block's nodes; the next PE after that. */
static int deal(const struct block *b, int next, int n_pes, int *number)
{
    for (int i = 0; i < b->nodes && b->pes > 0 && next < n_pes; i++) {
        for (int j = 0; j < b->pes && next < n_pes; j++)
            number[next++] = b->first + i;
    }
    return next;
}

bool pmi_mapping_parse(const char *text, int n_pes, int *number)
{
    static const char head[] = "(vector,";
    int next = 0;

    if (strncmp(text, head, sizeof head - 1) != 0)
        return false;
    text += sizeof head - 1;
    for (const char *at = text;;) {
        struct block b;

        if (!mapping_take_block(&at, &b))
            return false;
        next = deal(&b, next, n_pes, number);
        if (*at == ',') {
            at++;
            continue;
        }
        if (strcmp(at, ")") != 0 || next == 0)
            return false; /* blocks that deal nothing would be dealt for ever */
        if (next == n_pes)
            return true;
        at = text;
    }
}
