"""Values to test with, per type: extremes, and small ones that every type can hold."""


def extremes(t):
    """(least, greatest) as C expressions of the type."""
    if t.kind == 'plain':
        return '(char)CHAR_MIN', '(char)CHAR_MAX'
    if t.kind == 'real':
        name = {'float': 'FLT', 'double': 'DBL', 'longdouble': 'LDBL'}[t.name]
        return '-%s_MAX' % name, '%s_MAX' % name
    if t.size > 8:  # no constant is as long
        most = '(%s)(~(unsigned __int128)0%s)' % (t.c, '' if t.kind == 'unsigned' else ' >> 1')
        return ('(%s)0' % t.c if t.kind == 'unsigned' else '(%s)(-%s - 1)' % (t.c, most)), most
    if t.kind == 'unsigned':
        return '(%s)0' % t.c, '(%s)%dULL' % (t.c, 2 ** (8 * t.size) - 1)
    top = 2 ** (8 * t.size - 1) - 1
    return '(%s)(-%dLL - 1)' % (t.c, top), '(%s)%dLL' % (t.c, top)


def value_function(name, c, least, greatest, half):
    """NAME_value(pe, i): extremes at 0 and 1, then 1 … 100; NAME_mark: neither."""
    return '''
static %(c)s %(name)s_value(int pe, int i)
{
    if (i == 0)
        return %(least)s;
    return i == 1 ? %(greatest)s : (%(c)s)((pe * 13 + i * 5) %% 100 + 1%(half)s);
}

static const %(c)s %(name)s_mark = (%(c)s)120;
''' % {'c': c, 'name': name, 'least': least, 'greatest': greatest, 'half': half}


def value_function_of(t):
    least, greatest = extremes(t)
    return value_function(t.name, t.c, least, greatest, ' + 0.5' if t.kind == 'real' else '')
