/* Indexed operations on copies that are mapped: loads, stores and atomic adds in place. */
#include <string.h>

#include "runtime/base/atomic_type.h"
#include "runtime/operations/indexed.h"

/* How one element is moved: a constant in each of the loops below. */
enum move { PUT, PUT_4, PUT_8, GET, GET_4, GET_8, ADD_4, ADD_8, ADD_REAL };

static enum move move_of(const struct indexed *ix)
{
    if (ix->each == TRANSPORT_ATOMIC)
        return atomic_type_is_real(ix->type) ? ADD_REAL : ix->element == 4 ? ADD_4 : ADD_8;
    const enum move any = ix->each == TRANSPORT_GET ? GET : PUT;
    return ix->element == 4 ? any + 1 : ix->element == 8 ? any + 2 : any;
}

static void add_real(int type, size_t bytes, void *at, const char *mine)
{
    uint64_t operand = 0;
    uint32_t half;

    if (bytes == sizeof half) {
        memcpy(&half, mine, sizeof half);
        operand = half;
    } else {
        memcpy(&operand, mine, sizeof operand);
    }
    atomic_apply(GSHMEM_AMO_ADD, type, at, operand, 0);
}

static inline __attribute__((always_inline)) void move_one(const struct indexed *ix, char *there,
                                                           size_t i, enum move move)
{
    const size_t bytes = move == PUT_4 || move == GET_4 || move == ADD_4   ? 4
                         : move == PUT_8 || move == GET_8 || move == ADD_8 ? 8
                                                                           : ix->element;
    char *at = there + ix->index[i] * bytes, *mine = ix->local + i * bytes;
    uint32_t half;
    uint64_t whole;

    switch (move) {
    case PUT:
    case PUT_4:
    case PUT_8:
        memcpy(at, mine, bytes);
        break;
    case GET:
    case GET_4:
    case GET_8:
        memcpy(mine, at, bytes);
        break;
    case ADD_4:
        memcpy(&half, mine, sizeof half);
        __atomic_fetch_add((uint32_t *)(void *)at, half, __ATOMIC_RELAXED);
        break;
    case ADD_8:
        memcpy(&whole, mine, sizeof whole);
        __atomic_fetch_add((uint64_t *)(void *)at, whole, __ATOMIC_RELAXED);
        break;
    case ADD_REAL:
        add_real(ix->type, bytes, at, mine);
        break;
    }
}

/* there: of all elements; NULL: each has a PE. */
static inline __attribute__((always_inline)) void
move_some(const struct indexed *ix, char *there, const struct elements *e, enum move move)
{
    for (size_t k = 0; k < e->n; k++) {
        const size_t i = elements_at(e, k);
        move_one(ix, there ? there : (char *)ix->peer[ix->pes[i]] + ix->offset, i, move);
    }
}

static inline __attribute__((always_inline)) void
move_all(const struct indexed *call, char *there, const struct elements *some)
{
    /* Copies of our own, which no element's store may change as far as the compiler knows. */
    const struct indexed ix = *call;
    const struct elements e = *some;

    switch (move_of(&ix)) {
    case PUT:
        move_some(&ix, there, &e, PUT);
        break;
    case PUT_4:
        move_some(&ix, there, &e, PUT_4);
        break;
    case PUT_8:
        move_some(&ix, there, &e, PUT_8);
        break;
    case GET:
        move_some(&ix, there, &e, GET);
        break;
    case GET_4:
        move_some(&ix, there, &e, GET_4);
        break;
    case GET_8:
        move_some(&ix, there, &e, GET_8);
        break;
    case ADD_4:
        move_some(&ix, there, &e, ADD_4);
        break;
    case ADD_8:
        move_some(&ix, there, &e, ADD_8);
        break;
    case ADD_REAL:
        move_some(&ix, there, &e, ADD_REAL);
        break;
    }
}

void indexed_move(const struct indexed *ix, char *there, const struct elements *e)
{
    move_all(ix, there, e);
}

void indexed_move_mapped(const struct indexed *ix, const struct elements *e)
{
    move_all(ix, NULL, e);
}

void indexed_find_peers(struct indexed *ix)
{
    const struct gshmem_ctx *view = &ix->c->view;
    const struct gshmem_segment *const segments[] = {&view->heap, &view->data};

    ix->peer = NULL;
    for (int s = 0; s < 2 && !ix->peer; s++) {
        ix->offset = (uintptr_t)ix->object - segments[s]->base;
        if (ix->offset < segments[s]->bytes && ix->span <= segments[s]->bytes - ix->offset)
            ix->peer = segments[s]->peer;
    }
}

bool indexed_is_all_mapped(const struct indexed *ix)
{
    const int pes = ix->c->view.n_pes;

    if (!ix->peer || (size_t)pes > ix->n)
        return false;
    for (int pe = 0; pe < pes; pe++)
        if (!ix->peer[pe])
            return false;
    return true;
}
