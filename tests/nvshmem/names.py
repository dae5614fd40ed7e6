"""Programs may have macros of any name that is not reserved: each name that a header of ours uses, and no header of the
system's, is made a macro of nonsense, and the header has to compile; behind it the macros are there as before.

names.py INCLUDE BUILD-INCLUDE COMPILER…
"""

import re
import subprocess
import sys
import tempfile

INCLUDE, BUILD = sys.argv[1:3]
COMPILERS = sys.argv[3:]
C = ['gshmem.h', 'gshmem/stream.h', 'shmem.h', 'shmemx.h', 'pshmem.h', 'nvshmem.h', 'nvshmemx.h', 'mpp/shmem.h']
CUDA = ['cuda_runtime.h', 'cuda_fp16.h', 'cuda_bf16.h', 'cooperative_groups.h', 'cub/cub.cuh', 'cuda/atomic',
        'cuda/functional', 'curand_kernel.h', 'cuda.h', 'gshmem.h', 'gshmem/stream.h',
        'gshmem/collective_launch.h', 'nvshmem.h', 'nvshmemx.h']
# Ours, the public names of NVSHMEM's tiles, of CUB and cuRAND, and CUDA's vectors and atomics, which nobody can have for something else.
OURS = re.compile(r'p?(nv)?shmem|gshmem|_|cuda|cu[A-Z]|CU|start_pes|shm[a-z]+$|P?N?V?SHMEM|GSHMEM|NVLS_|(PEER|REMOTE)_PU|tile_|'
                  r'make_|BLOCK_(REDUCE|SCAN|LOAD|STORE)_|CUB_|curand|skipahead|(u?(char|short|int|long|longlong)|float|double)[1-4]$|atomic[A-Z]')
# And two that older C libraries have as macros.
KEYWORDS = set('''alignas alignof asm auto bool break case catch char class compl const constexpr const_cast continue
decltype default delete do double dynamic_cast else enum explicit export extern false final float for friend goto if
inline int long mutable namespace new noexcept nullptr operator override private protected public register
reinterpret_cast restrict return short signed sizeof static static_assert static_cast struct switch template this
thread_local throw true try typedef typeid typename union unsigned using virtual void volatile while wchar_t
major minor'''.split())


def compiler(kind, cc):
    words = [cc, '-I' + INCLUDE, '-I' + BUILD, '-DGSHMEM_NO_HALF']
    if kind == 'cuda':
        words.remove('-DGSHMEM_NO_HALF')
        return words + ['-x', 'c++', '-std=gnu++17', '-D__CUDACC__', '-D__noinline__=', '-I' + INCLUDE + '/gshmem/host_device']
    return words + ['-x', kind, '-std=gnu11' if kind == 'c' else '-std=gnu++17', '-I' + INCLUDE + '/gshmem/host_device']


def run(command, text):
    return subprocess.run(command + ['-'], input=text, capture_output=True, text=True)


def words_of(command, start):
    """Those of our headers, those of others."""
    done = run(command + ['-E'], start)
    if done.returncode:
        sys.exit(done.stderr)
    ours, theirs, mine = set(), set(), False
    for line in done.stdout.split('\n'):
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            mine = marker[1].startswith((INCLUDE, BUILD))
        elif not line.startswith('#'):
            line = re.sub(r'"(\\.|[^"\\])*"', ' ', line)
            (ours if mine else theirs).update(re.findall(r'[A-Za-z_]\w*', line))
    return ours, theirs


def check(kind, cc, header):
    command = compiler(kind, cc)
    first = '#include <cuda_runtime.h>\n' if kind == 'cuda' else ''
    start = '%s#include <%s>\n' % (first, header)
    ours, theirs = words_of(command, start)
    names = sorted(name for name in ours - theirs - KEYWORDS if not OURS.match(name))
    if len(names) < 10:
        sys.exit('%s: only %d names were found' % (header, len(names)))
    text = ''.join('#define %s ) nonsense %d (\n' % (name, i) for i, name in enumerate(names)) + start
    text += ''.join('#ifndef %s\n#error %s is no macro any more\n#endif\n' % (name, name) for name in names)
    done = run(command + ['-fsyntax-only', '-Wall', '-Wextra', '-Wno-unused'], text + 'int main() { return 0; }\n'
               if kind != 'c' else text + 'int main(void) { return 0; }\n')
    if done.returncode:
        errors = [line for line in done.stderr.split('\n') if 'error' in line]
        sys.exit('%s, %s, %s, with %d names as macros:\n%s' % (cc, kind, header, len(names), '\n'.join(errors[:10])))


for cc, cxx in zip(COMPILERS[::2], COMPILERS[1::2]):
    for header in C:
        check('c', cc, header)
        check('c++', cxx, header)
    for header in CUDA:
        check('cuda', cxx, header)
