# Roots of other systems, for the trials of packages; they source this. The caller has defined `root`, the tree.
#
#     can_make_roots              or a skip, with the reason; sets `mirror` and `suite` to those of apt here
#     make_root FOLDER [PACKAGE…] a minimal Debian there, with these packages beside; or a skip
#     use_apt_of_this_machine FOLDER    for what is installed in it later
#     in_root FOLDER COMMAND…     in namespaces of its own, with /proc, /dev and a /dev/shm of its own

PATH=$PATH:/usr/sbin:/sbin

skip() {
    echo "SKIP: $*"
    exit 77
}

can_make_roots() {
    [ "$(id -u)" = 0 ] || skip "making a root takes root"
    command -v mmdebstrap >/dev/null || skip "mmdebstrap is not installed"
    unshare --mount true 2>/dev/null || skip "no namespaces for a node here"
    read -r mirror suite <<<"$(apt-get indextargets --format '$(SITE) $(CODENAME)' 'Created-By: Packages' 2>/dev/null)"
    [ -n "$suite" ] || skip "apt knows no mirror"
}

# What dpkg writes need not be on the disk before the trial begins.
make_root() {
    local folder=$1 log
    shift
    log=$folder.log
    mmdebstrap --mode=root --variant=minbase --dpkgopt=force-unsafe-io ${1:+"--include=$*"} \
        "$suite" "$folder" "$mirror" >"$log" 2>&1 || {
        tail -n 5 "$log"
        skip "mmdebstrap cannot make a root of $suite here"
    }
}

use_apt_of_this_machine() {
    local part
    cp /etc/resolv.conf /etc/hosts "$1/etc/"
    for part in sources.list sources.list.d trusted.gpg trusted.gpg.d keyrings; do
        rm -rf "$1/etc/apt/$part"
        [ ! -e "/etc/apt/$part" ] || cp -r "/etc/apt/$part" "$1/etc/apt/$part"
    done
}

in_root() {
    # shellcheck disable=SC2016 # of the inner shell
    unshare --mount --pid --fork bash -c '
        set -e
        mount -t proc proc "$1/proc"
        mount --bind /dev "$1/dev"
        mount -t tmpfs tmpfs "$1/dev/shm"
        exec env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LANG=C.UTF-8 chroot "$@"' - "$@"
}
