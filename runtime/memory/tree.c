#include "runtime/memory/tree.h"

#include <stdbool.h>

/* Marsaglia's 32-bit xorshift: never 0, and a separate sequence for each tree. */
static uint32_t next_priority(struct tree *t)
{
    t->random ^= t->random << 13;
    t->random ^= t->random >> 17;
    t->random ^= t->random << 5;
    return t->random;
}

static bool comes_before(struct tree_key a, struct tree_key b)
{
    return a.major != b.major ? a.major < b.major : a.minor < b.minor;
}

/* Splits the nodes below root into those before key and those after it. */
static void split(struct tree_node *root, struct tree_key key, struct tree_node **before,
                  struct tree_node **after)
{
    while (root) {
        if (comes_before(root->key, key)) {
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

/* Joins two trees into *to; every node of a comes before every node of b. */
static void tree_join(struct tree_node *a, struct tree_node *b, struct tree_node **to)
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

void tree_insert(struct tree *t, struct tree_node *node, struct tree_key key)
{
    struct tree_node **at = &t->root;

    node->key = key;
    node->priority = next_priority(t);
    while (*at && (*at)->priority >= node->priority)
        at = comes_before((*at)->key, key) ? &(*at)->more : &(*at)->less;
    split(*at, key, &node->less, &node->more);
    *at = node;
}

void tree_erase(struct tree *t, const struct tree_node *node)
{
    struct tree_node **at = &t->root;

    while (*at != node)
        at = comes_before((*at)->key, node->key) ? &(*at)->more : &(*at)->less;
    tree_join(node->less, node->more, at);
}

/* The first node after key; or_same: or the node with that key. */
static struct tree_node *first(const struct tree *t, struct tree_key key, bool or_same)
{
    struct tree_node *found = NULL;

    for (struct tree_node *n = t->root; n;) {
        if (or_same ? !comes_before(n->key, key) : comes_before(key, n->key)) {
            found = n;
            n = n->less;
        } else {
            n = n->more;
        }
    }
    return found;
}

/* The last node before key; or_same: or the node with that key. */
static struct tree_node *last(const struct tree *t, struct tree_key key, bool or_same)
{
    struct tree_node *found = NULL;

    for (struct tree_node *n = t->root; n;) {
        if (or_same ? !comes_before(key, n->key) : comes_before(n->key, key)) {
            found = n;
            n = n->more;
        } else {
            n = n->less;
        }
    }
    return found;
}

struct tree_node *tree_at_least(const struct tree *t, struct tree_key key)
{
    return first(t, key, true);
}

struct tree_node *tree_at_most(const struct tree *t, struct tree_key key)
{
    return last(t, key, true);
}

struct tree_node *tree_after(const struct tree *t, struct tree_key key)
{
    return first(t, key, false);
}

struct tree_node *tree_before(const struct tree *t, struct tree_key key)
{
    return last(t, key, false);
}

struct tree_node *tree_last(const struct tree *t)
{
    struct tree_node *n = t->root;

    while (n && n->more)
        n = n->more;
    return n;
}
