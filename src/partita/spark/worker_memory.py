"""Makes Python workers of Spark cheap to use again.

Spark's daemon runs a full garbage collection after each task of a worker. It walks everything that was imported, pandas
and pyarrow among it: 30 to 50 ms of CPU time for a task that may have read 200 rows.
"""

from __future__ import annotations

import gc
import sys

_settled = False


def settle() -> None:
    """In a worker of Spark, once: collect, then take what is left out of later collections. Elsewhere nothing.

    To be called at the end of a task, when everything that a task needs has been imported.
    """
    global _settled
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if _settled or spec is None or spec.name != "pyspark.daemon":
        return
    _settled = True
    gc.collect()
    gc.freeze()
