"""The compiled parts: the same files that run uncompiled, built by Cython when a compiler is there.

`PARTITA_PURE=1` forces the pure build. A failing compiler never fails the install: extensions are optional.
The links of the long description lead into the repository that a hosted build runs for, or that `PARTITA_REPOSITORY`
names; an index has none of the files beside README.md.
"""

import os
import re
import sysconfig
from pathlib import Path
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

    # Debug information would be three quarters of a wheel. -O3 takes half as long again to compile and runs no faster.
    # Warnings about generated C are of no use to those who install it.
    flags = {} if os.name == "nt" else {"extra_compile_args": ["-g0", "-O2", "-w"]}
    modules = [Extension(name, [f"src/{name.replace('.', '/')}.py"], optional=True, **flags) for name in COMPILED]
    directives = {"language_level": 3, "annotation_typing": False}
    built: list[Extension] = cythonize(
        modules, compiler_directives=directives, build_dir="build/cython", nthreads=os.cpu_count() or 1, quiet=True
    )
    return built


def repository() -> str:
    """Where the sources can be read, if that is known."""
    hosted = [os.environ.get(name, "") for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY")]
    return os.environ.get("PARTITA_REPOSITORY") or ("/".join(hosted) if all(hosted) else "")


def long_description(readme: str, base: str) -> str:
    """README.md with absolute links; without a repository they are left as their text, and pictures go."""

    def absolute(link: re.Match[str]) -> str:
        picture, text, target = link.groups()
        if base:
            return f"{picture}[{text}]({base}/{'raw' if picture else 'blob'}/HEAD/{target})"
        return "" if picture else text

    return re.sub(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)]*)\)", absolute, readme)


def main() -> None:
    base = repository()
    urls = {"Source": base, "Changelog": f"{base}/blob/HEAD/CHANGELOG.md", "Issues": f"{base}/issues"} if base else {}
    setup(
        ext_modules=extensions(),
        long_description=long_description(Path("README.md").read_text(encoding="utf-8"), base),
        long_description_content_type="text/markdown",
        project_urls=urls,
    )


# Cython's worker processes import this file where they are not forked: on macOS, and since Python 3.14 everywhere.
if __name__ == "__main__":
    main()
