#!/usr/bin/env python3
"""Writes a program that compiles only if every typed function has the standard's prototype.

    prototypes.py FILE

The lists are OpenSHMEM 1.6's, copied by hand from its synopses and tables and not from the table that
typed.h is made of, so that a type or an argument missing there is missed here. Functions that return
nothing there return a status here.
"""

import sys

from standard import AMO, BITS, BITWISE, C, EXTENDED, RMA, SIZES, SUMS, WAIT

COPY = 'TYPE *dest, const TYPE *source, size_t nelems, int pe'
SIGNAL = ('TYPE *dest, const TYPE *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, '
          'int sig_op, int pe')
STRIDED = 'TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe'
BLOCKS = ('TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, '
          'size_t nblocks, int pe')
ONE = 'TYPE *dest, TYPE value, int pe'
FETCHED = 'TYPE *fetch, TYPE *dest, TYPE value, int pe'
MASK = 'TYPE *ivars, size_t nelems, const int *status, int cmp, '
SOME = 'TYPE *ivars, size_t nelems, size_t *indices, const int *status, int cmp, '
TEAM = 'int32_t team, TYPE *dest, const TYPE *source, '

STATUS = 'gshmem_status_t'

# With a context: types, what is returned, name with its type as %s, arguments.
CONTEXT = [
    (RMA, STATUS, '%s_put', COPY), (RMA, STATUS, '%s_get', COPY),
    (RMA, STATUS, '%s_put_nbi', COPY), (RMA, STATUS, '%s_get_nbi', COPY),
    (RMA, STATUS, '%s_p', ONE), (RMA, 'TYPE', '%s_g', 'const TYPE *source, int pe'),
    (RMA, STATUS, '%s_iput', STRIDED), (RMA, STATUS, '%s_iget', STRIDED),
    (RMA, STATUS, '%s_ibput', BLOCKS), (RMA, STATUS, '%s_ibget', BLOCKS),
    (RMA, STATUS, '%s_put_signal', SIGNAL), (RMA, STATUS, '%s_put_signal_nbi', SIGNAL),
    (SIZES, STATUS, 'put%s', COPY), (SIZES, STATUS, 'get%s', COPY),
    (SIZES, STATUS, 'put%s_nbi', COPY), (SIZES, STATUS, 'get%s_nbi', COPY),
    (SIZES, STATUS, 'iput%s', STRIDED), (SIZES, STATUS, 'iget%s', STRIDED),
    (SIZES, STATUS, 'ibput%s', BLOCKS), (SIZES, STATUS, 'ibget%s', BLOCKS),
    (SIZES, STATUS, 'put%s_signal', SIGNAL), (SIZES, STATUS, 'put%s_signal_nbi', SIGNAL),

    (EXTENDED, 'TYPE', '%s_atomic_fetch', 'const TYPE *source, int pe'),
    (EXTENDED, STATUS, '%s_atomic_set', ONE), (EXTENDED, 'TYPE', '%s_atomic_swap', ONE),
    (AMO, 'TYPE', '%s_atomic_compare_swap', 'TYPE *dest, TYPE cond, TYPE value, int pe'),
    (AMO, 'TYPE', '%s_atomic_fetch_inc', 'TYPE *dest, int pe'),
    (AMO, STATUS, '%s_atomic_inc', 'TYPE *dest, int pe'),
    (AMO, 'TYPE', '%s_atomic_fetch_add', ONE), (AMO, STATUS, '%s_atomic_add', ONE),
    (BITWISE, 'TYPE', '%s_atomic_fetch_and', ONE), (BITWISE, STATUS, '%s_atomic_and', ONE),
    (BITWISE, 'TYPE', '%s_atomic_fetch_or', ONE), (BITWISE, STATUS, '%s_atomic_or', ONE),
    (BITWISE, 'TYPE', '%s_atomic_fetch_xor', ONE), (BITWISE, STATUS, '%s_atomic_xor', ONE),
    (EXTENDED, STATUS, '%s_atomic_fetch_nbi', 'TYPE *fetch, const TYPE *source, int pe'),
    (AMO, STATUS, '%s_atomic_compare_swap_nbi',
     'TYPE *fetch, TYPE *dest, TYPE cond, TYPE value, int pe'),
    (EXTENDED, STATUS, '%s_atomic_swap_nbi', FETCHED),
    (AMO, STATUS, '%s_atomic_fetch_inc_nbi', 'TYPE *fetch, TYPE *dest, int pe'),
    (AMO, STATUS, '%s_atomic_fetch_add_nbi', FETCHED),
    (BITWISE, STATUS, '%s_atomic_fetch_and_nbi', FETCHED),
    (BITWISE, STATUS, '%s_atomic_fetch_or_nbi', FETCHED),
    (BITWISE, STATUS, '%s_atomic_fetch_xor_nbi', FETCHED),
]

