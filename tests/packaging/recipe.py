"""The Spack recipe beside what it is for: its options of Meson exist, its version is the tree's, and it
is Python that Spack's names would run. Spack itself is not needed."""

import ast
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def main():
    recipe = read("packaging/spack/package.py")
    wrong = []
    package = next(n for n in ast.parse(recipe).body if isinstance(n, ast.ClassDef))
    called = [(n.value.func.id, [ast.literal_eval(a) for a in n.value.args]) for n in package.body
              if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call)]
    variants = {a[0] for name, a in called if name == "variant"}
    options = set(re.findall(r"^option\('(\w+)'", read("meson_options.txt"), re.M))
    used = set(re.findall(r'-D(\w+)=', recipe)) | variants - {"python"}
    wrong += [f"-D{o} is no option of meson_options.txt" for o in sorted(used - options)]
    for named in re.findall(r'"([+~])(\w+)"', recipe) + re.findall(r"when=\"([+~])(\w+)\"", recipe):
        if named[1] not in variants:
            wrong.append(f"{named[0]}{named[1]} is no variant")
    version = re.search(r"version: '([\d.]+)'", read("meson.build"))[1]
    if ("version", [version]) not in called:
        wrong.append(f"the recipe has no version {version}, which meson.build has")
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
