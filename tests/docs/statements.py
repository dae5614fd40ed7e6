"""How much code a folder has, in statements: `;` and `{` outside comments and strings, without assertions.

Usage: statements.py ROOT [FOLDER...]"""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from includes import sources

ASSERTION = re.compile(r"\b(?:_Static_assert|static_assert|assert)\s*\([^;]*;", re.S)
SILENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.S)


def statements(text):
    text = ASSERTION.sub("", SILENT.sub(" ", text))
    return text.count(";") + text.count("{")


def main(root, *folders):
    for folder in folders or ("bootstrap", "device", "include", "runtime", "transport"):
        files = [path for path in sources(root) if path.startswith(folder + "/")]
        count = 0
        for path in files:
            with open(os.path.join(root, path), encoding="utf-8") as file:
                count += statements(file.read())
        print(f"{folder:24}{len(files):6} files{count:8} statements")


if __name__ == "__main__":
    main(*sys.argv[1:])
