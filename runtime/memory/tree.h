/* Ordered trees whose nodes live inside the caller's own structs: no allocation, O(log n).
 *
 * Treaps: a search tree by the caller's order and a heap by priority, which keeps it balanced. The
 * priorities come from a fixed sequence, so the same calls always build the same tree. */
#ifndef GSHMEM_RUNTIME_TREE_H
#define GSHMEM_RUNTIME_TREE_H

#include <stddef.h>
#include <stdint.h>

struct tree_node {
    struct tree_node *less;
    struct tree_node *more;
    uint32_t priority; /* not below that of either child */
};

/* Negative, 0 or positive as a comes before b, is the same, or comes after. */
typedef int tree_order(const struct tree_node *a, const struct tree_node *b);

struct tree {
    struct tree_node *root;
    tree_order *order;
    uint32_t random;
};

static inline struct tree tree_empty(tree_order *order)
{
    return (struct tree){.order = order, .random = 2463534242u};
}

/* The struct that a node lives in. */
#define tree_entry(node, type, member) ((type *)((uintptr_t)(node) - offsetof(type, member)))

/* No node of the tree may be the same as this one. */
void tree_insert(struct tree *t, struct tree_node *node);
/* The node must be in the tree. */
void tree_erase(struct tree *t, const struct tree_node *node);

/* The nearest node on either side of key, or one that is the same as it; NULL: none. key need not
 * be in the tree. */
struct tree_node *tree_at_least(const struct tree *t, const struct tree_node *key);
struct tree_node *tree_at_most(const struct tree *t, const struct tree_node *key);
struct tree_node *tree_after(const struct tree *t, const struct tree_node *key);
struct tree_node *tree_before(const struct tree *t, const struct tree_node *key);
struct tree_node *tree_last(const struct tree *t);

#endif
