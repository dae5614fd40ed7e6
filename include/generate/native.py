"""What each operation of the table does in the native API on the host: the bodies in typed.h.

A body calls a memory-sized function of gshmem.h, or carries the operation out in place where the
peer is mapped. It is C with $T for the type, $NAME for the type's name and $TYPE for its
enum gshmem_type; `ctx` is the context.
"""

import re
from string import Template

from table import element, parameters_for
from text import function

# ---- RMA: on bytes ----

_BYTES = 'gshmem_bytes(nelems, $SIZE)'

RMA = {
    'put':     'return gshmem_ctx_putmem(ctx, dest, source, ' + _BYTES + ', pe);',
    'get':     'return gshmem_ctx_getmem(ctx, dest, source, ' + _BYTES + ', pe);',
    'put_nbi': 'return gshmem_ctx_putmem_nbi(ctx, dest, source, ' + _BYTES + ', pe);',
    'get_nbi': 'return gshmem_ctx_getmem_nbi(ctx, dest, source, ' + _BYTES + ', pe);',
    'iput':    'return gshmem_ctx_iputmem(ctx, dest, source, dst, sst, $SIZE, nelems, pe);',
    'iget':    'return gshmem_ctx_igetmem(ctx, dest, source, dst, sst, $SIZE, nelems, pe);',
    'ibput':   'return gshmem_ctx_ibputmem(ctx, dest, source, dst, sst, bsize, $SIZE, nblocks, pe);',
    'ibget':   'return gshmem_ctx_ibgetmem(ctx, dest, source, dst, sst, bsize, $SIZE, nblocks, pe);',
    'put_signal':
        'return gshmem_ctx_putmem_signal(ctx, dest, source, ' + _BYTES
        + ', sig_addr, signal, sig_op, pe);',
    'put_signal_nbi':
        'return gshmem_ctx_putmem_signal_nbi(ctx, dest, source, ' + _BYTES
        + ', sig_addr, signal, sig_op, pe);',
}

def indexed(operation):
    """The call out of line."""
    pe = 'pes, GSHMEM_PE_OF_EACH' if '_pes' in operation.name else 'NULL, pe'
    if operation.name.startswith('ix_add'):
        return 'return gshmem_path_ix_add(ctx, $TYPE, dest, source, index, %s, nelems);' % pe
    return 'return gshmem_path_%s(ctx, dest, source, index, %s, $SIZE, nelems%s);' % (
        operation.name[:len('ixput')], pe,
        ', %d' % operation.name.endswith('_nbi') if operation.name.startswith('ixget') else '')


# The copy keeps `value` itself in a register.
P = '''
$T *there = ($T *)gshmem_ctx_reach(ctx, dest, sizeof *dest, pe);

if (GSHMEM_UNLIKELY(!there)) {
    $T copy = value;
    return gshmem_path_put(ctx, dest, &copy, sizeof copy, pe, 0);
}
$STORE
return GSHMEM_OK;
'''

G = '''
$T *there = ($T *)gshmem_ctx_reach(ctx, source, sizeof *source, pe);
$T value;

if (GSHMEM_UNLIKELY(!there)) {
    gshmem_path_g(ctx, &value, source, sizeof value, pe);
    return value;
}
$LOAD
return value;
'''

# ---- Atomics: the operation, its operand and what it is compared to, for the path out of line; and
# in place, the statements and the old value. ----

_STORE = '__atomic_store(there, &value, __ATOMIC_RELAXED);'
_LOAD = '__atomic_load(there, &value, __ATOMIC_RELAXED);'

