"""Prints how many of NVSHMEM 3.8's functions a CUDA source can call, and why not the others. gshmemcc compiles a source
that takes the address of each, and links one with those of one type, as all types are one template; with `all` it links
all. Fails if a name is missing without a reason in names-3.8, if a reason is there for one that exists, or if a program
that is to test a family has none of its names.

counted.py GSHMEMCC NAMES [all]
"""

import pathlib
import re
import subprocess
import sys
import tempfile

GSHMEMCC, LIST, WHOLE = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:] == ['all']
ALL, REFUSED_MOST = 3484, 20


def groups(text):
    """The alternatives of a {…} that begins a text, and what follows it."""
    depth, begin, parts = 0, 1, []
    for i, c in enumerate(text):
        depth += (c == '{') - (c == '}')
        if depth == 1 and c == ',' or depth == 0:
            parts.append(text[begin:i])
            begin = i + 1
        if depth == 0:
            return parts, text[i + 1:]
    raise ValueError('{ without }: ' + text)


def expand(text, sets):
    before, brace, _ = text.partition('{')
    if not brace:
        return [text]
    parts, rest = groups(text[len(before):])
    words = []
    for part in parts:
        words += sets[part[1:]] if part.startswith('@') else expand(part, sets)
    return [before + word + tail for word in words for tail in expand(rest, sets)]


def read():
    """[(the program, its names)], {refused name: reason}, the types in names"""
    sets, families, refused = {}, [], {}
    for line in LIST.read_text(encoding='utf-8').split('\n'):
        if line.startswith('@'):
            name, words = line[1:].split(' = ')
            sets[name] = words.split()
        elif line.startswith('!'):
            _, pattern, reason = line.split(' ', 2)
            refused.update((name, reason) for name in expand(pattern, sets))
        elif line and not line.startswith('#'):
            program, patterns = line.split(': ')
            families.append((program, [name for pattern in patterns.split() for name in expand(pattern, sets)]))
    return families, refused, [t for name in ('floats', 'plain', 'sizes', 'counts') for t in sets[name]]


def of_one_type(names):
    """One of the names that differ by nothing but their type."""
    return list({re.sub('(?<=_)(%s)(?=_)' % '|'.join(TYPES), 'T', name): name for name in names}.values())


def refused_by_compiler(names, folder, link):
    """The names whose address cannot be taken."""
    lines = ['#include <nvshmem.h>', '#include <nvshmemx.h>',
             'template <class F> static void take(F *function) { const void *volatile at = (const void *)function; (void)at; }',
             'int main() {']
    lines += ['take(&%s); /* = %s */' % (name, name) for name in names]
    source = folder / 'names.cu'
    source.write_text('\n'.join(lines + ['return 0; }', '']), encoding='utf-8')
    words = [GSHMEMCC, '--device=host', '-O0'] + ['-fsyntax-only'] * (not link)
    done = subprocess.run(words + [str(source), '-o', str(folder / 'names')], capture_output=True, text=True)
    wrong = set(re.findall(r'^[^ ]*names.cu:(\d+):\d+: error', done.stderr, re.M))
    found = {re.search(r'= (\w+)', lines[int(number) - 1])[1] for number in wrong if '=' in lines[int(number) - 1]}
    if done.returncode and not found:
        sys.exit(done.stderr[:3000])
    return found


families, refused, TYPES = read()
names = [name for _, of in families for name in of]
if len(set(names) | set(refused)) != ALL or len(names) + len(refused) != ALL:
    sys.exit('%s has %d names and %d refusals, which are not %d' % (LIST, len(names), len(refused), ALL))
failed = []
for program, of in families:
    words = set(re.findall(r'\w+', (LIST.parent / program).read_text(encoding='utf-8')))
    if not words & set(of):
        failed.append('%s uses none of %s …' % (program, of[0]))
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    missing = refused_by_compiler(names, folder, False)
    linked = [name for name in names if name not in missing]
    refused_by_compiler(linked if WHOLE else of_one_type(linked), folder, True)
    there = set(refused) - refused_by_compiler(sorted(refused), folder, False)
failed += ['%s does not compile, and has no reason in %s' % (name, LIST.name) for name in sorted(missing)]
failed += ['%s compiles, and is among the refusals' % name for name in sorted(there)]
if len(refused) > REFUSED_MOST:
    failed.append('%d names are refused, more than %d' % (len(refused), REFUSED_MOST))
print('%d of %s' % (len(names) - len(missing), '{:,}'.format(ALL)))
for name, reason in refused.items():
    print('    %s %s' % (name, reason))
if failed:
    sys.exit('\n'.join(failed))
