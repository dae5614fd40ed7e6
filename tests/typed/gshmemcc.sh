#!/bin/sh
# gshmemcc, as it is in the build tree and as it is installed, there also after being moved.
#
#     gshmemcc.sh BUILD-ROOT MESON

build=$1 meson=$2
unset CC CXX DESTDIR
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

fail() {
    echo "gshmemcc: $*" >&2
    exit 1
}

cat >hello.c <<'END'
#include <stdio.h>
#include <gshmem.h>

int main(void)
{
    char name[64];

    gshmem_info_get_name(name);
    puts(name);
    return sizeof VALUE == 9 ? 0 : 1;
}
END
cp hello.c "hello there.cc"
cat >kernel.cu <<'END'
#include <gshmem.h>

__global__ void add(int *sum)
{
    atomicAdd(sum, 1);
}

int main()
{
    int sum = 0;

    add<<<2, 64>>>(&sum);
    cudaDeviceSynchronize();
    return sum == 128 ? 0 : 1;
}
END

# Uses the gshmemcc of a folder in every way.
try() {
    bin=$1
    "$bin/gshmemcc" -Wall -Werror '-DVALUE="it'\''s $1"' hello.c -o hello || fail "$bin: C"
    ./hello | grep -q GSHMEM || fail "$bin: the program does not run"
    "$bin/gshmemcc" -Wall -Werror '-DVALUE="12345678"' -c hello.c -o hello.o || fail "$bin: -c"
    "$bin/gshmemcc" hello.o -o hello || fail "$bin: linking alone"
    ./hello >/dev/null || fail "$bin: the linked program does not run"
    "$bin/gshmemcc" -E -DVALUE=1 hello.c | grep -q gshmem_long_put || fail "$bin: -E"
    if command -v c++ >/dev/null; then
        "$bin/gshmemcc" -Wall -Werror '-DVALUE="12345678"' "hello there.cc" -o hello ||
            fail "$bin: C++ by its suffix"
        "$bin/gshmemc++" -Wall -Werror '-DVALUE="12345678"' -x c++ hello.c -o hello ||
            fail "$bin: gshmemc++"
        ./hello >/dev/null || fail "$bin: the C++ program does not run"
    fi
    eval "$("$bin/gshmemcc" --show '-DVALUE="it'\''s $1"' hello.c -o shown)" && [ -x shown ] ||
        fail "$bin: what --show prints is not the command"
    case $("$bin/gshmemcc" --show -c hello.c) in
    *-lgshmem*) fail "$bin: -c links" ;;
    esac
    names=$bin # of OpenSHMEM: an installed copy has them in a folder of their own
    [ -x "$names/oshcc" ] || names=$(find "${bin%/*}" -path '*/gshmem/compat/bin' | head -1)
    case $("$names/oshcc" -show) in # what CMake modules take apart
    *-I*-L*-lsma*) ;;
    *) fail "$bin: oshcc -show does not say what it adds" ;;
    esac
    case $("$names/oshcc" -compile-info) in
    *-L*) fail "$bin: -compile-info links" ;;
    esac
    [ "$("$names/oshcc" --showme:libs)" = "gshmem_shmem gshmem" ] ||
        fail "$bin: parts of --showme"
    "$names/oshcc" --showme:nothing >out 2>&1 && fail "$bin: takes any --showme"
    "$names/oshcc" -DVALUE=1 hello.c -lsma -loshmem -lshmem -o hello || fail "$bin: OpenSHMEM's library by its other names"
    "$names/oshcc" -static -DVALUE=1 hello.c >out 2>&1 && fail "$bin: links statically"
    grep -q "shared library" out || fail "$bin: -static: $(cat out)"
    case $(CC=$bin/gshmemcc "$bin/gshmemcc" --show hello.c) in
    *gshmemcc*) fail "$bin: CC=gshmemcc calls itself" ;;
    esac
    case $(CC="nice gshmemcc" timeout 10 "$bin/gshmemcc" --show hello.c) in
    'nice cc '* | 'nice gcc '* | 'nice ccache '*) ;;
    *) fail "$bin: CC=\"nice gshmemcc\" is not a nice compiler" ;;
    esac
    case $(cd "${bin%/*}" && CDPATH=. "${bin##*/}/gshmemcc" --showme:incdirs | wc -l) in
    1) ;;
    *) fail "CDPATH gets into the folders" ;;
    esac
    mkdir -p nvidia && printf '#!/bin/sh\n' >nvidia/nvcc && chmod +x nvidia/nvcc
    case $(PATH=$PWD/nvidia:$PATH CXX='nice c++ -m64' "$bin/gshmemcc" --device=cuda --show kernel.cu 2>&1) in
    *nvcc' -ccbin c++ '*) ;;
    *) fail "$bin: CXX=\"nice c++\" is given to nvcc as it is" ;;
    esac
    case $(CC='other -m64' "$bin/gshmemcc" --show hello.c 2>&1) in
    *"other: no such compiler"*) ;;
    *) fail "$bin: CC=other is not looked at" ;;
    esac
    if command -v c++ >/dev/null; then
        "$bin/gshmemcc" --device=host -Wall -Werror kernel.cu -o kernel && ./kernel ||
            fail "$bin: CUDA source"
        "$bin/gshmemcc" --device=host -c kernel.cu -o kernel.o && "$bin/gshmemc++" kernel.o -o kernel &&
            ./kernel || fail "$bin: CUDA source, compiled and linked apart"
    fi
    GSHMEM_DEVICE=toaster "$bin/gshmemcc" kernel.cu >cu.out 2>&1 && fail "$bin: takes any device"
    grep -q "toaster: no such device" cu.out || fail "$bin: a wrong device: $(cat cu.out)"
    "$bin/gshmemcc" --version | grep -q "GSHMEM" || fail "$bin: --version"
    "$bin/gshmemcc" --help | grep -q -e "--show" || fail "$bin: --help"
    "$bin/gshmemcc" -h | grep -q -e "--show" || fail "$bin: -h"
    GSHMEM_DEVICE=HOST "$bin/gshmemcc" --show kernel.cu >cu.out 2>&1 || fail "$bin: GSHMEM_DEVICE=HOST"
    for what in --version --help --show --showme:libs; do
        "$bin/gshmemcc" $what hello.c 2>out >/dev/full && fail "$bin: $what to a full disk"
    done
    "$bin/gshmemcc" no-such-file.c >out 2>&1 && fail "$bin: hides the compiler's failure"
}

