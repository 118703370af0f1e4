"""Delegation tokens: rules and storage. (Kafka: DelegationTokenControlManager.)

A token is an id, a login by SCRAM whose password is the HMAC of the id, an owner and three times. The HMAC is made with
the broker's secret key whenever it is needed and is not stored; what is stored checks a login and cannot log in.

Deviation: Partita refuses logins with an expired delegation token, where Kafka accepts it until it is removed and never
ends such a session.

Deviation: Partita voids existing tokens when `delegation.token.secret.key` changes, where Kafka gives them new HMACs.

Deviation: Partita answers POLICY_VIOLATION to more than 1,000 delegation tokens of a user or 16 KiB of renewers of a
token, where Kafka sets no such limit.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from partita.broker.config import BrokerConfig
from partita.broker.security.users import Users, credential_entry, credential_from, salt_like_kafkas
from partita.broker.topics.catalogue import TopicCatalogue
from partita.broker.topics.checks import Refused
from partita.log.storage import StorageError
from partita.now import Clock
from partita.protocol.error_codes import ErrorCode
from partita.secret import Secret
from partita.security.principals import USER, KafkaPrincipal
from partita.security.sasl_server import Lent
from partita.security.scram import HASHES, ITERATIONS_MIN, Credential, credential_of, salted_password

KIND = "delegation-token"
"""The kind of delegation tokens in the catalogue."""
_ID_BYTES = 16
_NOISE_BYTES = 32
REQUESTED_MAX = 1_000
"""As many tokens are there of one requester: each costs memory, and every user may ask for them."""
RENEWERS_CHARACTERS_MAX = 16 * 1024
log = logging.getLogger("partita.security")


@dataclass(frozen=True, slots=True)
class Token:
    """One token; times are milliseconds since 1970."""

    token_id: str
    owner: KafkaPrincipal
    requester: KafkaPrincipal
    renewers: tuple[KafkaPrincipal, ...]
    issued_ms: int
    expires_ms: int
    ends_ms: int
    """When it expires in any case."""

    def is_over(self, now_ms: int) -> bool:
        """Whether it has expired."""
        return self.expires_ms < now_ms or self.ends_ms < now_ms

    def concerns(self, principal: KafkaPrincipal) -> bool:
        """Whether this is the owner, the requester or a renewer."""
        return principal in (self.owner, self.requester) or principal in self.renewers

    def is_renewed_by(self, principal: KafkaPrincipal) -> bool:
        """Whether this one may renew and expire the token; the requester may not."""
        return principal == self.owner or principal in self.renewers


class Lifetimes(NamedTuple):
    """Maximum lifetime of a token, and time until its renewal, in milliseconds."""

    longest_ms: int
    renewed_ms: int


def issued(
    token_id: str,
    owner: KafkaPrincipal,
    requester: KafkaPrincipal,
    renewers: Collection[KafkaPrincipal],
    asked_ms: int,
    now_ms: int,
    lifetimes: Lifetimes,
) -> Token:
    """A new token; it may ask for a shorter life than the longest. Raises Refused."""
    if any(renewer.type != USER for renewer in renewers):
        raise Refused(ErrorCode.INVALID_PRINCIPAL_TYPE, "renewers are of the type User")
    if sum(len(renewer.name) for renewer in renewers) > RENEWERS_CHARACTERS_MAX:
        raise Refused(ErrorCode.POLICY_VIOLATION, f"renewers have {RENEWERS_CHARACTERS_MAX} characters at most")
    ends_ms = now_ms + (min(lifetimes.longest_ms, asked_ms) if asked_ms > 0 else lifetimes.longest_ms)
    expires_ms = min(ends_ms, now_ms + lifetimes.renewed_ms)
    return Token(token_id, owner, requester, tuple(dict.fromkeys(renewers)), now_ms, expires_ms, ends_ms)


def renewed(token: Token | None, asker: KafkaPrincipal, period_ms: int, now_ms: int, lifetimes: Lifetimes) -> Token:
    """The token with a later end, which is never after its last one. Raises Refused."""
    if token is None:
        raise Refused(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "no token has this HMAC")
    if token.is_over(now_ms):
        raise Refused(ErrorCode.DELEGATION_TOKEN_EXPIRED, f"the token ended at {token.expires_ms}")
    if not token.is_renewed_by(asker):
        raise Refused(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, "owner and renewers alone renew a token")
    period_ms = min(lifetimes.renewed_ms, period_ms) if period_ms > 0 else lifetimes.renewed_ms
    return replace(token, expires_ms=min(token.ends_ms, now_ms + period_ms))


def expired(token: Token | None, asker: KafkaPrincipal, period_ms: int, now_ms: int) -> Token | None:
    """The token with another end, or None if it is to be removed at once. Raises Refused."""
    if token is None:
        raise Refused(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "no token has this HMAC")
    if not token.is_renewed_by(asker):
        raise Refused(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, "owner and renewers alone end a token")
    if period_ms < 0:
        return None
    if token.is_over(now_ms):
        raise Refused(ErrorCode.DELEGATION_TOKEN_EXPIRED, f"the token ended at {token.expires_ms}")
    return replace(token, expires_ms=min(token.ends_ms, now_ms + period_ms))


class DelegationTokens:
    """The tokens of one broker process; all its nodes and listeners share them."""

    def __init__(self, catalogue: TopicCatalogue, config: BrokerConfig, users: Users, clock: Clock) -> None:
        secret = config.get("delegation.token.secret.key")
        self._key = secret.reveal().encode() if isinstance(secret, Secret) else b""
        self.lifetimes = Lifetimes(
            config.int("delegation.token.max.lifetime.ms"), config.int("delegation.token.expiry.time.ms")
        )
        self.sweep_seconds = config.int("delegation.token.expiry.check.interval.ms") / 1000
        self._catalogue = catalogue
        self._users = users
        self._clock = clock
        self._tokens: dict[str, Token] = {}
        self._by_hmac: dict[bytes, str] = {}
        for token_id, entry in catalogue.kept.get(KIND, {}).items() if self.is_enabled else ():
            if hmac.compare_digest(bytes.fromhex(entry["check"]), _check(self.hmac_of(token_id))):
                self._put(_restored(token_id, entry))

    @property
    def is_enabled(self) -> bool:
        """Whether there is a secret key to make tokens with."""
        return bool(self._key)

    def hmac_of(self, token_id: str) -> bytes:
        """The secret half of a token, known to its owner; in base64 it is the password of its logins."""
        return hmac.digest(self._key, token_id.encode(), "sha512")

    def now_ms(self) -> int:
        """This instant, since 1970."""
        return self._clock.now().wall_ms

    def find(self, hmac_: bytes) -> Token | None:
        """The token with this HMAC."""
        token_id = self._by_hmac.get(hmac_)
        return None if token_id is None else self._tokens[token_id]

    def every(self) -> list[Token]:
        """All tokens, also those that have expired and are not removed yet."""
        return list(self._tokens.values())

    def check_room(self, requester: KafkaPrincipal) -> None:
        """Raise Refused if there are too many tokens of one requester already."""
        if sum(token.requester == requester for token in self._tokens.values()) >= REQUESTED_MAX:
            raise Refused(ErrorCode.POLICY_VIOLATION, f"{requester} has {REQUESTED_MAX} tokens already")

    def new_id(self) -> str:
        """The id of a token that is to be."""
        return base64.urlsafe_b64encode(os.urandom(_ID_BYTES)).decode().rstrip("=")

    def credentials(self, token_id: str) -> dict[str, Any]:
        """The credentials for `add` that check the logins of a token; costly, so to be computed beside the loop."""
        password = Secret(base64.b64encode(self.hmac_of(token_id)).decode())
        found = {}
        for mechanism in HASHES:
            salt = salt_like_kafkas(os.urandom(_NOISE_BYTES))
            salted = salted_password(mechanism, password, salt, ITERATIONS_MIN)
            found[mechanism] = credential_entry(credential_of(mechanism, salted, salt, ITERATIONS_MIN))
        return found

    def add(self, token: Token, credentials: Mapping[str, Any]) -> None:
        """Keep a new token. Raises StorageError."""
        self._keep({token.token_id: token}, credentials)

    def change(self, token: Token) -> None:
        """Keep a token's new end. Raises StorageError."""
        entry = self._catalogue.kept[KIND][token.token_id]
        self._keep({token.token_id: token}, {mechanism: entry[mechanism] for mechanism in HASHES})

    def remove(self, token: Token) -> None:
        """Let the token log in no more; open connections stay. Raises StorageError."""
        self._keep({token.token_id: None}, {})

    def sweep(self) -> None:
        """Remove expired tokens and those of another secret key."""
        if not self.is_enabled:
            return
        now_ms, kept = self.now_ms(), self._catalogue.kept.get(KIND, {})
        gone = [token_id for token_id in kept if token_id not in self._tokens or self._tokens[token_id].is_over(now_ms)]
        if not gone:
            return
        try:
            self._keep(dict.fromkeys(gone), {})
        except StorageError as error:
            log.warning("%d delegation tokens that have expired stay for now: %s", len(gone), error)

    def of(self, mechanism: str) -> Callable[[str], Lent]:
        """Finds the data of a login with a token; for an unknown id it makes it up, and no password fits it.

        A token's salt and iterations look the same as those that are made up. (SE-P05)
        """

        def find(token_id: str) -> Lent:
            noise = self._users.noise(mechanism, f"token/{token_id}")
            made_up = Credential(salt_like_kafkas(noise), noise, noise, ITERATIONS_MIN)
            token, now_ms = self._tokens.get(token_id), self.now_ms()
            if token is None or token.is_over(now_ms):
                return Lent(made_up, "", None)
            known = credential_from(self._catalogue.kept[KIND][token_id][mechanism])
            return Lent(known, token.owner.name, token.expires_ms / 1000)

        return find

    def _keep(self, tokens: Mapping[str, Token | None], credentials: Mapping[str, Any]) -> None:
        self._catalogue.keep(
            KIND,
            {
                token_id: None if token is None else {**self._entry(token), **credentials}
                for token_id, token in tokens.items()
            },
        )
        for token_id, token in tokens.items():
            if token is not None:
                self._put(token)
            elif self._tokens.pop(token_id, None) is not None:
                del self._by_hmac[self.hmac_of(token_id)]

    def _put(self, token: Token) -> None:
        self._tokens[token.token_id] = token
        self._by_hmac[self.hmac_of(token.token_id)] = token.token_id

    def _entry(self, token: Token) -> dict[str, Any]:
        return {
            "check": _check(self.hmac_of(token.token_id)).hex(),
            "owner": list(token.owner),
            "requester": list(token.requester),
            "renewers": [list(renewer) for renewer in token.renewers],
            "issued": token.issued_ms,
            "expires": token.expires_ms,
            "ends": token.ends_ms,
        }


def is_shown(
    token: Token, asker: KafkaPrincipal, owners: Collection[KafkaPrincipal] | None, has_right: Callable[[Token], bool]
) -> bool:
    """Whether a token is described: it concerns one of the `owners`, if any are given, and the caller, or by right."""
    if owners is not None and not any(each in owners for each in (token.owner, token.requester, *token.renewers)):
        return False
    return token.concerns(asker) or has_right(token)


def _check(hmac_: bytes) -> bytes:
    """Says whether an HMAC is the same as when the token was made, and does not say what it is."""
    return hashlib.sha256(hmac_).digest()


def _restored(token_id: str, entry: Mapping[str, Any]) -> Token:
    owner, requester = KafkaPrincipal(*entry["owner"]), KafkaPrincipal(*entry["requester"])
    renewers = tuple(KafkaPrincipal(*renewer) for renewer in entry["renewers"])
    return Token(token_id, owner, requester, renewers, entry["issued"], entry["expires"], entry["ends"])
