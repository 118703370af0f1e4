"""Name the missing right, the resource and the user in the admin client's errors. (security.md 19, row 11)"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

from partita.admin.results import SomeFailed
from partita.errors import KafkaError, MissingRightError, error_for

Method = TypeVar("Method", bound=Callable[..., Any])


def needs(topic: str = "", group: str = "", cluster: str = "", transaction: str = "") -> Callable[[Method], Method]:
    """Declare the operations that a call needs on each kind of resource, for the error when one is missing.

    Names are the call's own arguments; an error about any other name stays unchanged.
    """
    operations = {"topic": topic, "group": group, "the cluster": cluster, "transactional id": transaction}

    def wrap(method: Method) -> Method:
        @wraps(method)
        async def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return await method(self, *args, **kwargs)
            except MissingRightError as error:
                has_group_first = bool(topic and group and args and isinstance(args[0], str))
                about = args[1:] if has_group_first and error.resource == "topic" else args[:1] or kwargs.values()
                given = [name for value in about for name in names_in(value)]
                raise named(error, operations, given, self.cluster.config.security.user) from None
            except SomeFailed as some:
                failures = {
                    what: named(e, operations, [what], self.cluster.config.security.user)
                    for what, e in some.failures.items()
                }
                raise SomeFailed(failures) from None

        return cast(Method, call)

    return wrap


def named(error: KafkaError, operations: Mapping[str, str], given: Iterable[str], user: str | None) -> KafkaError:
    """Return the error with right, names and user, if it is about a known right.

    A look-up of the coordinator on the way names its own needed right; the call's needs include it.
    """
    if not isinstance(error, MissingRightError):
        return error
    operation = operations.get(error.resource, "")
    names = list(dict.fromkeys(error.names or given))
    if error.resource == "the cluster":
        names = []
    elif len(names) != 1:
        names = [name for name in names if repr(name) in str(error)]
        if not names:
            return error
    return error_for(error.code, operation=operation, names=names, user=user) if operation else error


def names_in(value: object) -> list[str]:
    """Return the names of topics, groups or ids in an argument of a call."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [name for key in value for name in names_in(key)]
    if isinstance(value, tuple | list | set | frozenset):
        return [name for each in value for name in names_in(each)]
    name = getattr(value, "name", None)
    return [name] if isinstance(name, str) else []
