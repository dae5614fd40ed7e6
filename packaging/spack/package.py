from spack.package import *


class Gshmem(MesonPackage):
    """PGAS runtime in C: one-sided communication between processes, from host code and from GPU
    kernels, with the interfaces of OpenSHMEM and NVSHMEM."""

    # A released tarball is put beside this file or in a mirror (packaging/release): there is no
    # public address yet.
    url = "file:///usr/src/gshmem-0.1.0.tar.xz"

    license("Apache-2.0")

    version("0.1.0", sha256="0000000000000000000000000000000000000000000000000000000000000000")

    variant("verbs", default=True, description="Transport over InfiniBand, RoCE and iWARP")
    variant("pmix", default=True, description="Start under launchers that speak PMIx")
    variant("mpi", default=False, description="Start from an MPI communicator")
    variant("cuda", default=False, description="Memory and kernels on NVIDIA GPUs")
    variant("python", default=False, description="The Python package")
    variant(
        "compat_names",
        default=False,
        description="oshcc, oshrun, libnvshmem in the usual places, and not only in lib/gshmem/compat",
    )

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("meson@1.0.1:", type="build")
    depends_on("python@3.9:", type="build")
    depends_on("rdma-core", when="+verbs")
    depends_on("pmix", when="+pmix")
    depends_on("mpi", when="+mpi")
    depends_on("cuda", when="+cuda")
    depends_on("python@3.9:", type=("build", "run"), when="+python")
    depends_on("py-numpy@1.23:", type=("build", "run"), when="+python")
    extends("python", when="+python")

    def meson_args(self):
        def feature(name):
            return f"-D{name}={'enabled' if self.spec.satisfies('+' + name) else 'disabled'}"

        return [feature(name) for name in ("verbs", "pmix", "mpi", "cuda")] + [
            "-Dtests=false",
            f"-Dcompat_names={'true' if self.spec.satisfies('+compat_names') else 'false'}",
            "-Dgpu_code=" + ("auto" if self.spec.satisfies("+cuda") else "none"),
        ]

    @run_after("install")
    def install_python(self):
        if self.spec.satisfies("+python"):
            install_tree("python/gshmem", join_path(python_platlib, "gshmem"))

    def setup_run_environment(self, env):
        if self.spec.satisfies("+python"):
            env.set("LIBGSHMEM", join_path(self.prefix.lib, "libgshmem.so.0"))
