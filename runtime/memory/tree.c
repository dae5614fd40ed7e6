#include "runtime/memory/tree.h"

/* Marsaglia's 32-bit xorshift: never 0, and a sequence of its own for each tree. */
static uint32_t next_priority(struct tree *t)
{
    t->random ^= t->random << 13;
    t->random ^= t->random >> 17;
    t->random ^= t->random << 5;
    return t->random;
}

/* Parts the nodes below root into those before key and those after it. */
static void split(const struct tree *t, struct tree_node *root, const struct tree_node *key,
                  struct tree_node **before, struct tree_node **after)
{
    while (root) {
        if (t->order(root, key) < 0) {
            *before = root;
            before = &root->more;
            root = root->more;
        } else {
            *after = root;
            after = &root->less;
            root = root->less;
        }
    }
    *before = *after = NULL;
}

/* Joins two trees into *to; everything in a comes before everything in b. */
static void join(struct tree_node *a, struct tree_node *b, struct tree_node **to)
{
    while (a && b) {
        if (a->priority >= b->priority) {
            *to = a;
            to = &a->more;
            a = a->more;
        } else {
            *to = b;
            to = &b->less;
            b = b->less;
        }
    }
    *to = a ? a : b;
}

void tree_insert(struct tree *t, struct tree_node *node)
{
    struct tree_node **at = &t->root;

    node->priority = next_priority(t);
    while (*at && (*at)->priority >= node->priority)
        at = t->order(*at, node) < 0 ? &(*at)->more : &(*at)->less;
    split(t, *at, node, &node->less, &node->more);
    *at = node;
}

void tree_erase(struct tree *t, const struct tree_node *node)
{
    struct tree_node **at = &t->root;

    while (*at != node)
        at = t->order(*at, node) < 0 ? &(*at)->more : &(*at)->less;
    join(node->less, node->more, at);
}

/* The first node that compares to key as `least` or more: 0 takes one that is the same, 1 not. */
static struct tree_node *first(const struct tree *t, const struct tree_node *key, int least)
{
    struct tree_node *found = NULL;

    for (struct tree_node *n = t->root; n;) {
        if (t->order(n, key) >= least) {
            found = n;
            n = n->less;
        } else {
            n = n->more;
        }
    }
    return found;
}

/* The last node that compares to key as `most` or less. */
static struct tree_node *last(const struct tree *t, const struct tree_node *key, int most)
{
    struct tree_node *found = NULL;

    for (struct tree_node *n = t->root; n;) {
        if (t->order(n, key) <= most) {
            found = n;
            n = n->more;
        } else {
            n = n->less;
        }
    }
    return found;
}

struct tree_node *tree_at_least(const struct tree *t, const struct tree_node *key)
{
    return first(t, key, 0);
}

struct tree_node *tree_at_most(const struct tree *t, const struct tree_node *key)
{
    return last(t, key, 0);
}

struct tree_node *tree_after(const struct tree *t, const struct tree_node *key)
{
    return first(t, key, 1);
}

struct tree_node *tree_before(const struct tree *t, const struct tree_node *key)
{
    return last(t, key, -1);
}

struct tree_node *tree_last(const struct tree *t)
{
    struct tree_node *n = t->root;

    while (n && n->more)
        n = n->more;
    return n;
}
