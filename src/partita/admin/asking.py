"""One request to a cluster, sent again where the node that can answer it has changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, Protocol, TypeVar, cast

from partita.admin.results import NodeDescription, raise_failures
from partita.errors import UnsupportedVersionError, error_for
from partita.net.cluster import COORDINATOR_MOVED, Cluster
from partita.net.errors import Disconnected
from partita.protocol.error_codes import ErrorCode
from partita.protocol.primitives import Message, Request

R = TypeVar("R", bound=Message)


class Connected(Protocol):
    """An admin client that is connected."""

    @property
    def cluster(self) -> Cluster:
        """The connections in use."""
        ...


async def ask_coordinator(
    cluster: Cluster,
    group_id: str,
    message: Request[R],
    codes: Callable[[R], Iterable[int]],
    max_version: int | None = None,
) -> R:
    """Send to the group's coordinator; look it up again, or wait, while the answer's codes say so."""

    async def once() -> R:
        node = await cluster.coordinator_for(group_id)
        try:
            connection = await cluster.pool.connect(node.id, node.host, node.port)
            answer = await connection.send(message, max_version=max_version)
        except Disconnected:
            cluster.forget_coordinator(group_id)
            raise
        found = {ErrorCode(code) for code in codes(answer)}
        if found & COORDINATOR_MOVED:
            cluster.forget_coordinator(group_id)
        for code in found & {*COORDINATOR_MOVED, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}:
            raise error_for(code, f"coordinator of group {group_id!r}")
        return answer

    return await cluster.retry(once)


async def ask_about_group(cluster: Cluster, group_id: str, message: Request[Any]) -> Any:
    """The group in the answer; None if there is none of this name and type, or the brokers know no such groups."""
    try:
        answer = await ask_coordinator(cluster, group_id, message, lambda a: [g.error_code for g in a.groups])
    except UnsupportedVersionError:
        return None
    (group,) = answer.groups
    if group.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
        return None
    check_group(group_id, group.error_code, group.error_message)
    return group


def check_group(group_id: str, number: int, message: str | None = None) -> None:
    """Raise the error of this code, if it is one."""
    if number:
        raise error_for(number, f"group {group_id!r}: {message or ErrorCode(number).meaning}")


async def coordinator_of(cluster: Cluster, group_id: str) -> NodeDescription:
    """The node that coordinates the group."""
    node = await cluster.coordinator_for(group_id)
    return NodeDescription(node.id, node.host, node.port, node.rack)


async def named_node(cluster: Cluster, node_id: int) -> int:
    """Return the id of a node that the caller named, with its present address known.

    Raises BrokerNotAvailableError if the cluster has no such node now.
    """
    await cluster.refresh([])
    if node_id not in cluster.view.nodes:
        nodes = ", ".join(map(str, sorted(cluster.view.nodes)))
        raise error_for(
            ErrorCode.BROKER_NOT_AVAILABLE, f"the cluster has no node {node_id} now; its nodes are: {nodes}"
        )
    return node_id


async def ask_decided(cluster: Cluster, message: Request[R]) -> R:
    """`ask_controller` for an answer that has one code for all of it. Raises its error."""
    answer: Any = await ask_controller(cluster, message, lambda a: [a.error_code])
    if answer.error_code:
        raise error_for(answer.error_code, getattr(answer, "error_message", None))
    return cast(R, answer)


async def ask_for_each(cluster: Cluster, message: Request[R], results: Callable[[R], Iterable[tuple[str, Any]]]) -> R:
    """`ask_controller` for an answer that has a code for each thing, by its name. Raises its error, or SomeFailed."""
    answer = await ask_controller(cluster, message, lambda a: [result.error_code for _, result in results(a)])
    named = list(results(answer))
    raise_failures({name: error_for(r.error_code, r.error_message) for name, r in named if r.error_code}, len(named))
    return answer


async def ask_controller(cluster: Cluster, message: Request[R], codes: Callable[[R], Collection[int]]) -> R:
    """Send to the controller (any broker forwards it), again while an answer's codes say it was the wrong node."""

    async def once() -> R:
        controller = cluster.view.controller_id
        answer = await cluster.request(controller if controller in cluster.view.nodes else None, message)
        if ErrorCode.NOT_CONTROLLER in codes(answer):
            await cluster.refresh([])
            raise error_for(ErrorCode.NOT_CONTROLLER)
        return answer

    return await cluster.retry(once)
