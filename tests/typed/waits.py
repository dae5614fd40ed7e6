"""Waits and tests: every comparison, masks, empty sets, fairness; on variables others update."""

import re

from values import extremes

FAMILIES = ['Waits and tests']

COMPARISONS = {'EQ': '==', 'NE': '!=', 'GT': '>', 'LE': '<=', 'LT': '<', 'GE': '>='}

# Of each comparison, a variable that comes to satisfy it: (before, after, compared to).
CHANGES = {
    'EQ': ('5', '7', '7'), 'NE': ('5', '6', '5'), 'GT': ('5', 'MOST', '5'),
    'LE': ('5', '4', '4'), 'LT': ('5', 'LEAST', '5'), 'GE': ('5', '9', '9'),
}

TOP = '''\
enum { N = 6, DRAWS = 600 };

static const int masked[N] = {0, 1, 0, 0, -1, 0};
static const int order[4] = {3, 0, 5, 2}; /* in which the others are updated */
'''

EDGES = '''
    static const T edge[] = {LEAST, (T)(LEAST + 1), (T)-1, 0, 1, 42, (T)(MOST - 1), MOST};
    enum { EDGES = sizeof edge / sizeof edge[0] };
    T *var = (T *)area, values[N];
    size_t index[N], found;
    int status[N], tested[N] = {0}, waited[N] = {0};

    for (int a = 0; a < EDGES; a++) {
        var[0] = edge[a];
        for (int b = 0; b < EDGES; b++) {
'''

# A token goes round: PE 0 updates first, all others once they have been.
CHANGE = '''
    var[0] = BEFORE;
    sync_all();
    if (me == 0 || to == me)
        CHECK_OK(gshmem_NAME_p(var, AFTER, to));
    CHECK_OK(@wait_until(var, GSHMEM_CMP_COMPARISON, VALUE));
    EXPECT("wait_until COMPARISON", 0, var[0], (T)AFTER);
    if (me != 0 && to != me)
        CHECK_OK(gshmem_NAME_p(var, AFTER, to));
    sync_all();
'''

# VECTOR is _vector or nothing, COMPARE what is compared to; element i becomes UPDATE.
ARRAYS = '''
    /* Arrays, WITH. */
    for (int i = 0; i < N; i++) {
        var[i] = 0;
        values[i] = (T)(i + 10);
        status[i] = masked[i];
    }
    (void)values;
    sync_all();
    CHECK_EQ(@test_allVECTOR(var, N, status, GSHMEM_CMP_GE, COMPARE), 0);
    CHECK_EQ(@test_anyVECTOR(var, N, status, GSHMEM_CMP_GE, COMPARE), SIZE_MAX);
    CHECK_EQ(@test_someVECTOR(var, N, index, status, GSHMEM_CMP_GE, COMPARE), 0);
    sync_all();
    if (me != 0 && to != me)
        CHECK_OK(@wait_until_allVECTOR(var, N, status, GSHMEM_CMP_GE, COMPARE));
    for (int k = 0; k < 4; k++)
        CHECK_OK(gshmem_NAME_p(var + order[k], (T)(UPDATE), to));

    /* each of them once */
    for (int k = 0; k < 4; k++) {
        found = @wait_until_anyVECTOR(var, N, status, GSHMEM_CMP_EQ, COMPARE);
        CHECK(found < N && status[found] == 0);
        EXPECT("wait_until_anyVECTOR", found, var[found], (T)(FOUND));
        CHECK_EQ(@test_anyVECTOR(var + found, 1, NULL, GSHMEM_CMP_EQ, COMPARE_FOUND), 0);
        status[found] = 1;
    }
    /* none is left */
    CHECK_EQ(@wait_until_anyVECTOR(var, N, status, GSHMEM_CMP_EQ, COMPARE), SIZE_MAX);
    CHECK_EQ(@wait_until_someVECTOR(var, N, index, status, GSHMEM_CMP_EQ, COMPARE), 0);
    CHECK_OK(@wait_until_allVECTOR(var, N, status, GSHMEM_CMP_EQ, COMPARE));
    CHECK_EQ(@test_anyVECTOR(var, N, status, GSHMEM_CMP_EQ, COMPARE), SIZE_MAX);
    CHECK_EQ(@test_someVECTOR(var, N, index, status, GSHMEM_CMP_EQ, COMPARE), 0);
    CHECK_EQ(@test_allVECTOR(var, N, status, GSHMEM_CMP_EQ, COMPARE), 1);
    CHECK_EQ(@wait_until_anyVECTOR(var, 0, NULL, GSHMEM_CMP_EQ, COMPARE), SIZE_MAX);
    CHECK_EQ(@wait_until_someVECTOR(var, 0, index, NULL, GSHMEM_CMP_EQ, COMPARE), 0);
    CHECK_OK(@wait_until_allVECTOR(var, 0, NULL, GSHMEM_CMP_EQ, COMPARE));
    CHECK_EQ(@test_allVECTOR(var, 0, NULL, GSHMEM_CMP_EQ, COMPARE), 1);

    /* some: exactly the four that satisfy, whatever the others hold */
    for (int i = 0; i < N; i++)
        status[i] = masked[i];
    CHECK_EQ(@wait_until_someVECTOR(var, N, index, status, GSHMEM_CMP_EQ, COMPARE), 4);
    for (int k = 0; k < 4; k++) {
        CHECK(index[k] < N && status[index[k]] == 0);
        status[index[k]] = 1;
    }
    CHECK_EQ(@test_someVECTOR(var, N, index, NULL, GSHMEM_CMP_EQ, COMPARE), 4);
    CHECK_EQ(@test_someVECTOR(var, N, index, masked, GSHMEM_CMP_NE, COMPARE), 0);
    CHECK_EQ(@test_someVECTOR(var, N, index, NULL, GSHMEM_CMP_NE, COMPARE), 2);
    CHECK_EQ(@test_allVECTOR(var, N, masked, GSHMEM_CMP_EQ, COMPARE), 1);
    CHECK_EQ(@test_allVECTOR(var, N, NULL, GSHMEM_CMP_EQ, COMPARE), 0);

    /* all satisfy: any answers each of them now and then */
    for (int i = 0; i < N; i++)
        tested[i] = waited[i] = 0;
    for (int k = 0; k < DRAWS; k++) {
        found = @test_anyVECTOR(var, N, NULL, GSHMEM_CMP_LT, MOST_COMPARE);
        CHECK(found < N);
        tested[found]++;
        found = @wait_until_anyVECTOR(var, N, NULL, GSHMEM_CMP_LT, MOST_COMPARE);
        CHECK(found < N);
        waited[found]++;
    }
    for (int k = 0; k < DRAWS; k++) { /* and the only one wherever it begins to look */
        for (int i = 0; i < N; i++)
            status[i] = i != k % N;
        CHECK_EQ(@test_anyVECTOR(var, N, status, GSHMEM_CMP_LT, MOST_COMPARE), k % N);
    }
    for (int i = 0; i < N; i++)
        CHECK(tested[i] > DRAWS / N / 3 && waited[i] > DRAWS / N / 3);
    sync_all();
'''

