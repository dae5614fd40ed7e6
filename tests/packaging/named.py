"""What Meson installs beside what names it elsewhere: each file is in one Debian package, each
program has a man page there and completion in bash. Needs a whole build, and builds no package."""

import fnmatch
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
DEBIAN = os.path.join(ROOT, "packaging/debian")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def installed(build):
    """Paths below the root, as in a package: prefix /usr, libraries in usr/lib/TRIPLET."""
    text = subprocess.run(["meson", "introspect", build, "--buildoptions"], stdout=subprocess.PIPE,
                          check=True, text=True).stdout
    option = {o["name"]: o["value"] for o in json.loads(text)}
    with tempfile.TemporaryDirectory(prefix="gshmem-named-") as folder:
        line = ["meson", "install", "-C", build, "--no-rebuild", "--destdir", folder]
        done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        if done.returncode:
            print("SKIP: a whole build is needed:", done.stdout.splitlines()[-1])
            sys.exit(77)
        prefix = os.path.join(folder, option["prefix"].strip("/"))
        for place, folders, files in os.walk(prefix):
            links = [name for name in folders if os.path.islink(os.path.join(place, name))]
            for name in files + links:
                path = os.path.relpath(os.path.join(place, name), prefix)
                if path.startswith(option["libdir"] + "/"):
                    path = "lib/TRIPLET" + path.removeprefix(option["libdir"])
                yield "usr/" + path


def main(build):
    wrong = []
    entries = {}
    for name in os.listdir(DEBIAN):
        if name.endswith(".install"):
            for line in read(f"packaging/debian/{name}").splitlines():
                entries[line] = name
    paths = list(installed(build))
    unused = set(entries)
    for path in paths:
        own = [e for e in entries if fnmatch.fnmatch(path, e) or fnmatch.fnmatch(path, e + "/*")]
        unused -= set(own)
        if not own:
            wrong.append(f"{path} is in no .install of packaging/debian")
        if len({entries[e] for e in own}) > 1:
            wrong.append(f"{path} is in two packages: {' and '.join(own)}")
    unused.discard("usr/lib/python3/dist-packages/gshmem")  # debian/rules puts it there
    wrong += [f"{e} of {entries[e]} names nothing that is installed" for e in sorted(unused)]

    programs = [os.path.basename(p) for p in paths if re.fullmatch(r"usr/bin/[^/]+", p)]
    manpages = "".join(read(f"packaging/debian/{n}") for n in os.listdir(DEBIAN)
                       if n.endswith(".manpages"))
    completion = read("packaging/completion/gshmem.bash")
    completes = re.findall(r"^complete .*?-F \w+ (.*)$", completion, re.M)
    for program in programs:
        if f"debian/man/{program}.1\n" not in manpages:
            wrong.append(f"{program} is in no .manpages of packaging/debian")
        if not re.search(rf"[ \t]{re.escape(program)}:\"", read("packaging/debian/rules")):
            wrong.append(f"{program} has no line for its man page in packaging/debian/rules")
        if f"usr/share/bash-completion/completions/{program}" not in paths:
            wrong.append(f"no completion is installed by the name {program}: packaging/meson.build")
        if program not in " ".join(completes).split():
            wrong.append(f"{program} is not completed: packaging/completion/gshmem.bash")
    print("\n".join(wrong) or f"{len(paths)} files, {len(programs)} programs")
    return 1 if wrong else 0


sys.exit(main(sys.argv[1]))
