"""quickstart where the release has no package of a need: that one is named once, with the reason, and not installed."""

import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(HERE, "../../quickstart")
TOOLS = ("bash", "cut", "dirname", "echo", "env", "find", "grep", "head", "id", "mkdir", "sed", "sort", "tail", "xargs")
# It has lists, and all packages but the browser.
CACHE = """#!/bin/bash
case $1 in
policy) printf ' 100 status\\n     release a=now\\n 500 lists\\n     release v=1,o=Other,a=stable\\n' ;;
show) [ "$2" != chromium-headless-shell ] ;;
esac
"""


def run(folder):
    """What it says of packages; nothing is there, so that it goes no further."""
    done = subprocess.run([os.path.join(folder, "quickstart"), "test", "--no-install"], stdin=subprocess.DEVNULL,
                          env={"PATH": os.path.join(folder, "bin")}, capture_output=True, text=True, timeout=100)
    said = done.stdout + done.stderr
    assert done.returncode == 1 and "needed" in said, said
    return said


def main():
    folder = tempfile.mkdtemp(prefix="gshmem-test-quickstart-")
    try:
        shutil.copy(SCRIPT, folder)
        tools = os.path.join(folder, "bin")
        os.mkdir(tools)
        for name in TOOLS:
            os.symlink(shutil.which(name), os.path.join(tools, name))
        for name, text in (("apt-cache", CACHE), ("apt-get", "#!/bin/bash\n")):
            with open(os.path.join(tools, name), "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(os.path.join(tools, name), 0o755)
        first, second = run(folder), run(folder)
        for said, times in ((first, 1), (second, 0)):
            wanted = [line for line in said.splitlines() if line.startswith("quickstart: not installing")]
            lacks = [line for line in wanted if "has no such package" in line]
            assert len(lacks) == times and all("chromium-headless-shell" in line for line in lacks), said
            rest = [line for line in wanted if line not in lacks]
            assert len(rest) == 1 and "--no-install" in rest[0], said
            assert "spin" in rest[0] and "chromium" not in rest[0], said
    except AssertionError as wrong:
        print(wrong)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