try "$build/runtime/tools"

DESTDIR=$folder/stage "$meson" install -C "$build" --no-rebuild >install.out 2>&1 ||
    fail "meson install: $(tail -3 install.out)"
installed=$(find stage -name gshmemcc -type f)
[ -n "$installed" ] || fail "is not installed"
prefix=${installed%/bin/gshmemcc}
mkdir "a new place" && mv "$prefix" "a new place/gshmem" || fail "cannot move the prefix"
moved=$folder/"a new place"/gshmem
try "$moved/bin"
ln -s "$moved/bin/gshmemcc" linked
./linked -DVALUE=1 hello.c -o hello || fail "does not find itself through a link"

if command -v pkg-config >/dev/null; then
    PKG_CONFIG_PATH=$(dirname "$(find "$moved" -name gshmem.pc)")
    export PKG_CONFIG_PATH
    cp -r "$moved" plain # pkg-config's flags are split at blanks
    PKG_CONFIG_PATH=$(dirname "$(find "$folder/plain" -name gshmem.pc)")
    flags=$(pkg-config --define-variable=prefix="$folder/plain" --cflags --libs gshmem) ||
        fail "pkg-config does not know gshmem"
    cc -DVALUE='"12345678"' hello.c $flags -o hello || fail "pkg-config: $flags"
    LD_LIBRARY_PATH=$(dirname "$(find "$folder/plain" -name libgshmem.so)") ./hello >/dev/null ||
        fail "the program built by pkg-config does not run"
fi
exit 0