INTEGER = {
    'fetch':        ('FETCH', '0', '0', '', '__atomic_load_n(there, __ATOMIC_RELAXED)'),
    'set':          ('SET', 'value', '0', '__atomic_store_n(there, value, __ATOMIC_RELAXED);', ''),
    'swap':         ('SWAP', 'value', '0', '', '__atomic_exchange_n(there, value, __ATOMIC_RELAXED)'),
    'compare_swap': ('COMPARE_SWAP', 'value', 'cond',
                     '__atomic_compare_exchange_n(there, &cond, value, 0, __ATOMIC_RELAXED, '
                     '__ATOMIC_RELAXED);', 'cond'),
    'fetch_inc':    ('ADD', '1', '0', '', '__atomic_fetch_add(there, 1, __ATOMIC_RELAXED)'),
    'inc':          ('ADD', '1', '0', '__atomic_fetch_add(there, 1, __ATOMIC_RELAXED);', ''),
}
for _op in 'add', 'and', 'or', 'xor':
    _call = '__atomic_fetch_%s(there, value, __ATOMIC_RELAXED)' % _op
    INTEGER['fetch_' + _op] = (_op.upper(), 'value', '0', '', _call)
    INTEGER[_op] = (_op.upper(), 'value', '0', _call + ';', '')

REAL = {
    'fetch':        ('FETCH', '0', '0', '$T value;\n' + _LOAD, 'value'),
    'set':          ('SET', 'value', '0', _STORE, ''),
    'swap':         ('SWAP', 'value', '0',
                     '$T old;\n__atomic_exchange(there, &value, &old, __ATOMIC_RELAXED);', 'old'),
    'compare_swap': ('COMPARE_SWAP', 'value', 'cond',
                     '__atomic_compare_exchange(there, &cond, &value, 0, __ATOMIC_RELAXED, '
                     '__ATOMIC_RELAXED);', 'cond'),
    'fetch_inc':    ('ADD', '1', '0', '', 'gshmem_add_$NAME(there, 1)'),
    'inc':          ('ADD', '1', '0', 'gshmem_add_$NAME(there, 1);', ''),
    'fetch_add':    ('ADD', 'value', '0', '', 'gshmem_add_$NAME(there, value)'),
    'add':          ('ADD', 'value', '0', 'gshmem_add_$NAME(there, value);', ''),
}

ATOMIC = '''
$T *there = ($T *)gshmem_ctx_reach_atomic(ctx, $TARGET, sizeof *$TARGET, pe);

if (GSHMEM_UNLIKELY($REFUSED))
    $PATH
$STATEMENTS$FINISH
'''


def _atomic(operation, t):
    name = operation.name[len('atomic_'):]
    nbi = name.endswith('_nbi')
    name = name[:-len('_nbi')] if nbi else name
    amo, operand, compare, statements, old = (REAL if t.kind == 'real' else INTEGER)[name]

    def bits(value):
        if value == '0':
            return '0'
        return ('gshmem_bits_%s(%s)' % (t.name, value) if t.kind == 'real' else
                value if value.isdigit() else '(uint64_t)' + value)

    target = 'source' if name == 'fetch' else 'dest'
    arguments = 'ctx, GSHMEM_AMO_%s, $TYPE, %s%s, %s, %s' % (
        amo, '(void *)(uintptr_t)' if name == 'fetch' else '', target, bits(operand), bits(compare))
    if nbi:
        path = 'return gshmem_path_atomic_fetch(%s, fetch, pe);' % arguments
        finish = '*fetch = %s;\nreturn GSHMEM_OK;' % old
    elif operation.returns == 'T':
        path = ('return gshmem_%s_of_bits(gshmem_path_atomic_value(%s, pe));' % (t.name, arguments)
                if t.kind == 'real' else
                'return ($T)gshmem_path_atomic_value(%s, pe);' % arguments)
        finish = 'return %s;' % old
    else:
        path = 'return gshmem_path_atomic(%s, NULL, pe);' % arguments
        finish = 'return GSHMEM_OK;'
    return Template(ATOMIC).safe_substitute(TARGET=target, PATH=path,
                                            REFUSED='!there || !fetch' if nbi else '!there',
                                            STATEMENTS=statements and statements + '\n',
                                            FINISH=finish)


# ---- Waits: one out-of-line function for each form, told the type ----

def _wait(operation):
    verb = 'test' if operation.name.startswith('test') else 'wait'
    form = re.sub('^(wait_until|test)_?', '', operation.name)
    if not form:
        return 'return gshmem_path_%s_one($TYPE, ivar, cmp, (uint64_t)cmp_value);' % verb
    vector = form.endswith('_vector')
    form = form.replace('_vector', '')
    return 'return gshmem_path_%s_%s($TYPE, ivars, nelems, %sstatus, cmp, %s);' % (
        verb, form, 'indices, ' if form == 'some' else '',
        'cmp_values, 1' if vector else '&cmp_value, 0')


