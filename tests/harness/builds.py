"""Builds of other kinds, each a suite of its own in a folder beside the build tree: build-bare beside build. From there
the sources have the same relative names as from the build tree, and ccache knows what they have in common."""

import os
import re
import shutil
from concurrent import futures

from . import cpu, installed, syntax
from .report import Case
from .suites import Tree

# Suites that sanitizers run again. The typed ones are long to compile, and much alike.
CHECKED = ["unit", "transport", "pe", "collectives", "memory", "proxy"]
# Tests of one thread, and long, which a sanitizer of threads has nothing to say of.
ONE_THREAD = r"transport-verbs(?!-ways).*"
# The fake NIC's other ways to answer, which change what is called when, and not which memory is touched.
OTHER_ANSWERS = r"transport-(conform-)?verbs-.+-(late|reorders)|transport-conform-verbs-late"
# And of those over pretended hosts, whose PEs serve each other by a thread, these few.
OVER_HOSTS = re.compile(r"(context|lock|order|signal|strided)-hosts2-2|(mixed|teams|threads)-hosts2-3")
# Of what kernels call: each program on each path, with the fewest PEs, collectives with the threads of a block
# sharing their work, as on a GPU; of the very many tests of mistakes, those that differ most in
# what they go through.
KERNELS = (
    r"kernel-(again|contexts|copies|many|single|collective-data)-"
    r"(mapped-run-2|local-run-2|tcp-hosts2-2)"
    r"|kernel-collective-(data|meet|reduce|wrong)-shared-(mapped-run-2|local-run-2|tcp-hosts2-3)"
    r"|kernel-units-(mapped|local|tcp)"
    r"|kernel-error-(put_own|atomic_odd|flag_op|g_pe)-(mapped|local|tcp)"
    r"|stats-(exact-run-3|kernels-hosts2-2)")
DEATHS = r"kernel-death-.*"
OPENSHMEM = r"openshmem-(semantics|classic)-(run-2|hosts2-4)|openshmem-profiled-linked-run"
LITMUS = r"litmus-(atomics|message|quiet|signals)-(mapped|local|tcp)-2"
# Of the cuda device beside a simulated driver: each program on the kinds of machines that differ most in
# what they go through, with few PEs.
CUDA = (
    r"(capture|collectives|host_calls|on_stream)-(peers|no-access)-run-2|cumodule-peers-run-2|simulation-kernels|requests"
    r"|(capture|collectives|host_calls|on_stream|hosts-usual|heap-usual|faults-usual)-hosts2-2"
    r"|(heap-(peers|ipc|no-access)|proxy-(mapped|unmapped|no-access-slow))-run-2|misuse-peers-run-3"
    r"|multicast-(all|growth-(create|add|bind))-run-2|symmetric-(peers|no-access|kernels)-run-2"
    r"|buffer-(fault-)?run-2|alone-.*|(growth|request)-.*|export-.*|death-descriptors|stream_death"
    r"|stalled-(here|there)|verbs-updates")
# What is run of the core alone.
BARE = re.compile(r"(context|identity|rma|setup|signal|threads)-run-[12]")
# The suites of which sanitizers run some again.
SOME = ["kernel", "litmus", "cuda", "openshmem", "soak", "stats"]
COMPILERS = {"gcc": {"CC": "gcc", "CXX": "g++"}, "clang": {"CC": "clang", "CXX": "clang++"}}
OTHER_LAUNCHER = re.compile(r"mpirun|hydra|srun|pmi")


def warnings(name, root, tree, compiler):
    """All C and C++ sources of the regular build, tests included, without a warning of this compiler. Where the regular
    build was held to it already, that is the proof. gcc sees some things only when it optimises; clang's
    front end sees all, so that it translates nothing here. Programs with kernels are held to clang in its build
    for ThreadSanitizer."""
    if not shutil.which(compiler):
        return [Case("no-warnings", "skipped", f"{compiler} is not installed")]
    if tree.compiler() == compiler and tree.is_strict():
        return [Case("no-warnings", "passed")]
    commands = syntax.commands(tree.path, COMPILERS[compiler], optimise=compiler == "gcc")
    if not commands:
        return [Case("no-warnings", "failed", "the regular build has no compile_commands.json")]
    with futures.ThreadPoolExecutor(os.cpu_count(), initializer=cpu.use, initargs=[cpu.current()]) as pool:
        said = list(pool.map(lambda c: tree.command(*c, cwd=tree.path), commands))
    wrong = [output for status, output in said if status]
    if wrong:
        return [Case("no-warnings", "failed", f"{len(wrong)} of {len(commands)} sources", "\n".join(wrong[:20]))]
    return [Case("no-warnings", "passed")]


def beside(tree, name):
    return f"{tree.path}-{name}"


def alike(tree):
    """Options with which what a build compiles is what the regular one compiles, where it takes the same sources."""
    return ["--werror"] if tree.is_strict() else []


