"""A registry that is a service, over its REST interface (Confluent Schema Registry, Karapace, Apicurio, Redpanda).

Answers about ids are remembered for ever. Requests that fail for now are tried on each URL in turn, then reported as
RegistryUnavailableError, which a consumer does not take for an unreadable record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from partita.lazy import later
from partita.registry.errors import RegistryError, RegistryUnavailableError
from partita.registry.schema import Reference, Schema, SchemaType

if TYPE_CHECKING:
    import ssl

    import httpx
else:
    httpx = later("httpx")
    ssl = later("ssl")

_JSON = "application/vnd.schemaregistry.v1+json"
_CONTENT = {"Accept": _JSON, "Content-Type": _JSON}
_HTTP_OK, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _BROKEN = 200, 401, 403, 404, 500
_FOR_NOW = (408, 429)


class HttpRegistry:
    """`HttpRegistry("http://localhost:8081")`; several URLs are tried in turn.

    `basic_auth` is (user, password), `token` a bearer token, `ca` a file with the authorities to trust instead of the
    system's, `timeout` the seconds of one request.
    """

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        basic_auth: tuple[str, str] | None = None,
        token: str | None = None,
        ca: str | None = None,
        timeout: float = 10.0,
    ) -> None:
        self.urls = [one.strip().rstrip("/") for one in (url.split(",") if isinstance(url, str) else url)]
        self._settings = (basic_auth, token, ca, timeout)
        self._client: httpx.Client | None = None
        self._schemas: dict[int, Schema] = {}
        self._registered: dict[tuple[str, Schema], int] = {}

    def __getstate__(self) -> tuple[Any, ...]:
        return (self.urls, self._settings)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        urls, (basic_auth, token, ca, timeout) = state
        HttpRegistry.__init__(self, urls, basic_auth=basic_auth, token=token, ca=ca, timeout=timeout)

    def __repr__(self) -> str:
        return f"HttpRegistry({', '.join(self.urls)})"

    def schema(self, schema_id: int) -> Schema:
        """The schema of this id. Raises RegistryError, RegistryUnavailableError."""
        found = self._schemas.get(schema_id)
        if found is None:
            path = f"/schemas/ids/{int(schema_id)}"
            answer = self._ask("GET", path, f"no schema with id {schema_id}")
            if answer.get("schemaType") == "PROTOBUF":
                answer = self._ask("GET", f"{path}?format=serialized", f"no schema with id {schema_id}")
            found = self._schemas[schema_id] = self._schema(answer)
        return found

    def forget(self, schema_id: int) -> None:
        """Ask again for this schema: what came in its place could not be used."""
        self._schemas.pop(schema_id, None)

    def register(self, subject: str, schema: Schema) -> int:
        """The id of the schema, which is added to the subject unless it is there already. Raises RegistryError."""
        found = self._registered.get((subject, schema))
        if found is None:
            references = [{"name": r.name, "subject": r.subject, "version": r.version} for r in schema.references]
            body = {"schema": schema.text, "schemaType": schema.type, "references": references}
            answer = self._ask("POST", f"/subjects/{quote(subject, safe='')}/versions", f"no subject {subject!r}", body)
            found = self._registered[subject, schema] = self._id(answer)
            self._schemas[found] = schema
        return found

    def latest(self, subject: str) -> tuple[int, Schema]:
        """The newest schema of a subject, with its id. Raises RegistryError."""
        answer = self._ask("GET", f"/subjects/{quote(subject, safe='')}/versions/latest", f"no subject {subject!r}")
        return self._id(answer), self._schema(answer)

    def version(self, subject: str, version: int) -> Schema:
        """One version of a subject, counted from 1. Raises RegistryError."""
        missing = f"no version {version} of subject {subject!r}"
        return self._schema(self._ask("GET", f"/subjects/{quote(subject, safe='')}/versions/{int(version)}", missing))

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _ask(self, method: str, path: str, missing: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        troubles = []
        for url in self.urls:
            try:
                answer = self._connected().request(method, url + path, json=body, headers=_CONTENT)
            except httpx.HTTPError as error:
                troubles.append(f"{url}: {error or type(error).__name__}")
                continue
            if answer.status_code >= _BROKEN or answer.status_code in _FOR_NOW:
                troubles.append(f"{url} answered {answer.status_code}: {answer.text[:200]}")
                continue
            return _checked(answer.status_code, answer.text, url, missing)
        raise RegistryUnavailableError(f"the schema registry cannot be asked: {'; '.join(troubles)}")

    def _schema(self, answer: Mapping[str, Any]) -> Schema:
        """The schema in an answer. Raises RegistryUnavailableError for an object that holds none."""
        text, kind, listed = answer.get("schema"), answer.get("schemaType", "AVRO"), answer.get("references") or ()
        try:
            references = tuple(Reference(str(r["name"]), str(r["subject"]), int(r["version"])) for r in listed)
        except (TypeError, KeyError, ValueError):
            text = references = None
        if not isinstance(text, str) or not isinstance(kind, str) or references is None:
            raise self._no_registry(answer)
        return Schema(text, cast(SchemaType, kind), references)

    def _id(self, answer: Mapping[str, Any]) -> int:
        """The id in an answer. Raises RegistryUnavailableError for an object that holds none."""
        found = answer.get("id")
        if not isinstance(found, int) or isinstance(found, bool):
            raise self._no_registry(answer)
        return found

    def _no_registry(self, answer: Mapping[str, Any]) -> RegistryUnavailableError:
        return _no_registry(" or ".join(self.urls), f"{_HTTP_OK}: {str(dict(answer))[:200]}")

    def _connected(self) -> httpx.Client:
        if self._client is None:
            basic_auth, token, ca, timeout = self._settings
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            verify = ssl.create_default_context(cafile=ca)
            self._client = httpx.Client(auth=basic_auth, headers=headers, verify=verify, timeout=timeout)
        return self._client


def _checked(status: int, text: str, url: str, missing: str) -> dict[str, Any]:
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    if status == _HTTP_OK and isinstance(answer, dict):
        return answer
    said = answer.get("message", "") if isinstance(answer, dict) else text[:200]
    if status == _UNAUTHORIZED:
        raise RegistryUnavailableError(f"{url} wants to know who asks: give basic_auth=(user, password) or token=...")
    if status == _FORBIDDEN:
        raise RegistryUnavailableError(f"{url} forbids it to this user: {said}")
    if not isinstance(answer, dict) or not isinstance(answer.get("error_code"), int):
        raise _no_registry(url, f"{status}: {said or text[:200]}")
    if status == _NOT_FOUND:
        raise RegistryError(f"{url} has {missing}: {said}")
    raise RegistryError(f"{url} refuses with {status}: {said}")


def _no_registry(url: str, said: str) -> RegistryUnavailableError:
    """A gateway, a health page, a mock: a registry's refusals have an error_code, and its schemas are text."""
    return RegistryUnavailableError(f"{url} does not answer as a schema registry; is the address right? {said}")