# ---- Collectives ----

MOVEMENT = {
    'broadcast': 'return gshmem_broadcastmem(team, dest, source, ' + _BYTES + ', PE_root);',
    'collect':   'return gshmem_collectmem(team, dest, source, ' + _BYTES + ');',
    'fcollect':  'return gshmem_fcollectmem(team, dest, source, ' + _BYTES + ');',
    'alltoall':  'return gshmem_alltoallmem(team, dest, source, ' + _BYTES + ');',
    'alltoalls': 'return gshmem_alltoallsmem(team, dest, source, dst, sst, $SIZE, nelems);',
    'sum_inscan': 'return gshmem_inscan(team, $TYPE, dest, source, nelems);',
    'sum_exscan': 'return gshmem_exscan(team, $TYPE, dest, source, nelems);',
}


RETURNS = {'status': 'gshmem_status_t', 'int': 'int', 'size': 'size_t'}


def returned(operation, c_type):
    return RETURNS.get(operation.returns, c_type)


def prefix(operation):
    """What stands before a function of the host's: whether its result is a status to look at."""
    return 'GSHMEM_NODISCARD static inline ' if operation.returns == 'status' else 'static inline '


def type_constant(t):
    """The enum gshmem_type of a type."""
    return 'GSHMEM_TYPE_' + element(t)


def template(operation, t):
    name = operation.name
    if name == 'p' or name == 'g':
        # No CPU moves 16 bytes in one access that C can name.
        one = t.size <= 8
        return Template(P if name == 'p' else G).safe_substitute(
            STORE=_STORE if one else '*there = value;', LOAD=_LOAD if one else 'value = *there;')
    if name.startswith('atomic_'):
        return _atomic(operation, t)
    if name.startswith(('wait_until', 'test')):
        return _wait(operation)
    if name.startswith('ix'):
        return indexed(operation)
    if name.endswith(('_reduce', '_reducescatter')):
        op, form = name.split('_')
        return 'return gshmem_%s(team, $TYPE, GSHMEM_OP_%s, dest, source, nreduce);' % (
            form, op.upper())
    return RMA.get(name) or MOVEMENT[name]


def names(t):
    """What templates call a type."""
    return {'T': t.c, 'NAME': t.name, 'TYPE': type_constant(t)}


def body(operation, t):
    """The lines of the body of an operation for a type."""
    text = Template(template(operation, t)).substitute(SIZE='sizeof *dest', **names(t))
    return text.strip('\n').split('\n')


def sized_body(operation, bits):
    text = indexed(operation) if operation.name.startswith('ix') else RMA[operation.name]
    return Template(text).substitute(SIZE=str(bits // 8)).split('\n')


# ---- On a stream: the memory-sized function's counterpart there, with the same arguments ----

def _on_stream(body):
    return re.sub(r'return gshmem_(?:ctx_)?(\w+)\((?:ctx, )?(.*)\);',
                  r'return gshmem_\1_on_stream(\2, stream);', body)


def stream_template(operation, t):
    if operation.name == 'p':
        return 'return gshmem_path_p_on_stream(dest, &value, sizeof value, pe, stream);'
    return _on_stream(RMA.get(operation.name) or template(operation, t))


def stream_body(operation, t):
    return Template(stream_template(operation, t)).substitute(
        SIZE='sizeof *dest', **names(t)).split('\n')


def sized_stream_body(operation, bits):
    return Template(_on_stream(RMA[operation.name])).substitute(SIZE=str(bits // 8)).split('\n')


def stream_function(name, operation, c_type, body, prefix='static inline '):
    declarations = [declaration for declaration, _ in parameters_for(operation, c_type)]
    return function(returned(operation, c_type), name + '_on_stream',
                    declarations + ['gshmem_stream_t stream'], body, prefix) + '\n'