def bare(name, root, tree):
    """Without any module: the core is all there is, and it needs libc and threads alone."""
    options = [f"-D{module}=disabled" for module in ("pmix", "mpi", "verbs", "cuda")]
    extra = Tree(root, beside(tree, name), options + alike(tree))
    problem = extra.configure()
    chosen = {"pe": matching(extra.tests().get("pe", []), BARE)}
    problem = problem or extra.build(chosen)
    if problem:
        return [Case("build", "failed", "does not build", problem)]
    cases = [Case("build", "passed"), core_needs_libc(extra), no_modules(extra)]
    return cases + extra.test_some(chosen)


def core_needs_libc(tree):
    status, output = tree.command("ldd", os.path.join(tree.path, "libgshmem.so"))
    allowed = re.compile(r"\s*(linux-vdso|libc\.|libpthread\.|libdl\.|librt\.|/lib\S*/ld-linux)")
    strangers = [line for line in output.splitlines() if not allowed.match(line)]
    if status or strangers:
        return Case("core-needs-libc", "failed", "libgshmem.so needs more", output)
    return Case("core-needs-libc", "passed")


def no_modules(tree):
    found = [os.path.join(at, f) for at, _, files in os.walk(tree.path) for f in files
             if re.fullmatch(r"gshmem-.*\.so", f)]
    if found:
        return Case("no-modules", "failed", "built although disabled", "\n".join(found))
    return Case("no-modules", "passed")


def selected(tests, most, without):
    """Of these tests those that start nothing, each program by gshmemrun with the most PEs up to `most`, and over
    pretended hosts with the fewest."""
    names, largest, fewest = [], {}, {}
    for name in tests:
        run, hosts = re.search(r"-run-(\d+)", name), re.search(r"-hosts\d+-(\d+)$", name)
        if OTHER_LAUNCHER.search(name) or re.fullmatch(without, name):
            continue
        if run and int(run[1]) <= most:
            program = name[:run.start()] + name[run.end():]
            largest[program] = max((int(run[1]), name), largest.get(program, (0, "")))
        elif hosts and not run:
            program = name[:hosts.start()]
            fewest[program] = min((int(hosts[1]), name), fewest.get(program, (1 << 30, "")))
        elif not run:
            names.append(name)
    return names + [name for _, name in [*largest.values(), *fewest.values()]]


def matching(tests, pattern):
    return [name for name in tests if pattern.fullmatch(name)]


def sanitized(name, root, tree, compiler, sanitizer, suites, most, *kernels):
    """These suites again, each program with up to `most` PEs, in a build that watches memory or threads; and
    of the suites of kernels, of the cuda device and of shmem.h the tests with these names."""
    if not shutil.which(compiler):
        return [Case("all", "skipped", f"{compiler} is not installed")]
    path = beside(tree, name)
    # half as long to build as with all that a debugger wants and the second degree of optimisation
    options = [f"-Db_sanitize={sanitizer}", "-Db_lundef=false", "-Doptimization=1", "-Ddebug=false", "-Dgpu_code=kept"]
    arguments = "-g1"
    if compiler == "clang":  # whose vectorisers the sanitizers stand in the way of
        options += ["--werror"]
        arguments += " -Wno-pass-failed"
    options += [f"-Dc_args={arguments}", f"-Dcpp_args={arguments}"]
    env = {
        **COMPILERS[compiler],
        "GSHMEM_TEST_TIMEOUT": "240",
        "ASAN_OPTIONS": "abort_on_error=0:detect_leaks=1:detect_stack_use_after_return=0",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "TSAN_OPTIONS": "halt_on_error=1:die_after_fork=0:second_deadlock_stack=1:suppressions="
                        + os.path.join(root, "tests", "harness", "tsan.supp"),
    }
    missing = cannot_sanitize(root, path, compiler, sanitizer)
    if missing:
        return [Case("all", "skipped", missing)]
    if sanitizer == "thread":  # it does not follow how gshmemrun makes processes, and it has no threads
        env["GSHMEM_TEST_RUN"] = os.path.join(tree.path, "bootstrap", "run", "gshmemrun")
    extra = Tree(root, path, options, env)
    problem = extra.configure()
    if problem:
        return [Case("build", "failed", "cannot be configured", problem)]
    if sanitizer == "thread":  # its shadow memory collides with some address layouts
        extra.prefix = ["setarch", "-R"]
        without = f"{ONE_THREAD}|{OTHER_ANSWERS}"
    else:
        without = OTHER_ANSWERS
    kernels = re.compile("|".join((OPENSHMEM, *kernels)))
    tests = extra.tests(built=True)
    chosen = {suite: selected(tests.get(suite, []), most, without) for suite in suites}
    chosen |= {suite: matching(tests.get(suite, []), kernels) for suite in SOME}
    chosen["hosts"] = matching(tests.get("hosts", []), OVER_HOSTS)
    problem = extra.build(chosen)
    if problem:
        return [Case("build", "failed", "does not build", problem)]
    return [Case("build", "passed")] + extra.test_some(chosen)