PLAIN = [
    (WAIT, STATUS, '%s_wait_until', 'TYPE *ivar, int cmp, TYPE cmp_value'),
    (WAIT, 'int', '%s_test', 'TYPE *ivar, int cmp, TYPE cmp_value'),
    (WAIT, STATUS, '%s_wait_until_all', MASK + 'TYPE cmp_value'),
    (WAIT, 'size_t', '%s_wait_until_any', MASK + 'TYPE cmp_value'),
    (WAIT, 'size_t', '%s_wait_until_some', SOME + 'TYPE cmp_value'),
    (WAIT, STATUS, '%s_wait_until_all_vector', MASK + 'const TYPE *cmp_values'),
    (WAIT, 'size_t', '%s_wait_until_any_vector', MASK + 'const TYPE *cmp_values'),
    (WAIT, 'size_t', '%s_wait_until_some_vector', SOME + 'const TYPE *cmp_values'),
    (WAIT, 'int', '%s_test_all', MASK + 'TYPE cmp_value'),
    (WAIT, 'size_t', '%s_test_any', MASK + 'TYPE cmp_value'),
    (WAIT, 'size_t', '%s_test_some', SOME + 'TYPE cmp_value'),
    (WAIT, 'int', '%s_test_all_vector', MASK + 'const TYPE *cmp_values'),
    (WAIT, 'size_t', '%s_test_any_vector', MASK + 'const TYPE *cmp_values'),
    (WAIT, 'size_t', '%s_test_some_vector', SOME + 'const TYPE *cmp_values'),

    (RMA, STATUS, '%s_broadcast', TEAM + 'size_t nelems, int PE_root'),
    (RMA, STATUS, '%s_collect', TEAM + 'size_t nelems'),
    (RMA, STATUS, '%s_fcollect', TEAM + 'size_t nelems'),
    (RMA, STATUS, '%s_alltoall', TEAM + 'size_t nelems'),
    (RMA, STATUS, '%s_alltoalls', TEAM + 'ptrdiff_t dst, ptrdiff_t sst, size_t nelems'),
    (SUMS, STATUS, '%s_sum_inscan', TEAM + 'size_t nelems'),
    (SUMS, STATUS, '%s_sum_exscan', TEAM + 'size_t nelems'),
] + [(types, STATUS, '%%s_%s_%s' % (op, form), TEAM + 'size_t nreduce')
     for types, ops in ((BITS, 'and or xor'), (RMA, 'max min'), (SUMS, 'sum prod'))
     for op in ops.split() for form in ('reduce', 'reducescatter')]


def pointers(rows, prefix, first):
    out = ''
    for types, returns, name, arguments in rows:
        for type_name in types.split():
            text = '%s (*)(%s)' % (returns, first + arguments)
            out += '    FITS(%s, %s);\n' % (prefix + name % type_name,
                                           text.replace('TYPE', C.get(type_name, 'void')))
    return out


def main():
    with open(sys.argv[1], 'w', encoding='utf-8') as file:
        file.write('/* Generated by tests/typed/prototypes.py. */\n#include "gshmem.h"\n\n'
                   '#define FITS(function, ...) _Static_assert(_Generic(&(function), __VA_ARGS__: 1, '
                   'default: 0), "the prototype of " #function)\n\nint main(void)\n{\n'
                   + pointers(CONTEXT, 'gshmem_', '')
                   + pointers(CONTEXT, 'gshmem_ctx_', 'gshmem_ctx_t, ')
                   + pointers(PLAIN, 'gshmem_', '') + '    return 0;\n}\n')


if __name__ == '__main__':
    main()
