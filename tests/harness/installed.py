"""An installed copy: what a user's program sees of it, compiled in each of the ways the README names."""

import os
import re
import shutil

from .report import Case
from .suites import Tree

PROGRAM = """\
#include <gshmem.h>
#include <stdio.h>

static long from_left = -1; /* every PE has one, and every PE can write it */

int main(void)
{
    if (gshmem_init())
        return 1;
    int me = gshmem_my_pe(), n = gshmem_n_pes();
    long mine = me;
    gshmem_raise(gshmem_putmem(&from_left, &mine, sizeof mine, (me + 1) % n));
    gshmem_raise(gshmem_barrier_all());
    printf("PE %d of %d has %ld\\n", me, n, from_left);
    return gshmem_finalize() ? 1 : from_left != (me + n - 1) % n;
}
"""

SUBPROJECT = """\
project('user', 'c')
executable('program', 'program.c', dependencies: dependency('gshmem'))
dependency('gshmem-shmem')
"""


class Installed:
    def __init__(self, root, build, options):
        self.path = os.path.join(build, "copy")
        self.prefix = os.path.join(self.path, "prefix")
        self.tree = Tree(root, build, [f"--prefix={self.prefix}", "--libdir=lib", "-Dtests=false", "-Dgpu_code=kept", *options])
        self.bin = os.path.join(self.prefix, "bin")
        self.lib = os.path.join(self.prefix, "lib")
        self.compat = os.path.join(self.lib, "gshmem", "compat")  # names of OpenSHMEM and NVSHMEM
        self.tree.env["PKG_CONFIG_PATH"] = os.path.join(self.lib, "pkgconfig")
        self.tree.env["LD_LIBRARY_PATH"] = ""

    def install(self):
        problem = self.tree.build(chosen={})
        if problem:
            return Case("install", "failed", "does not build", problem)
        shutil.rmtree(self.prefix, ignore_errors=True)
        status, output = self.tree.command("meson", "install", "-C", self.tree.path, "--no-rebuild")
        return self.case("install", status, output)

    @staticmethod
    def case(name, status, output):
        if status:
            return Case(name, "failed", f"exit status {status}", output)
        return Case(name, "passed")

    def source(self):
        path = os.path.join(self.path, "program.c")
        with open(path, "w", encoding="utf-8") as f:
            f.write(PROGRAM)
        return path

    def run(self, name, launcher, program, pes=4):
        """Each PE's line exactly once."""
        status, output = self.tree.command("timeout", "-k", "5", "240", *launcher, "-n", str(pes),
                                           program)
        lines = sorted(line for line in output.splitlines() if line.startswith("PE "))
        expected = [f"PE {pe} of {pes} has {(pe - 1) % pes}" for pe in range(pes)]
        if status == 0 and lines != expected:
            return Case(name, "failed", "wrong output", output)
        return self.case(name, status, output)

    def with_pkg_config(self):
        if not shutil.which("pkg-config"):
            return [Case("pkg-config", "skipped", "pkg-config is not installed")]
        program = os.path.join(self.path, "by-pkg-config")
        status, flags = self.tree.command("pkg-config", "--cflags", "--libs", "gshmem")
        if status == 0:
            status, flags = self.tree.command("cc", "-Wall", "-Wextra", "-Werror", "-o", program,
                                              self.source(), *flags.split())
        if status:
            return [Case("pkg-config", "failed", f"exit status {status}", flags)]
        # by NVSHMEM's version and OpenSHMEM's, which their programs ask for
        for name, version in (("nvshmem", "2"), ("oshmem", "1.5")):
            path = os.path.join(self.compat, "lib", "pkgconfig", name + ".pc")
            status, output = self.tree.command("pkg-config", f"--atleast-version={version}", path)
            if status:
                return [Case("pkg-config", "failed", f"{path} is older than {version}", output)]
        return [Case("pkg-config", "passed"),
                self.run("pkg-config-runs", [os.path.join(self.bin, "gshmemrun")], program)]

    def with_gshmemcc(self):
        program = os.path.join(self.path, "by-gshmemcc")
        status, output = self.tree.command(os.path.join(self.bin, "gshmemcc"), "-O2", "-Wall",
                                           "-Wextra", "-Werror", "-o", program, self.source())
        if status:
            return [Case("gshmemcc", "failed", f"exit status {status}", output)]
        cases = [Case("gshmemcc", "passed"),
                 self.run("gshmemcc-runs", [os.path.join(self.bin, "gshmemrun")], program)]
        # modules are found where they are installed
        script = os.path.join(self.tree.root, "tests", "launch")
        for launcher in ("mpirun", "hydra"):
            status, output = self.tree.command(script, launcher, "4", program)
            name = f"gshmemcc-{launcher}"
            if status == 77:
                cases.append(Case(name, "skipped", output.strip().removeprefix("SKIP: ")))
            else:
                cases.append(self.case(name, status, output))
        return cases

    def with_openshmem(self):
        """examples/shmem-hello.c as OpenSHMEM's users build and start it, and by pkg-config."""
        source = os.path.join(self.tree.root, "examples", "shmem-hello.c")
        program = os.path.join(self.path, "by-oshcc")
        ways = {"oshcc": [os.path.join(self.compat, "bin", "oshcc")]}
        if shutil.which("pkg-config"):
            status, flags = self.tree.command("pkg-config", "--cflags", "--libs", "gshmem-shmem")
            if status:
                return [self.case("openshmem-pkg-config", status, flags)]
            ways["pkg-config"] = ["cc", *flags.split()]
        cases = []
        for name, (compiler, *flags) in ways.items():
            status, output = self.tree.command(compiler, "-O2", "-Wall", "-Wextra", "-Werror", "-o",
                                               program, source, *flags)
            if status == 0:
                status, output = self.tree.command(
                    "timeout", "-k", "5", "240", os.path.join(self.compat, "bin", "oshrun"), "-np", "3", program)
            cases.append(self.case(f"openshmem-{name}", status, output))
        return cases

    def with_cmake(self):
        """Targets of find_package, and what it says of a version that there is not."""
        if not shutil.which("cmake"):
            return [Case("cmake", "skipped", "cmake is not installed")]
        project = os.path.join(self.tree.root, "tests", "packaging", "cmake")
        build = os.path.join(self.path, "by-cmake")
        shutil.rmtree(build, ignore_errors=True)
        configure = ["cmake", "-S", project, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix};{self.compat}"]
        status, output = self.tree.command(*configure)
        if status == 0:
            status, output = self.tree.command("cmake", "--build", build)
        if status:
            return [self.case("cmake", status, output)]
        cases = [Case("cmake", "passed")]
        for name in ("gshmem", "shmem", "nvshmem"):
            status, output = self.tree.command("timeout", "-k", "5", "240", os.path.join(self.bin, "gshmemrun"),
                                               "-n", "2", os.path.join(build, name))
            if status == 0 and sorted(output.splitlines()) != ["PE 0 of 2", "PE 1 of 2"]:
                status = "of a wrong output"
            cases.append(self.case(f"cmake-{name}-runs", status, output))
        shutil.rmtree(build, ignore_errors=True)
        status, output = self.tree.command(*configure, "-DWANTED=99.0")
        refused = status != 0 and "99.0" in output and "version: " in output
        return cases + [self.case("cmake-version", 0 if refused else "of no refusal", output)]

    def with_cuda(self):
        """CUDA sources for the host device: by CMake, and by a makefile that calls nvcc."""
        project = os.path.join(self.tree.root, "tests", "packaging", "cuda")
        toolkit = os.path.join(self.lib, "gshmem", "toolkit")
        out = os.path.join(self.path, "by-nvcc")
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(out)
        ways = {"nvcc-make": [["make", "-C", project, f"OUT={out}", f"CUDA_HOME={toolkit}", f"PREFIX={self.prefix}"]]}
        if shutil.which("cmake"):
            first = os.path.join(self.lib, "cmake", "gshmem", "host-device.cmake")
            ways["nvcc-cmake"] = [["cmake", "-C", first, "-S", project, "-B", out], ["cmake", "--build", out]]
        cases = []
        for name, commands in ways.items():
            for command in commands + [["timeout", "-k", "5", "240", os.path.join(self.bin, "gshmemrun"), "-n", "2",
                                        os.path.join(out, "ring")]]:
                status, output = self.tree.command(*command)
                if status:
                    break
            if status == 0 and sorted(output.splitlines()) != ["PE 0 got 1 and 3", "PE 1 got 0 and 3"]:
                status = "of a wrong output"
            cases.append(self.case(name, status, output))
        for option, words in (("-ptx", "makes code of GPUs"), ("--default-stream=per-thread", "legacy default stream"),
                              ("--options-file=none", "cannot read none")):
            status, output = self.tree.command(os.path.join(toolkit, "bin", "nvcc"), option, "-c",
                                               os.path.join(project, "ring.cu"))
            refused = status != 0 and option.split("=")[0] in output and words in output
            cases.append(self.case(f"nvcc-refuses{option}", 0 if refused else "of no refusal", output))
        return cases

    def with_compat(self):
        """The names of OpenSHMEM and NVSHMEM are in a folder of their own, and work from there."""
        source = os.path.join(self.tree.root, "tests", "packaging", "cmake", "nvshmem.c")
        program = os.path.join(self.path, "by-compat")
        usual = [name for name in ("oshcc", "oshrun", "nvshmem-info") if os.path.exists(os.path.join(self.bin, name))]
        cases = [Case("compat-apart", "failed", f"in bin: {usual}") if usual else Case("compat-apart", "passed")]
        status, output = self.tree.command(
            "cc", "-o", program, source, f"-I{self.compat}/include", f"-L{self.compat}/lib", f"-Wl,-rpath,{self.lib}",
            "-lnvshmem_host", "-lnvshmem_device", "-lnvshmem")
        if status == 0:
            status, output = self.tree.command(os.path.join(self.compat, "bin", "nvshmrun"), "-n", "2", program)
        cases.append(self.case("compat-nvshmem", status, output))
        status, output = self.tree.command(os.path.join(self.compat, "bin", "nvshmem-info"), "-n", "-b", "-e")
        known = "NVSHMEM v3" in output and "GSHMEM_HEAP_SIZE" in output
        return cases + [self.case("compat-info", status if status or known else "of a wrong output", output)]

    def as_subproject(self):
        """A Meson project that has GSHMEM in its subprojects folder, and builds the C library alone."""
        project = os.path.join(self.path, "project")
        self.tree.env["PKG_CONFIG_PATH"] = ""  # a copy that is installed would be taken first
        shutil.rmtree(project, ignore_errors=True)
        os.makedirs(os.path.join(project, "subprojects"))
        os.symlink(self.tree.root, os.path.join(project, "subprojects", "gshmem"))
        shutil.copy(self.source(), project)
        with open(os.path.join(project, "meson.build"), "w", encoding="utf-8") as f:
            f.write(SUBPROJECT)
        build = os.path.join(project, "build")
        without = [f"-Dgshmem:{module}=disabled" for module in ("pmix", "mpi", "verbs", "cuda")]
        status, output = self.tree.command("meson", "setup", *without, build, project)
        launcher = os.path.join("subprojects", "gshmem", "bootstrap", "run", "gshmemrun")
        if status == 0:
            status, output = self.tree.command("ninja", "-C", build, "program", launcher)
        if status:
            return [self.case("subproject", status, output)]
        return [Case("subproject", "passed"),
                self.run("subproject-runs", [os.path.join(build, launcher)], os.path.join(build, "program"))]

    def headers(self):
        """Each language that may include them, at its strictest."""
        cases = []
        source = self.source()
        for compiler, options in (("gcc", ["-std=c11"]), ("clang", ["-std=c11"]),
                                  ("g++", ["-std=c++11", "-x", "c++"]),
                                  ("clang++", ["-std=c++17", "-x", "c++"])):
            name = f"headers-{compiler}"
            if not shutil.which(compiler):
                cases.append(Case(name, "skipped", f"{compiler} is not installed"))
                continue
            status, output = self.tree.command(
                compiler, *options, "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror",
                "-fsyntax-only", "-I", os.path.join(self.prefix, "include"), source)
            cases.append(self.case(name, status, output))
        return cases

    def symbols(self):
        """The library exports gshmem_… and nothing else, all of one version."""
        status, output = self.tree.command("nm", "-D", "--defined-only",
                                           os.path.join(self.lib, "libgshmem.so"))
        strangers = [line for line in output.splitlines()
                     if not re.search(r" [A-Z] (gshmem_\w+@@)?GSHMEM_0$", line)]
        if status or strangers or not output.strip():
            return Case("symbols", "failed", "exports more than gshmem_…", "\n".join(strangers))
        return Case("symbols", "passed")

    def info(self):
        status, output = self.tree.command(os.path.join(self.bin, "gshmem-info"))
        return self.case("gshmem-info", status, output)


def check(root, build, options):
    copy = Installed(root, build, options)
    os.makedirs(copy.path, exist_ok=True)
    cases = [copy.install()]
    if cases[0].outcome == "failed":
        return cases
    return cases + [copy.symbols(), copy.info()] + copy.headers() + copy.with_pkg_config() + \
        copy.with_gshmemcc() + copy.with_openshmem() + copy.with_cmake() + \
        copy.with_cuda() + copy.with_compat() + copy.as_subproject()
