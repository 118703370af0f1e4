"""THE table of what we serve: API, versions, the module that answers, and where we differ from Kafka on purpose.

Versions are exactly those Apache Kafka 4.3.1 advertises. The table in docs/compatibility.md is printed from here. A
handler's module is imported at its first request, so that a broker starts quickly; its function is always called
`handle`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from partita.protocol.api_table import APIS

if TYPE_CHECKING:
    from partita.broker.requests.context import Handler
    from partita.protocol.primitives import Message

API_VERSIONS = 18
ELEMENTS_MAX = 20_000
"""How many array elements a request may hold; what the loop serves in some milliseconds. A larger one is malformed."""
PARTITIONS_MAX = 50_000
"""The same for requests that honest clients send for very many partitions; these are served in slices."""
ALONE_MAX = 400_000
"""The same where honest clients may ask for every partition that a broker can have, each in a topic of its own. Those
with more than PARTITIONS_MAX are served one after the other, since each takes much memory."""
CHANGES_MAX = 2_000
"""The same for requests whose elements each cost a change of the catalogue."""


class ServedApi:
    """One row: `min_version` to `max_version` are served, `advertised_min` is what ApiVersions says.

    `elements_max` bounds the array elements of one request, nested ones included; one with up to `alone_max` of them is
    served when no other such request is. (H6, H34)
    """

    __slots__ = (
        "_handler", "_request", "advertised_min", "alone_max", "deviation", "elements_max", "key", "max_version",
        "min_version", "module", "name",
    )  # fmt: skip

    def __init__(
        self, key: int, module: str, deviation: str = "", *, last: int | None = None, says: int | None = None,
        elements_max: int = ELEMENTS_MAX, alone_max: int = 0,
    ):  # fmt: skip
        api = APIS[key]
        self.key = key
        self.name = api.name
        self.module = module
        self.deviation = deviation
        self.elements_max = elements_max
        self.alone_max = alone_max
        self.min_version = api.min_version
        self.max_version = api.max_version if last is None else last
        self.advertised_min = api.min_version if says is None else says
        self._handler: Handler | None = None
        self._request: type[Message] | None = None

    @property
    def handler(self) -> Handler:
        """The function that answers; its module is imported at the first use."""
        if self._handler is None:
            self._handler = import_module(f"partita.broker.handlers.{self.module}").handle
        return self._handler

    @property
    def request(self) -> type[Message]:
        """The class of the request; its module is imported at the first use."""
        if self._request is None:
            self._request = APIS[self.key].request
        return self._request

    @property
    def response(self) -> type[Message]:
        """The class of the response."""
        return APIS[self.key].response


TABLE: tuple[ServedApi, ...] = (
    ServedApi(0, "produce", says=0),
    ServedApi(
        1,
        "fetch",
        "An answer holds at most 50 MiB and waits at most 30 s; no replica ever follows",
        elements_max=PARTITIONS_MAX,
    ),
    ServedApi(2, "list_offsets", elements_max=PARTITIONS_MAX, alone_max=ALONE_MAX),
    ServedApi(
        3,
        "metadata",
        "A topic that the request creates is in the answer; Kafka first answers UNKNOWN_TOPIC_OR_PARTITION",
    ),
    ServedApi(8, "offset_commit", elements_max=PARTITIONS_MAX, alone_max=ALONE_MAX),
    ServedApi(9, "offset_fetch", elements_max=PARTITIONS_MAX, alone_max=ALONE_MAX),
    ServedApi(10, "find_coordinator"),
    ServedApi(
        11,
        "join_group",
        "A join that a newer one replaces is answered NOT_COORDINATOR; Kafka never answers it",
    ),
    ServedApi(12, "heartbeat"),
    ServedApi(13, "leave_group"),
    ServedApi(
        14,
        "sync_group",
        "A sync that a newer one replaces is answered NOT_COORDINATOR; Kafka never answers it",
    ),
    ServedApi(15, "describe_groups"),
    ServedApi(16, "list_groups"),
    ServedApi(17, "sasl_handshake"),
    ServedApi(18, "api_versions"),
    ServedApi(
        19, "create_topics", "A topic has at most 10,000 partitions; new topics are usable when the answer arrives"
    ),
    ServedApi(20, "delete_topics"),
    ServedApi(21, "delete_records"),
    ServedApi(22, "init_producer_id", last=5),
    ServedApi(23, "offset_for_leader_epoch"),
    ServedApi(24, "add_partitions_to_txn", "From version 4 on, without an authorizer, from the same machine alone"),
    ServedApi(25, "add_offsets_to_txn"),
    ServedApi(26, "end_txn"),
    ServedApi(27, "write_txn_markers", "Without an authorizer accepted from the same machine alone"),
    ServedApi(28, "txn_offset_commit"),
    ServedApi(29, "describe_acls", "A filter with an unknown code is answered INVALID_REQUEST; Kafka disconnects"),
    ServedApi(
        30,
        "create_acls",
        "ANY, MATCH or an unknown code in an ACL is answered INVALID_REQUEST; Kafka disconnects or answers -1",
        elements_max=CHANGES_MAX,
    ),
    ServedApi(
        31,
        "delete_acls",
        "A filter with an unknown code is answered INVALID_REQUEST; Kafka disconnects",
        elements_max=CHANGES_MAX,
    ),
    ServedApi(
        32,
        "describe_configs",
        "Options of features that Partita lacks are not listed",
    ),
    ServedApi(33, "alter_configs"),
    ServedApi(34, "alter_replica_log_dirs", "There is one log directory, and nothing is moved"),
    ServedApi(35, "describe_log_dirs"),
    ServedApi(36, "sasl_authenticate"),
    ServedApi(37, "create_partitions"),
    ServedApi(42, "delete_groups"),
    ServedApi(43, "elect_leaders"),
    ServedApi(44, "incremental_alter_configs"),
    ServedApi(45, "alter_partition_reassignments", "No data is copied; a reassignment is complete at once"),
    ServedApi(46, "list_partition_reassignments", "The list is always empty, since a reassignment completes at once"),
    ServedApi(47, "offset_delete"),
    ServedApi(50, "describe_user_scram_credentials"),
    ServedApi(
        51,
        "alter_user_scram_credentials",
        "An empty salt or salted password is refused",
        elements_max=CHANGES_MAX,
    ),
    ServedApi(48, "describe_client_quotas"),
    ServedApi(
        49,
        "alter_client_quotas",
        "request_percentage is kept and not enforced; host names are refused for ip",
        elements_max=CHANGES_MAX,
    ),
    ServedApi(55, "describe_quorum", "Tells of one voter, the controller; there is no log of metadata"),
    ServedApi(60, "describe_cluster"),
    ServedApi(61, "describe_producers"),
    ServedApi(65, "describe_transactions"),
    ServedApi(66, "list_transactions", "A pattern has at most 1,000 characters, and needs the extra `regex`"),
    ServedApi(68, "consumer_group_heartbeat"),
    ServedApi(69, "consumer_group_describe"),
    ServedApi(74, "list_config_resources"),
    ServedApi(75, "describe_topic_partitions"),
)
SERVED: dict[int, ServedApi] = {row.key: row for row in TABLE}


def markdown_table() -> str:
    """The table for docs/compatibility.md."""
    lines = ["| API | key | versions | differs from Kafka on purpose |", "|---|---|---|---|"]
    for row in TABLE:
        lines.append(f"| {row.name} | {row.key} | {row.min_version}-{row.max_version} | {row.deviation} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(markdown_table())
