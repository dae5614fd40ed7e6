#!/usr/bin/env python3
"""Writes a program that names each routine of OpenSHMEM 1.6 without its type, as C11's generic selection and
C++'s overloads have it: every form of forms.py that has one, for each of its types, without and with a
context. It is to be compiled; nothing of it is called.

    generics.py FILE
"""

import re
import sys

sys.dont_write_bytecode = True
from forms import SECTIONS  # noqa: E402

BY_CONTEXT = ('shmem_signal_add', 'shmem_signal_set')  # without a type, but with a context or none
NO_GENERIC = ('_to_all', 'BITS')                       # the standard gives these no name without a type
BASIC = {'int', 'long', 'short', 'char', 'float', 'double'}


def argument(declaration):
    """A value for a parameter, by its declaration, whose name may be missing."""
    pointer = re.match(r'(.*\*)\s*\w*$', declaration)
    if pointer:
        return '(%s)memory' % pointer.group(1)
    words = declaration.split()
    if len(words) > 1 and words[-1] not in BASIC:
        words = words[:-1]
    return {'shmem_ctx_t': 'ctx', 'shmem_team_t': 'team'}.get(' '.join(words), '(%s)1' % ' '.join(words))


def calls():
    for _, forms in SECTIONS:
        for written, functions in forms:
            name = written.replace('shmem_ctx_', 'shmem_', 1)
            if 'NAME' in name and name != 'shmem_NAME_wait' and not any(part in name for part in NO_GENERIC):
                name = name.replace('NAME_', '')
            elif name not in BY_CONTEXT:
                continue
            for returns, _, arguments in functions:
                call = '%s(%s);' % (name, ', '.join(map(argument, arguments.split(', '))))
                yield call if returns == 'void' else '{ %s result = %s (void)result; }' % (returns, call)


def main():
    listed = sorted(set(calls()))
    if len(listed) < 1000 or sum(call.startswith('shmem_signal_') for call in listed) != 4:
        sys.exit('forms.py has not what this asks for: %d calls' % len(listed))
    with open(sys.argv[1], 'w', encoding='ascii') as file:
        file.write('#include <complex.h>\n#include <shmem.h>\n\n'
                   'void each_name_without_a_type(void *memory, shmem_ctx_t ctx, shmem_team_t team);\n\n'
                   'void each_name_without_a_type(void *memory, shmem_ctx_t ctx, shmem_team_t team)\n{\n')
        file.writelines('    %s\n' % call for call in listed)
        file.write('}\n\nint main(void)\n{\n    return 0;\n}\n')


main()
