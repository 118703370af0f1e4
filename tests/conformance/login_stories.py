"""What was observed of Apache Kafka's security, as stories that can be played on any broker (security-cases.md).

A story yields (label, what was seen). Labels begin with the case they belong to; a label ends with `!` where ours
differs on purpose.
"""

from __future__ import annotations

import base64
import json
import socket
import ssl
import struct
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

from conformance.security_sides import DELAY_MS, LIFETIME_MS, Side, acl, described
from partita.protocol.messages.api_versions import ApiVersionsRequest
from partita.protocol.messages.metadata import MetadataRequest
from partita.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from partita.protocol.primitives import Message
from partita.secret import Secret
from partita.security import scram
from support.broker.secured import PASSWORD, SecuredRaw, plain, took

Seen = Iterator[tuple[str, object]]
Story = Callable[[Side], Seen]
CLOSED = "closed"
TRIES = 5


def outcome(ask: Callable[[], Any], side: Side) -> object:
    """What the broker answers, as comparable values; or that it closes the connection."""
    try:
        return side.plain(ask())
    except (EOFError, OSError):
        return CLOSED


def is_late(begin: float) -> bool:
    """Whether a refusal was held back."""
    return took(begin) >= DELAY_MS - 10


def first_bytes(side: Side, listener: str, sent: bytes) -> bytes:
    """All that a listener answers to these bytes before it closes; a peer that is reset has seen nothing more."""
    received = b""
    with socket.create_connection(("127.0.0.1", side.ports[listener]), timeout=60) as peer:
        peer.sendall(sent)
        try:
            while more := peer.recv(4096):
                received += more
        except ConnectionResetError:
            pass
    return received


# Listeners, TLS, certificates


def tls(side: Side) -> Seen:
    """SE-A01 to A11: which version is spoken, what is answered to bytes of another protocol, whose address is told."""
    for highest in (None, ssl.TLSVersion.TLSv1_2):
        with side.raw("TLS", highest=highest) as raw:
            assert isinstance(raw.socket, ssl.SSLSocket)
            yield f"SE-A01 SE-A02 at most {highest}", raw.socket.version()
            yield f"SE-A01 SE-A02 served, at most {highest}", raw.serves()
    old = bytes.fromhex("160301002d010000290302") + b"r" * 32 + bytes.fromhex("000002002f0100")
    yield "SE-A03 TLS 1.1", first_bytes(side, "TLS", old)[5:7]
    strange = {"tls": bytes.fromhex("16030100a5010000a1"), "http": b"GET / HTTP/1.1\r\n\r\n", "ssh": b"SSH-2.0-x\r\n"}
    for name, sent in strange.items():
        for listener in ("OPEN", "LOGIN"):
            yield f"SE-A07 SE-A10 {name} to {listener}", first_bytes(side, listener, sent)
    request = struct.pack(">ihhih", 10, 18, 0, 1, -1)
    for listener in ("TLS", "BOTH"):
        answered = first_bytes(side, listener, request)
        yield f"SE-A09 plain to {listener}", (len(answered) <= 7, answered[:1] in (b"", b"\x15"))
    for listener in ("OPEN", "TLS"):
        with side.raw(listener) as raw:
            (node,) = raw.ask(MetadataRequest(topics=[]), 9).brokers
            yield f"SE-A08 address told by {listener}", (node.host, node.port == side.ports[listener])
    yield "SE-A11 token of GSSAPI", first_bytes(side, "LOGIN", struct.pack(">i", 0x60) + b"\x60" * 0x60)


def certificates(side: Side) -> Seen:
    """SE-H01 to H06: who is let in by a certificate, and as whom: an ACL for that name alone opens a topic."""
    side.forbid_all()
    stranger = type(side.certificates)(_folder(side, "stranger"), "Stranger")
    shown = {
        "SE-H01 none": None,
        "SE-H02 of another authority": stranger.issue("Carol"),
        "SE-H03 expired": side.certificates.issue("Expired", ended=True),
    }
    for label, certificate in shown.items():
        yield label, outcome(lambda c=certificate: _once(side, "MUTUAL", c), side)  # type: ignore[misc]  # the default binds
    named = {"SE-H04": ("Carol", "carol@team"), "SE-H05": ("svc-orders", "SVC-ORDERS"), "SE-H08": ("x-1", "CN=x-1")}
    for label, (common_name, principal) in named.items():
        certificate = side.certificates.issue(common_name)
        side.forbid_all()
        side.allow(acl(f"User:{principal}", 8, "t"))
        with side.raw("MUTUAL", certificate) as raw:
            yield f"{label} {common_name}", described(side, raw, "t")


