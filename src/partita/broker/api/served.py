"""The declaration at the head of every module in `partita.broker.handlers`: the broker's knowledge of one API.

    API = Served(HeartbeatRequest, rights=(READ_GROUP,))

Key and versions come with the request's class. `partita.broker.api.index` is printed from these declarations by
tools/apis.py, and so are docs/rights.md and docs/compatibility.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from partita.protocol.primitives import Message


ELEMENTS_MAX = 20_000
"""Bound of a request's array elements: the loop serves them in some milliseconds. A larger one is malformed."""
PARTITIONS_MAX = 50_000
"""The same for requests that honest clients send for very many partitions; these are served in slices."""
ALONE_MAX = 400_000
"""The same where honest clients may ask for every partition that a broker can have, each in a topic of its own. Those
with more than PARTITIONS_MAX are served one after the other, since each takes much memory."""
CHANGES_MAX = 2_000
"""The same for requests whose elements each cost a change of the catalogue."""


class Need(Protocol):
    """A right that requests need; `partita.broker.api.needs` has the kinds."""

    @property
    def needed(self) -> str:
        """In words, for the documents."""
        ...

    @property
    def outcome(self) -> str:
        """The form of a refusal, for the documents."""
        ...


class Errors(NamedTuple):
    """Exceptions of the answer to a request that failed as a whole.

    By default the code goes to the top, and in versions without a place there onto each item that was asked about.
    """

    has_items: bool = True
    """False: in versions without a place for the code, nothing says it."""
    also_in_items: bool = False
    """The items have the code, too, where there is one for the whole request."""
    says_once: bool = False
    """An item that was asked about twice is in the answer once."""
    says_why: bool = False
    """The text of the code is in the answer."""
    fields: Mapping[str, Any] = {}
    """Fields of the answer and its items whose values are not the schema's defaults."""


class Quota(NamedTuple):
    """The quota of clients that requests count against.

    Bytes that clients send are those of the request. For bytes that they read, the module says how many there are in an
    answer, `bytes_read(answer)`, and what a client over its quota gets, `without_records(ctx, request)`. For changes of
    topics, `mutations(ctx, item)` says how many one item of the request makes.
    """

    name: Literal["producer_byte_rate", "consumer_byte_rate", "controller_mutation_rate"]
    refused_from: int = 0
    """The version from which a change over the quota is refused; before it, clients only wait."""
    items: tuple[str, ...] = ()
    """The lists of the request that hold the changes, of which one is filled."""
    answers: str = ""
    """The list of the response that the refused ones are added to."""


class Served(NamedTuple):
    """One API. `rights` are checked in order, before the handler; without them every client may ask.

    `elements_max` bounds the array elements of one request, nested ones included; one with up to `alone_max` of them is
    served when no other such request is (H6, H34). `last` is the last version served, if not the request's, and
    `advertised_min` the first one that ApiVersions names, if not the request's. `deviation` is a sentence
    "Partita ... where Kafka ..." that no comment of the module says.
    """

    request: type[Message]
    rights: tuple[Need, ...] = ()
    elements_max: int = ELEMENTS_MAX
    alone_max: int = 0
    errors: Errors = Errors()
    quota: Quota | None = None
    last: int | None = None
    advertised_min: int | None = None
    deviation: str = ""
