"""Whether a page has the table of NVSHMEM's variables that gshmem-info prints.

    settings.py PAGE GSHMEM_INFO [--write]    --write: makes it so, below the line MARK
"""
import subprocess
import sys

MARK = "<!-- gshmem-info --nvshmem-settings, by tests/docs/settings.py -->\n"


def main(path, program, *options):
    printed = subprocess.run([program, "--nvshmem-settings"], check=True, capture_output=True, text=True).stdout
    with open(path, encoding="utf-8") as page:
        head, mark, table = page.read().partition(MARK)
    if not mark:
        sys.exit(f"{path} has no line {MARK!r}")
    if table.strip() == printed.strip():
        return
    if "--write" not in options:
        sys.exit(f"{path} is not what gshmem-info --nvshmem-settings prints: tests/docs/settings.py {path} {program} --write")
    with open(path, "w", encoding="utf-8") as page:
        page.write(f"{head}{MARK}\n{printed}")


main(*sys.argv[1:])
