"""The compiled parts: the same files that run uncompiled, built by Cython when a compiler is there.

`PARTITA_PURE=1` forces the pure build. A failing compiler never fails the install: extensions are optional.
"""

import os
import sysconfig
from runpy import run_path
from shutil import which

from setuptools import Extension, setup

COMPILED: tuple[str, ...] = run_path("src/partita/compiled.py")["COMPILED"]


def extensions() -> list[Extension]:
    if os.environ.get("PARTITA_PURE", "") not in ("", "0"):
        return []
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    if which(compiler) is None and which("cc") is None:
        print("partita: no C compiler found; installing the pure Python build, same behaviour, slower")
        return []
    from Cython.Build import cythonize

    # Debug information would be three quarters of a wheel, and most of the compiler's time.
    flags = {} if os.name == "nt" else {"extra_compile_args": ["-g0"]}
    modules = [Extension(name, [f"src/{name.replace('.', '/')}.py"], optional=True, **flags) for name in COMPILED]
    directives = {"language_level": 3, "annotation_typing": False}
    return [] if not modules else cythonize(modules, compiler_directives=directives, build_dir="build/cython")


setup(ext_modules=extensions())