def _folder(side: Side, name: str) -> Path:
    folder = side.certificates.folder / f"{side.name}-{name}"
    folder.mkdir(exist_ok=True)
    return folder


def _once(side: Side, listener: str, certificate: Path | None) -> Any:
    with side.raw(listener, certificate) as raw:
        return raw.ask(ApiVersionsRequest(), 0).error_code


# Before a login


def before_the_login(side: Side) -> Seen:
    """SE-B01 to B17."""
    for listener in ("LOGIN", "BOTH"):
        yield from _before_the_login(side, listener)
    for listener in ("OPEN", "TLS"):
        with side.raw(listener) as raw:
            yield f"SE-B16 handshake, {listener}", outcome(lambda r=raw: r.handshake("PLAIN"), side)  # type: ignore[misc]
            yield f"SE-B16 token, {listener}", outcome(lambda r=raw: r.authenticate(b"x"), side)  # type: ignore[misc]
            yield f"SE-B16 stays, {listener}", raw.serves()


def _before_the_login(side: Side, listener: str) -> Seen:
    def table(raw: SecuredRaw) -> list[Any]:
        return sorted((k.api_key, k.min_version) for k in raw.ask(ApiVersionsRequest(), 0).api_keys if k.api_key < 17)

    with side.raw(listener) as raw:
        before = table(raw)
        answer = raw.log_in()
        yield f"SE-B01 SE-C01 login, {listener}", side.plain(answer)
        yield f"SE-B02 same table after the login, {listener}", table(raw) == before
        yield f"SE-B14 handshake when logged in, {listener}", outcome(lambda: raw.handshake("PLAIN"), side)
        yield f"SE-B15 token when logged in, {listener}", outcome(lambda: raw.authenticate(b"x"), side)
        yield f"SE-B15 stays, {listener}", raw.serves()
    for mechanism in ("GSSAPI", "plain", "", "SCRAM-SHA-1"):
        with side.raw(listener) as raw:
            begin = time.monotonic()
            refused = raw.handshake(mechanism)
            yield f"SE-B03 {mechanism!r}, {listener}", (side.plain(refused), is_late(begin))
            yield f"SE-B04 closed after {mechanism!r}, {listener}", raw.is_closed()
    metadata = MetadataRequest(topics=[])
    token = SaslAuthenticateRequest(auth_bytes=plain("alice", PASSWORD))
    alone: list[tuple[str, list[tuple[Message, int]]]] = [
        ("SE-B05 token first", [(token, 2)]),
        ("SE-B06 Metadata first", [(metadata, 9)]),
        ("SE-B06 Metadata second", [(ApiVersionsRequest(), 0), (metadata, 9)]),
        ("SE-B07 versions twice", [(ApiVersionsRequest(), 0), (ApiVersionsRequest(), 0)]),
    ]
    for label, requests in alone:
        with side.raw(listener) as raw:
            for request, version in requests[:-1]:
                raw.ask(request, version)
            yield f"{label}, {listener}", outcome(lambda r=raw, q=requests[-1]: r.ask(*q), side)  # type: ignore[misc]
    with side.raw(listener) as raw:
        raw.handshake("PLAIN")
        yield f"SE-B08 handshake twice, {listener}", outcome(lambda: raw.handshake("PLAIN"), side)
        yield f"SE-B08 closed, {listener}", raw.is_closed()
    with side.raw(listener) as raw:
        raw.handshake("PLAIN")
        raw.send(metadata, 9)
        told = outcome(lambda: raw.recv(3, 9)[1], side)
        yield f"SE-B09 tells nothing, {listener}", told == CLOSED or not told["brokers"]  # type: ignore[index]  # a response
        yield f"SE-B09 closed, {listener}", told == CLOSED or raw.is_closed()
    for label, sent in (("right", plain("alice", PASSWORD)), ("wrong", plain("alice", "x"))):
        with side.raw(listener) as raw:
            raw.handshake("PLAIN", version=0)
            begin = time.monotonic()
            raw.socket.sendall(struct.pack(">i", len(sent)) + sent)
            received = outcome(lambda r=raw: r.socket.recv(4), side)  # type: ignore[misc]
            is_refused = received in (b"", CLOSED)
            yield f"SE-B10 SE-B11 bare, {label}, {listener}", (is_refused, received, is_late(begin) or not is_refused)
    with side.raw(listener) as raw:
        raw.socket.sendall(struct.pack(">ihhih", 12, 18, 99, 7, 1) + b"x\0")
        yield f"SE-B12 version 99, {listener}", raw.recv(18, 0)[1].error_code
        yield f"SE-B12 login after it, {listener}", raw.log_in().error_code
    with side.raw(listener) as raw:
        raw.socket.sendall(struct.pack(">i", 524_289))
        yield f"SE-B13 SE-P01 too large, {listener}", raw.is_closed()
    with side.raw(listener) as raw:
        bad = ApiVersionsRequest(client_software_name="b@d!", client_software_version="1")
        yield f"SE-B17 name of software, {listener}", raw.ask(bad, 3).error_code
    for label, first in {
        "SE-P01 negative length": struct.pack(">i", -1),
        "SE-P02 string beyond its frame": struct.pack(">ihhih", 12, 17, 1, 1, -1) + struct.pack(">h", 500),
    }.items():
        with side.raw(listener) as raw:
            raw.socket.sendall(first)
            yield f"{label}, {listener}", raw.is_closed()


