#!/usr/bin/env python3
"""Writes gshmem/typed.h, gshmem/generic.h, gshmem/device/typed.h, nvshmem/typed.h,
nvshmem/device/typed.h, nvshmem/qp.h, and OpenSHMEM's headers and sources from the table.

    generate.py typed|generic|device|nvshmem|nvshmem-device|nvshmem-qp FILE
    generate.py openshmem-functions|-inline|-profiling|-generic|-extensions FILE
    generate.py openshmem-source-rma|-atomic|-wait|-collective|-inlined FILE
"""

import os
import sys

import native
from table import FAMILIES, SIZES, TYPES, function_name, parameters_for, sized_name, types_of
from text import comment, function, section

TYPED_TOP = '''\
/* The typed names of GSHMEM, gshmem_TYPE_… and gshmem_ctx_TYPE_…: generated from one table of types
 * and operations (include/generate/table.py in the sources); not to be edited.
 *
 * Each is a function of gshmem.h, gshmem/rma.h or gshmem/atomic.h for one type; the comment of its
 * family says which. Functions that return a gshmem_status_t return that function's; functions that
 * return a value hand a failure to the error policy. gshmem_ctx_… take their context first, all
 * others use GSHMEM_CTX_DEFAULT; …_on_stream take a stream last (gshmem/stream.h). */
#ifndef GSHMEM_TYPED_H
#define GSHMEM_TYPED_H

#include "gshmem.h"
#include "gshmem/stream.h"
#include "gshmem/wait.h"

#ifdef __cplusplus
extern "C" {
#endif

'''

ASSERTS_TOP = '''\
/* The sizes that the table has for the types. */
#ifdef __cplusplus
#define GSHMEM_ASSERT static_assert
#else
#define GSHMEM_ASSERT _Static_assert
#endif
'''

TYPED_END = '''\
#ifdef __cplusplus
}
#endif
#endif
'''

def both_forms(operation, returns, parameters, body, name):
    """The function on a context and the one on the default context; or the only one there is."""
    declarations = [declaration for declaration, _ in parameters]
    prefix = native.prefix(operation)
    if not operation.context:
        return function(returns, name(False), declarations, body, prefix) + '\n'
    arguments = ', '.join(['GSHMEM_CTX_DEFAULT'] + [argument for _, argument in parameters])
    call = 'return %s(%s);' % (name(True), arguments)
    return (function(returns, name(True), ['gshmem_ctx_t ctx'] + declarations, body, prefix) + '\n'
            + function(returns, name(False), declarations, [call], prefix) + '\n')


def typed_operation(operation):
    out = ''
    for t in types_of(operation):
        out += both_forms(operation, native.returned(operation, t.c), parameters_for(operation, t.c),
                          native.body(operation, t),
                          lambda ctx: function_name(operation, t.name, ctx))
    for bits in SIZES if operation.sized else []:
        out += both_forms(operation, native.returned(operation, 'void'), parameters_for(operation, 'void'),
                          native.sized_body(operation, bits),
                          lambda ctx: sized_name(operation, bits, ctx))
    return out + (stream_forms(operation) if operation.stream else '')


def stream_forms(operation):
    out = ''
    for t in types_of(operation):
        out += native.stream_function(function_name(operation, t.name), operation, t.c,
                                      native.stream_body(operation, t),
                                      native.prefix(operation))
    for bits in SIZES if operation.sized else []:
        out += native.stream_function(sized_name(operation, bits), operation, 'void',
                                      native.sized_stream_body(operation, bits),
                                      native.prefix(operation))
    return out


def typed():
    out = TYPED_TOP + ASSERTS_TOP
    for t in TYPES:
        out += 'GSHMEM_ASSERT(sizeof(%s) == %d, "%s");\n' % (t.c, t.size, t.c)
    out += '#undef GSHMEM_ASSERT\n\n'
    for family in FAMILIES:
        out += section(family.name) + comment(family.comment) + '\n'
        out += ''.join(typed_operation(operation) for operation in family.operations)
    return out + TYPED_END


def main():
    import device
    import facade
    import generic
    import openshmem
    import openshmem_generic
    what, path = sys.argv[1:]
    writers = {'typed': typed, 'generic': generic.generic, 'device': device.device,
               'nvshmem': facade.typed, 'nvshmem-device': facade.device, 'nvshmem-qp': facade.qp,
               'openshmem-functions': openshmem.functions, 'openshmem-inline': openshmem.inline,
               'openshmem-profiling': openshmem.profiling,
               'openshmem-extensions': openshmem.extensions,
               'openshmem-generic': openshmem_generic.generic,
               'openshmem-source-inlined': openshmem.inlined}
    writers.update({'openshmem-source-' + part: lambda part=part: openshmem.source(part)
                    for part in openshmem.PARTS})
    text = writers[what]()
    if os.path.exists(path) and open(path, encoding='utf-8').read() == text:
        return  # as it was: what includes it need not be compiled again
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)


if __name__ == '__main__':
    sys.dont_write_bytecode = True
    main()
