/* The value of PMI_process_mapping: which PEs run on which node.
 *
 *     (vector,(first node,nodes,PEs per node),…)
 *
 * Each block deals PEs to its nodes in order, so many to each; when the blocks are used up and PEs
 * are left, they start again with the first. */
#ifndef GSHMEM_PMI_MAPPING_H
#define GSHMEM_PMI_MAPPING_H

#include <stdbool.h>

enum {
    PMI_NODE_LIMIT = 1 << 20, /* numbers of nodes are below this */
    PMI_PES_LIMIT = 1 << 24,  /* so many PEs can a job have */
};

/* Sets number[pe], 0 … PMI_NODE_LIMIT-1, for n_pes PEs. False: the text is not of this form. */
bool pmi_mapping_parse(const char *text, int n_pes, int *number);

#endif