# Mechanisms


def plain_mechanism(side: Side) -> Seen:
    """SE-C02 to C11."""
    tokens = {
        "SE-C02 wrong password": plain("alice", "x"),
        "SE-C03 unknown user": plain("eve", "x"),
        "SE-C04 no user": plain("", "x"),
        "SE-C05 no password": plain("alice", ""),
        "SE-C06 one part": b"alice",
        "SE-C06 two parts": b"\0alice",
        "SE-C06 four parts": b"\0a\0b\0c",
        "SE-C06 five parts": b"\0a\0b\0c\0d",
        "SE-C07 authorization id": plain("alice", PASSWORD, "alice"),
        "SE-C08 another authorization id": plain("alice", PASSWORD, "bob"),
        "SE-P06 line breaks": plain("a\r\n2026 ERROR fake", "x"),
    }
    for label, token in tokens.items():
        with side.raw("LOGIN") as raw:
            raw.handshake("PLAIN")
            begin = time.monotonic()
            answer = raw.authenticate(token)
            yield label, (side.plain(answer), is_late(begin) or not answer.error_code)
            yield f"{label}: closed", raw.serves() if not answer.error_code else raw.is_closed()


def scram_mechanisms(side: Side) -> Seen:
    """SE-D01 to D15."""
    for mechanism in scram.HASHES:
        for user in ("alice", "a=b,c"):
            with side.raw("LOGIN") as raw:
                answer = raw.log_in_by_scram(mechanism, user)
                yield (
                    f"SE-D01 SE-D02 SE-D14 {mechanism} {user}",
                    (answer.error_code, answer.error_message, raw.serves()),
                )
        with side.raw("LOGIN") as raw:
            yield f"SE-D03 wrong password, {mechanism}", _last(raw.log_in_by_scram(mechanism, password="wrong"))
    for mechanism in scram.HASHES:
        with side.raw("BOTH") as raw:
            yield f"SE-D15 {mechanism} by its own list", side.plain(raw.handshake(mechanism))
    first = {
        "SE-D08 another authorization id": "n,a=bob,n=alice,r=abc",
        "SE-D09 flag y": "y,,n=alice,r=abc",
        "SE-D09 channel binding": "p=tls-unique,,n=alice,r=abc",
        "SE-D12 delegation token": "n,,n=alice,r=abc,tokenauth=true",
        "SE-D13 nonsense": "nonsense",
        "SE-D13 empty": "",
        "SE-D13 escape": "n,,n==3x,r=abc",
        "SE-D13 no nonce": "n,,n=alice,r=",
        "SE-D13 no name": "n,,n=,r=abc",
        "SE-D13 not ASCII": "n,,n=\xe4,r=abc",
        "SE-D13 order": "n,,r=abc,n=alice",
    }
    for label, message in first.items():
        with side.raw("LOGIN") as raw:
            raw.handshake("SCRAM-SHA-256")
            yield label, _last(raw.authenticate(message.encode()))
    with side.raw("LOGIN") as raw:
        raw.handshake("SCRAM-SHA-256")
        answer = raw.authenticate(b"n,a=alice,n=alice,r=abc,ext=x")
        told = bytes(answer.auth_bytes).decode()
        yield "SE-D08 SE-D11 own id, extension", (answer.error_code, told[:5], told.split(",")[1:])
    with side.raw("LOGIN") as raw:
        raw.handshake("SCRAM-SHA-256")
        yield "SE-D04 SE-P05 unknown user at the first message!", _last(raw.authenticate(b"n,,n=eve,r=abc"))
    for label, change in _CHANGES.items():
        with side.raw("LOGIN") as raw:
            yield label, _last(_changed(raw, change))