VALUE = {'VECTOR': '', 'MOST_COMPARE': 'MOST', 'COMPARE_FOUND': 'COMPARE', 'COMPARE': '3',
         'UPDATE': '3', 'FOUND': '3', 'WITH': 'one value'}
VECTOR = {'VECTOR': '_vector', 'MOST_COMPARE': 'most', 'COMPARE_FOUND': 'COMPARE + found',
          'COMPARE': 'values', 'UPDATE': 'order[k] + 10', 'FOUND': 'found + 10',
          'WITH': 'a value for each'}


def _replace(text, words):
    for word, by in words.items():
        text = text.replace(word, by)
    return text


def _type(t, by_name, spelling):
    least, most = extremes(t)
    text = EDGES
    for comparison, operator in COMPARISONS.items():
        text += '            CHECK_EQ(@test(var, GSHMEM_CMP_%s, edge[b]), edge[a] %s edge[b]);\n' % (
            comparison, operator)
        text += ('            if (edge[a] %s edge[b])\n'
                 '                CHECK_OK(@wait_until(var, GSHMEM_CMP_%s, edge[b]));\n' % (
                     operator, comparison))
    text += '        }\n    }\n    sync_all();\n'
    for comparison, (before, after, value) in CHANGES.items():
        text += _replace(CHANGE, {'BEFORE': before, 'AFTER': after, 'VALUE': value,
                                  'COMPARISON': comparison})
    text += _replace(ARRAYS, VALUE)
    text += '    static const T most[N] = {%s};\n' % ', '.join(['MOST'] * 6) + _replace(ARRAYS, VECTOR)
    text = '\nstatic void NAME_exercise(void *area, int to, int from)\n{' + text + '    (void)from;\n}\n'
    text = _replace(text, {'LEAST': least, 'MOST': most, 'NAME': t.name})
    text = re.sub(r'@(\w+)\(', lambda m: spelling.call(by_name[m.group(1)], t, '')[:-1], text)
    return re.sub(r'\bT\b', t.c, text)


def write(operations, spelling):
    by_name = {o.name: o for o in operations}
    types = spelling.types(operations[0])
    return (TOP + ''.join(_type(t, by_name, spelling) for t in types)
            + '\nstatic void exercise(void *area, int to, int from)\n{\n'
            + ''.join('    %s_exercise(area, to, from);\n' % t.name for t in types) + '}\n')