def cannot_sanitize(root, path, compiler, sanitizer):
    """Why a program built with the sanitizer does not even start here, or ""."""
    os.makedirs(path, exist_ok=True)
    source, program = os.path.join(path, "probe.c"), os.path.join(path, "probe")
    with open(source, "w", encoding="utf-8") as f:
        f.write("int main(void) { return 0; }\n")
    probe = Tree(root, path)
    status, output = probe.command(compiler, f"-fsanitize={sanitizer}", "-o", program, source)
    if status:
        return f"{compiler} has no runtime for -fsanitize={sanitizer}"
    start = ["setarch", "-R", program] if sanitizer == "thread" else [program]
    status, output = probe.command(*start, timeout=300)
    os.unlink(source)
    os.unlink(program)
    return f"-fsanitize={sanitizer} of {compiler} does not start here" if status else ""


def fuzz(name, root, tree):
    """What clang's fuzzer finds in a while, beyond the seeds and mutations of the suite itself."""
    if not shutil.which("clang"):
        return [Case("all", "skipped", "clang is not installed")]
    path = beside(tree, name)
    missing = cannot_sanitize(root, path, "clang", "address,undefined")
    if missing:
        return [Case("all", "skipped", missing)]
    extra = Tree(root, path, ["-Dfuzz=true"], COMPILERS["clang"])
    problem = extra.configure()
    chosen = {"fuzz": [n for n in extra.tests().get("fuzz", []) if "libfuzzer" in n]}
    problem = problem or extra.build(chosen)
    if problem:
        return [Case("build", "failed", "does not build", problem)]
    return extra.test_some(chosen)


def quickstart(name, root, tree):
    """The first command of the README, from elsewhere; what it offers at its end; what it says to a mistake."""
    if tree.path != os.path.join(root, "build"):
        return [Case("demo", "skipped", "quickstart builds in ./build, and these tests are of another")]
    script = os.path.join(root, "quickstart")
    status, output = tree.command("sh", "-c", f"cd / && '{script}' --no-install")
    shown = status == 0 and "hello from PE 3 of 4" in output
    mistake, usage = tree.command(script, "--no-such-option")
    told = mistake == 2 and "unknown argument: --no-such-option" in usage
    cases = [Case("demo", "passed" if shown else "failed", detail=output),
             Case("usage", "passed" if told else "failed", detail=usage)]
    _, after = output.partition("Three commands worth trying\n")[::2]
    offered = [line.strip() for line in after.splitlines() if re.match(r"  \S", line)]
    fails = [command for command in offered[:-1] if tree.command("sh", "-c", command, timeout=600)[0]]
    cases.append(Case("commands", "passed" if len(offered) == 3 and not fails else "failed",
                      "these are offered at the end and fail", "\n".join(fails or offered)))
    # the first command compiles no test
    status, commands = tree.command("ninja", "-C", tree.path, "-t", "commands", "without-tests")
    tests = [line for line in commands.splitlines() if re.search(r" -o tests/", line)]
    cases.append(Case("no-tests", "failed" if status or tests else "passed",
                      "the target without-tests", "\n".join(tests) or commands[-500:]))
    return cases


def install(name, root, tree):
    return installed.check(root, beside(tree, name), alike(tree))


def scripts(name, root, tree, *lines):
    """Scripts that end as tests do: with 0, with 77 after a line SKIP, or with a line that says what is wrong."""
    cases = []
    for line in lines:
        status, output = tree.command(os.path.join(root, line[0]), *line[1:])
        last = output.strip().rpartition("\n")[2]
        if status == 77 and last.startswith("SKIP: "):
            cases.append(Case(line[0], "skipped", last.removeprefix("SKIP: ")))
        else:
            cases.append(Case(line[0], "failed" if status else "passed", "", output))
    return cases


# name: (what it does, its further arguments)
BUILDS = {
    "quickstart": (quickstart, []),
    "gcc-werror": (warnings, ["gcc"]),
    "clang-werror": (warnings, ["clang"]),
    "bare": (bare, []),
    "install": (install, []),
    "gcc-asan": (sanitized, ["gcc", "address,undefined", CHECKED, 3, KERNELS, DEATHS, CUDA]),
    "clang-asan": (sanitized, ["clang", "address,undefined", CHECKED, 2]),
    "gcc-tsan": (sanitized, ["gcc", "thread", CHECKED, 2, LITMUS, CUDA]),
    # to make a fiber known takes gcc's ThreadSanitizer ten times as long as clang's; they are one
    # library otherwise, so that clang's is enough
    "clang-tsan": (sanitized, ["clang", "thread", CHECKED, 2, KERNELS, LITMUS, CUDA]),
    "clang-fuzz": (fuzz, []),
    "abi": (scripts, [["packaging/abi/check"]]),
    "wheel": (scripts, [["tests/python/bare"]]),
    "packages": (scripts, [["packaging/deb"], ["packaging/try-deb"], ["packaging/try-container"], ["packaging/release"]]),
}

# Left to tests/run --packages: they make roots of other systems, from a mirror.
PACKAGES = ["packages"]

# Left to soaks, beside the suite of that name: of each sanitizer one compiler's is enough.
SOAK = ["soak", "clang-asan", "gcc-tsan"]


def run(name, root, tree):
    function, arguments = BUILDS[name]
    return function(name, root, tree, *arguments)
