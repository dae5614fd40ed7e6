/* Ordered trees whose nodes are inside the caller's own structs: no allocation, O(log n).
 *
 * They are treaps: a search tree by key and a heap by priority, which keeps it balanced. The
 * priorities come from a fixed sequence, so that the same calls always build the same tree. */
#ifndef GSHMEM_RUNTIME_TREE_H
#define GSHMEM_RUNTIME_TREE_H

#include <stddef.h>
#include <stdint.h>

/* Two numbers, compared in this order. They are in the node itself: one cache line for each
 * step. */
struct tree_key {
    size_t major;
    size_t minor;
};

struct tree_node {
    struct tree_node *less;
    struct tree_node *more;
    struct tree_key key;
    uint32_t priority; /* not less than that of either child */
};

struct tree {
    struct tree_node *root;
    uint32_t random; /* not 0 */
};

static inline struct tree tree_empty(void)
{
    return (struct tree){.root = NULL, .random = 2463534242u};
}

/* The struct that contains the node. */
#define tree_entry(node, type, member) ((type *)((uintptr_t)(node)-offsetof(type, member)))

/* No node of the tree may have this key. */
void tree_insert(struct tree *t, struct tree_node *node, struct tree_key key);
/* The node must be in the tree. */
void tree_erase(struct tree *t, const struct tree_node *node);

/* The nearest node on either side of key, or the node with that key; NULL: none. */
struct tree_node *tree_at_least(const struct tree *t, struct tree_key key);
struct tree_node *tree_at_most(const struct tree *t, struct tree_key key);
/* The next node on either side. */
struct tree_node *tree_after(const struct tree *t, struct tree_key key);
struct tree_node *tree_before(const struct tree *t, struct tree_key key);
struct tree_node *tree_last(const struct tree *t);

#endif