_CHANGES: dict[str, Callable[[str], str]] = {
    "SE-D06 proof": lambda text: text[:-3] + ("A" if text[-3] != "A" else "B") + text[-2:],
    "SE-D07 nonce before": lambda text: text.replace("r=", "r=x"),
    "SE-D07 nonce behind": lambda text: text.replace(",p=", "x,p="),
    "SE-D07 nonce cut": lambda text: text.replace("r=" + "n" * 12, "r=" + "n" * 11),
    "SE-D07 another nonce": lambda text: f"{text[:7]}r=abcdefghijklmnopqrstuvwxyz{text[text.index(',p=') :]}",
    "SE-D13 nonsense at last": lambda text: "nonsense",
}


def channel_binding(side: Side) -> Seen:
    """SE-D10: a right proof over another header than the first message's."""
    with side.raw("LOGIN") as raw:
        raw.handshake("SCRAM-SHA-256")
        client = scram.ScramClient("SCRAM-SHA-256", "alice", "n" * 12)
        challenge = client.challenged(bytes(raw.authenticate(client.first()).auth_bytes))
        bare, nonce, salt, rounds = "n=alice,r=" + "n" * 12, challenge.nonce, challenge.salt, challenge.iterations
        final = f"c=eSws,r={nonce}"
        signed = f"{bare},r={nonce},s={base64.b64encode(salt).decode()},i={rounds},{final}".encode()
        salted = scram.salted_password("SCRAM-SHA-256", Secret(PASSWORD), salt, rounds)
        yield "SE-D10 c= of another header!", _last(raw.authenticate(f"{final},p={_proof(salted, signed)}".encode()))


def _proof(salted: bytes, signed: bytes) -> str:
    import hashlib
    import hmac

    key = hmac.digest(salted, b"Client Key", "sha256")
    signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
    return base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()


def _changed(raw: SecuredRaw, change: Callable[[str], str]) -> Any:
    raw.handshake("SCRAM-SHA-256")
    client = scram.ScramClient("SCRAM-SHA-256", "alice", "n" * 12)
    challenge = client.challenged(bytes(raw.authenticate(client.first()).auth_bytes))
    salted = scram.salted_password("SCRAM-SHA-256", Secret(PASSWORD), challenge.salt, challenge.iterations)
    return raw.authenticate(change(client.final(challenge, salted).decode()).encode())


def _last(answer: Any) -> tuple[int, str | None]:
    return answer.error_code, answer.error_message


def bearer_tokens(side: Side) -> Seen:
    """SE-F01 to F05, with tokens that nobody signed."""
    now = time.time()
    good = {"sub": "alice", "exp": now + 3600, "iat": now}
    messages = {
        "SE-F01 good": _bearer(_unsigned(**good)),
        "SE-F04 own id": _bearer(_unsigned(**good), "n,a=alice,"),
        "SE-F05 extensions": _bearer(_unsigned(**good), more="\x01logicalCluster=lkc-1\x01identityPoolId=pool-1"),
        "SE-F02 expired": _bearer(_unsigned(**{**good, "exp": now - 1})),
        "SE-F02 no subject": _bearer(_unsigned(exp=now + 60, iat=now)),
        "SE-F02 no token": _bearer("not-a-token"),
        "SE-F03 no header": b"\x01auth=Bearer x\x01\x01",
        "SE-F03 extension auth": _bearer("x", more="\x01auth=y"),
        "SE-F03 space in a name": _bearer("x", more="\x01a b=y"),
        "SE-F04 another id": _bearer(_unsigned(**good), "n,a=bob,"),
    }
    for label, message in messages.items():
        with side.raw("BEARER") as raw:
            raw.handshake("OAUTHBEARER")
            answer = raw.authenticate(message)
            lasts = answer.session_lifetime_ms
            yield label, (*_last(answer), bytes(answer.auth_bytes), 3_500_000 < lasts <= 3_600_000 or lasts)
            if answer.auth_bytes:
                yield f"{label}: then", (*_last(raw.authenticate(b"\x01")), raw.is_closed())
    with side.raw("BEARER") as raw:
        raw.handshake("OAUTHBEARER")
        told = outcome(lambda: raw.authenticate(b"n,,\x01auth=Basic x\x01\x01"), side)
        yield "SE-F13 Basic is never a login", told == CLOSED or told["error_code"] != "NONE"  # type: ignore[index]  # a response


