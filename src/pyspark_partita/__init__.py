"""Lets Spark find `format("partita")` by itself: it imports every `pyspark_*` package and asks for `DefaultSource`."""


def __getattr__(name: str) -> type:
    if name != "DefaultSource":
        raise AttributeError(name)
    from partita.spark.source import GroupSource

    return GroupSource