def _unsigned(**claims: object) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part(claims)}."


def _bearer(token: str, header: str = "n,,", more: str = "") -> bytes:
    return f"{header}\x01auth=Bearer {token}{more}\x01\x01".encode()


# Re-authentication


def renewals(side: Side) -> Seen:
    """SE-G01 to G09. A machine that let a login end before it was renewed has told another story: it tells it again."""
    for _ in range(TRIES):
        told, is_in_time = _renewed_in_time(side)
        if is_in_time:
            break
    yield from told


def _renewed_in_time(side: Side) -> tuple[list[tuple[str, object]], bool]:
    """What is seen, and whether each login still held when it was renewed or used."""
    told: list[tuple[str, object]] = []
    story = _renewals(side)
    while True:
        try:
            told.append(next(story))
        except StopIteration as end:
            return told, bool(end.value)


def _renewals(side: Side) -> Generator[tuple[str, object], None, bool]:
    """All connections wait side by side."""
    names = ("renewed", "lazy", "other user", "other mechanism", "wrong", "impatient", "old")
    clients = {name: side.raw("SHORT") for name in names}
    begin = time.monotonic()
    for name, client in clients.items():
        client.handshake("PLAIN")
        answer = client.authenticate(plain("alice", PASSWORD), version=0 if name == "old" else 2)
        yield f"SE-G01 SE-G08 lifetime, {name}", answer.session_lifetime_ms
    while took(begin) < 1_100:
        time.sleep(0.01)
    renewed_at = time.monotonic()
    yield "SE-G02 renewed", outcome(clients["renewed"].log_in, side)
    yield "SE-G04 another user", outcome(lambda: clients["other user"].log_in("bob", "bob"), side)
    yield "SE-G05 another mechanism", outcome(lambda: clients["other mechanism"].handshake("SCRAM-SHA-256"), side)
    token = SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=abc")
    yield "SE-G05 then", outcome(lambda: clients["other mechanism"].ask(token, 2), side)
    yield "SE-G06 wrong password", outcome(lambda: clients["wrong"].log_in("alice", "wrong"), side)
    clients["impatient"].handshake("PLAIN")
    clients["impatient"].send(MetadataRequest(topics=[]), 9)
    told = outcome(lambda: clients["impatient"].recv(3, 9)[1], side)
    yield "SE-G07 tells nothing", told == CLOSED or not told["brokers"]  # type: ignore[index]  # a response
    is_in_time = took(begin) < LIFETIME_MS
    while took(begin) < LIFETIME_MS + 200:
        time.sleep(0.01)
    yield "SE-G02 served beyond the first end", outcome(clients["renewed"].serves, side)
    is_in_time = is_in_time and took(renewed_at) < LIFETIME_MS
    for name in ("lazy", "old"):
        yield f"SE-G03 SE-G09 {name}", outcome(lambda n=name: clients[n].ask(MetadataRequest(topics=[]), 9), side)  # type: ignore[misc]
    for name in ("other user", "other mechanism", "wrong", "impatient"):
        yield f"closed: {name}", clients[name].is_closed()
    for client in clients.values():
        client.socket.close()
    return is_in_time


STORIES: tuple[Story, ...] = (
    tls, certificates, before_the_login, plain_mechanism, scram_mechanisms, channel_binding, bearer_tokens, renewals,
)  # fmt: skip
